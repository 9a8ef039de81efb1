"""Expansions around a centre: control variates for ratios and gradients."""

from mintmc.control.atlas import Atlas, atlas, empty_atlas
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
    "empty_atlas",
    "expand",
    "laplace",
    "residual_gradient",
]
