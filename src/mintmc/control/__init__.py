"""Expansions around a centre: control variates for ratios and gradients."""

from mintmc.control.laplace import Laplace, laplace
from mintmc.control.target import Controlled
from mintmc.control.taylor import ORDERS, Expansion, Taylor, each, expand, residual_gradient

__all__ = [
    "ORDERS",
    "Controlled",
    "Expansion",
    "Laplace",
    "Taylor",
    "each",
    "expand",
    "laplace",
    "residual_gradient",
]
