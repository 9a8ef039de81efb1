"""Expansions around a centre: control variates for ratios and gradients."""

from mintmc.control.taylor import ORDERS, Expansion, Taylor, each, expand, residual_gradient

__all__ = ["ORDERS", "Expansion", "Taylor", "each", "expand", "residual_gradient"]
