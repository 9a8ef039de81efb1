"""What everyone asks of a tree: where its draws are, what made them, whether its chains started apart."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

APART = 0.5
"""Chains whose starts spread less than this, in standard deviations of what they sample, started in one place."""


def draws_group(tree: Any) -> str:
    """The group that holds the draws."""
    for group in ("posterior", "tempered_posterior"):
        if group in tree.children:
            return group
    raise ValueError(f"tree must have a group posterior or tempered_posterior, got {sorted(tree.children)}")


def settings_of(tree: Any) -> dict[str, Any]:
    """The settings of the sampler that made a tree."""
    settings: dict[str, Any] = json.loads(tree.attrs["sampler_settings"])
    return settings


def started_apart(tree: Any, scale: Any) -> bool:
    """Whether the user chose starts that differ, in units of ``scale`` (by parameter), in some parameter at least."""
    if not tree.attrs.get("starts_apart") or "start" not in tree.children or tree["start"].sizes["chain"] < 2:
        return False
    starts = tree["start"].to_dataset()
    spreads = [
        np.max(starts[name].std("chain", ddof=1).values / np.maximum(scale[name].values, np.finfo(np.float32).tiny))
        for name in starts.data_vars
    ]
    return float(max(spreads)) >= APART
