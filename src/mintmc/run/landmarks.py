"""Landmarks of a run on a ladder: where its chains began, how low they have been, where the hottest rung wanders.

They tell what no chain can tell by itself: whether rung 0 came back to the lowest energy that was ever seen, whether
the chains began apart, and whether the hot end forgets where they began.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mintmc.energy import Density
from mintmc.ladder.reference import Reference
from mintmc.run.task import Task


class Landmarks:
    """A few numbers for each chain, however long the run is.

    Parameters
    ----------
    task, rungs, reference
        What was asked for, on a ladder of so many rungs, and what energies are counted from.
    """

    def __init__(self, task: Task, rungs: int, reference: Reference):
        self.task, self.reference = task, reference
        shape = (rungs, task.chains)  # rungs of a chain may run side by side
        dim = task.target.dim
        self.start = np.stack([np.asarray(theta) for theta in task.thetas])
        self.start_energy = np.full(shape[1], np.nan)
        self.lowest_energy = np.full(shape, np.inf)
        self.lowest_state = np.full((*shape, dim), np.nan)
        self.count = np.zeros(shape[1])
        self.hot_sum = np.zeros((shape[1], dim))
        self.hot_squares = np.zeros((shape[1], dim))

    def begin(self, chain: int, density: Density | None) -> int:
        """Note where a chain starts; without its density there, one pass finds it out. Returns the rows read."""
        if density is not None:
            self.start_energy[chain] = self._energy(density)
            return 0
        target = self.task.target
        self.start_energy[chain] = self._energy(target.posterior.density(target.unravel(self.task.thetas[chain])))
        return target.n

    def at(self, rung: int, chain: int, density: Density, theta: Any) -> None:
        """Note one state of a rung that reads all data."""
        self.lower(rung, chain, np.array([self._energy(density)]), np.asarray(theta)[None])

    def lower(self, rung: int, chain: int, energies: np.ndarray, thetas: np.ndarray) -> None:
        """Note states with these energies above the reference."""
        if np.isnan(energies).all():
            return
        i = int(np.nanargmin(energies))
        if energies[i] < self.lowest_energy[rung, chain]:
            self.lowest_energy[rung, chain] = energies[i]
            self.lowest_state[rung, chain] = thetas[i]

    def wander(self, chain: int, thetas: np.ndarray) -> None:
        """Add draws of the hottest rung to its sums, counted from the start so that squares stay small."""
        away = np.asarray(thetas, np.float64) - self.start[chain]
        self.count[chain] += len(away)
        for sums, new in ((self.hot_sum, away), (self.hot_squares, away**2)):
            # One by one, so that the sum does not depend on the portions in which they come.
            sums[chain] = np.cumsum(np.concatenate([sums[chain][None], new]), axis=0)[-1]

    def checkpoint(self) -> tuple[np.ndarray, ...]:
        """What changes from draw to draw."""
        return self.lowest_energy, self.lowest_state, self.count, self.hot_sum, self.hot_squares

    def restore(self, checkpoint: tuple[np.ndarray, ...]) -> None:
        """Go on from a checkpoint."""
        self.lowest_energy, self.lowest_state, self.count, self.hot_sum, self.hot_squares = checkpoint

    def facts(self) -> dict[str, np.ndarray]:
        """By name, each (chain,) or (chain, parameter); NaN where there is nothing to tell."""
        rung, chains = self.lowest_energy.argmin(axis=0), np.arange(len(self.count))
        lowest = self.lowest_energy[rung, chains]
        number = np.maximum(self.count[:, None], 1)
        mean = self.hot_sum / number
        squares = np.maximum(self.hot_squares - number * mean**2, 0)
        is_known = self.count[:, None] > 1
        return {
            "start_energy": self.start_energy,
            "lowest_energy": np.where(np.isinf(lowest), np.nan, lowest),
            "lowest_state": self.lowest_state[rung, chains],
            "hot_mean": np.where(is_known, self.start + mean, np.nan),
            "hot_sd": np.where(is_known, np.sqrt(squares / np.maximum(number - 1, 1)), np.nan),
        }

    def _energy(self, density: Density) -> float:
        return float(density.energy(self.reference.energy_of)) - self.reference.energy
