"""Which neighbours on a ladder swap their states.

A swap of x_i and x_{i+1} is a move from one to the other at the temperature of the difference,

    1 / T = 1/T_i - 1/T_{i+1},

decided exactly where both densities are known, and on a fresh batch elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.acceptance.base import decide
from mintmc.acceptance.minibatch import Common
from mintmc.control import Controlled
from mintmc.data import Batch, Rows
from mintmc.energy import Density, Model, Tempered
from mintmc.proposals import Point
from mintmc.statistics import Info


@dataclass(frozen=True)
class Swaps:
    """How the neighbours of a ladder compare their states."""

    model: Model
    temperatures: tuple[float, ...]
    batch_sizes: tuple[int, ...]  # n reads all data
    penalised: bool
    dtype: Any
    temper: str
    is_controlled: bool

    @property
    def rungs(self) -> int:
        """The number of rungs."""
        return len(self.temperatures)

    @property
    def exact(self) -> int:
        """Rungs that read all data; they come first."""
        return sum(size == self.model.n for size in self.batch_sizes)

    @property
    def batches(self) -> dict[str, int]:
        """One for every other pair on batches: of two neighbouring pairs only one swaps, so they share it."""
        sizes: dict[str, int] = {}
        for pair in range(self.exact, self.rungs - 1):
            # The first is the largest.
            sizes.setdefault(f"swap{pair // 2}", self.batch_sizes[pair])
        return sizes

    @property
    def costs(self) -> list[int]:
        """Data points that each pair reads when it tries: a full pass, or both states on a batch."""
        is_mixed = 0 < self.exact < self.rungs
        full_passes = [0] * (self.exact - 1) + [self.model.n] * is_mixed
        beside = self.target(1.0).beside
        return full_passes + [(2 + beside) * size for size in self.batch_sizes[self.exact : -1]]

    def target(self, temperature: float | Array, exchange: bool = False) -> Tempered:
        """What a rung samples, or what an exchange compares."""
        kind = Controlled if self.is_controlled else Tempered
        return kind(self.model, temperature, self.temper, exchange)

    def others(self, batch: Batch) -> dict[str, Any]:
        """What steps on batches are given beside rows."""
        return {"control": batch["control"]} if self.is_controlled else {}

    def decide(self, log_uniform: Array, theta: Array, density: Density, batch: Batch, tried: Array) -> Info:
        """Which pairs swap; ``density`` is that of the first states, as far as it is known."""
        between = jnp.asarray(-1 / np.diff(1 / np.asarray(self.temperatures)), self.dtype)
        pairs = max(density.prior.size - 1, 0)
        here, there = (jax.tree.map(lambda leaf, at=at: leaf[at : at + pairs], density) for at in (0, 1))
        ratio = self.target(between[:pairs], exchange=True).log_ratio(here, there)
        decisions = [decide(log_uniform[:pairs], ratio, jnp.zeros_like(ratio))]
        for i in range(pairs, self.rungs - 1):
            given = {"test": self._rows(batch, i)} | self.others(batch)
            target = self.target(between[i], exchange=True).informed(given)
            compare = partial(self._compare, log_uniform[i], theta[i : i + 2], given, target)
            untried = partial(decide, *jnp.zeros((3,), self.dtype))
            decisions.append(one_more(jax.lax.cond(tried[i], compare, untried)))
        # Of a pair that is not tried nothing is recorded.
        result: Info = jax.tree.map(lambda leaf: jnp.where(tried, leaf, jnp.zeros_like(leaf)), joined(decisions))
        return result

    def _compare(self, log_uniform: Array, theta: Array, given: Batch, target: Tempered) -> Info:
        ends = Point(theta[0]), Point(theta[1])
        return Common(self.penalised).decide(log_uniform, *ends, 0.0, (), given, target)[0]

    def _rows(self, batch: Batch, pair: int) -> Rows:
        """The fresh batch of a pair."""
        return jax.tree.map(lambda leaf: leaf[: self.batch_sizes[pair]], batch[f"swap{pair // 2}"])


def one_more(tree: Any) -> Any:
    """The same with a leading axis."""
    return jax.tree.map(lambda leaf: leaf[None], tree)


def joined(decisions: Sequence[Info]) -> Info:
    """One after the other along the first axis."""
    result: Info = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *decisions)
    return result
