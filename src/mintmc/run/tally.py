"""What happened on every rung, added up over a run: a few numbers a rung, however long it is."""

from __future__ import annotations

from typing import Any

import numpy as np

_SUMMED = ("steps", "rate", "noise", "undefined", "touched", "jumps", "empty_rings", "jump_rate", "jump_noise")


def nothing(rungs: int, chains: int) -> dict[str, np.ndarray]:
    """Sums of an equi-energy run that has not begun."""
    return {name: np.zeros((rungs, chains)) for name in _SUMMED}


def add(sums: dict[str, np.ndarray], rung: int, chain: int, record: Any, touched: np.ndarray, steps: int) -> None:
    """Add draws of ``steps`` steps each, which read ``touched`` rows."""
    new = {
        "steps": len(touched) * steps,
        "rate": steps * record.statistics[:, 1].sum(dtype=float),
        "noise": steps * record.statistics[:, 2].sum(dtype=float),
        "undefined": (record.statistics[:, 3] == 0).sum(),
        "touched": touched.sum(),
        "jumps": record.extras["jumps"].sum(),
        "empty_rings": record.extras["empty_rings"].sum(),
        "jump_rate": steps * record.extras["jump_rate"].sum(dtype=float),
        "jump_noise": steps * record.extras["jump_noise"].sum(dtype=float),
    }
    for name, value in new.items():
        sums[name][rung, chain] += value


def rates(sums: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Local moves and jumps apart, each over its own number; NaN where there were none."""
    moves = sums["steps"] - sums["jumps"]
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "acceptance_rate": (sums["rate"] - sums["jump_rate"]) / moves,
            "log_ratio_noise": (sums["noise"] - sums["jump_noise"]) / moves,
            "jump_rate": sums["jump_rate"] / sums["jumps"],
            "jump_noise": sums["jump_noise"] / sums["jumps"],
            "jump_share": sums["jumps"] / sums["steps"],
            "empty_rings": sums["empty_rings"] / sums["jumps"],
            "data_touched": sums["touched"],
            "undefined_moves": sums["undefined"],
        }
