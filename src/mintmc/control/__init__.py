"""Expansions around a centre: control variates for ratios and gradients."""

from mintmc.control.atlas import Atlas, atlas
from mintmc.control.laplace import Laplace, laplace
from mintmc.control.target import Controlled
from mintmc.control.taylor import ORDERS, Expansion, Taylor, each, expand, residual_gradient

__all__ = [
    "ORDERS",
    "Atlas",
    "Controlled",
    "Expansion",
    "Laplace",
    "Taylor",
    "atlas",
    "each",
    "expand",
    "laplace",
    "residual_gradient",
]
