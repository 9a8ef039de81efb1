"""What happened on every rung, added up over a run: a few numbers a rung, however long it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mintmc.statistics import Info, Statistic, total


class RungTotals:
    """Sums over all draws of a rung and a chain."""

    def __init__(self, rungs: int, chains: int, statistics: Sequence[Statistic]):
        # All that can be added up; rows are counted apart, exactly.
        self.statistics = [each for each in statistics if not each.dims and each.over != "last" and not each.is_wide]
        names = ("draws", "steps", "data_touched", *(each.name for each in self.statistics))
        self.sums = {name: np.zeros((rungs, chains)) for name in names}

    def add(self, rung: int, chain: int, values: Info, touched: np.ndarray, steps: int) -> None:
        """Add draws of ``steps`` steps each, which read ``touched`` rows."""
        new: dict[str, Any] = {each.name: total(each, values[each.name], steps) for each in self.statistics}
        new |= {"draws": len(touched), "steps": len(touched) * steps, "data_touched": touched.sum()}
        for name, value in new.items():
            self.sums[name][rung, chain] += value

    @property
    def undefined(self) -> np.ndarray:
        """Draws with a move whose ratio was not a number."""
        return self.sums["draws"] - self.sums["is_defined"]

    def rates(self) -> dict[str, np.ndarray]:
        """Local moves and jumps apart, each over its own number; NaN where there were none."""
        sums = self.sums
        moves = sums["steps"] - sums["jumps"]
        with np.errstate(invalid="ignore", divide="ignore"):
            return {
                "acceptance_rate": (sums["acceptance_rate"] - sums["jump_rate"]) / moves,
                "log_ratio_noise": (sums["log_ratio_noise"] - sums["jump_noise"]) / moves,
                "jump_rate": sums["jump_rate"] / sums["jumps"],
                "jump_noise": sums["jump_noise"] / sums["jumps"],
                "jump_share": sums["jumps"] / sums["steps"],
                "empty_rings": sums["empty_rings"] / sums["jumps"],
                "data_touched": sums["data_touched"],
                "undefined_moves": self.undefined,
            }
