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

from mintmc import count
from mintmc.acceptance.base import decide
from mintmc.acceptance.minibatch import Common
from mintmc.data import Batch, Rows
from mintmc.energy import Density, Tempered
from mintmc.kernels.rungs import Rungs
from mintmc.proposals import Point
from mintmc.statistics import Info


@dataclass(frozen=True)
class Swaps:
    """How the neighbours of a ladder compare their states."""

    rungs: Rungs

    @property
    def batches(self) -> dict[str, int]:
        """One for every other pair on batches: of two neighbouring pairs only one swaps, so they share it."""
        sizes: dict[str, int] = {}
        for pair in range(self.rungs.exact, len(self.rungs) - 1):
            # The first is the largest.
            sizes.setdefault(f"swap{pair // 2}", self.rungs.batch_sizes[pair])
        return sizes

    @property
    def costs(self) -> list[int]:
        """Data points that each pair reads when it tries: a full pass, or both states on a batch."""
        rungs, exact = self.rungs, self.rungs.exact
        is_mixed = 0 < exact < len(rungs)
        full_passes = [0] * (exact - 1) + [rungs.model.n] * is_mixed
        beside = rungs.target(1.0).beside
        return full_passes + [(2 + beside) * size for size in rungs.batch_sizes[exact:-1]]

    def data_touched(self, tried: Array) -> count.Count:
        """Data points that the pairs that are tried read."""
        total = count.of(0)
        for i, cost in enumerate(self.costs):
            if cost:
                total = count.add(total, jax.tree.map(lambda word, i=i: jnp.where(tried[i], word, 0), count.of(cost)))
        return total

    def decide(self, log_uniform: Array, theta: Array, density: Density, batch: Batch, tried: Array) -> Info:
        """Which pairs swap; ``density`` is that of the first states, as far as it is known."""
        rungs = self.rungs
        between = jnp.asarray(-1 / np.diff(1 / np.asarray(rungs.temperatures)), rungs.dtype)
        pairs = max(density.prior.size - 1, 0)
        here, there = (jax.tree.map(lambda leaf, at=at: leaf[at : at + pairs], density) for at in (0, 1))
        ratio = rungs.target(between[:pairs], exchange=True).log_ratio(here, there)
        decisions = [decide(log_uniform[:pairs], ratio, jnp.zeros_like(ratio))]
        for i in range(pairs, len(rungs) - 1):
            given = {"test": self._rows(batch, i)} | rungs.others(batch)
            target = rungs.target(between[i], exchange=True).informed(given)
            compare = partial(self._compare, log_uniform[i], theta[i : i + 2], given, target)
            untried = partial(decide, *jnp.zeros((3,), rungs.dtype))
            decisions.append(one_more(jax.lax.cond(tried[i], compare, untried)))
        # Of a pair that is not tried nothing is recorded.
        result: Info = jax.tree.map(lambda leaf: jnp.where(tried, leaf, jnp.zeros_like(leaf)), joined(decisions))
        return result

    def carried(self, known: Point, source: Array) -> Point:
        """What the rungs on all data know once rung k has the state of rung ``source[k]``."""
        rungs, exact, temperatures = self.rungs, self.rungs.exact, self.rungs.all_temperatures
        known = jax.tree.map(lambda leaf: leaf[source[:exact]], known)
        if known.gradient is None:
            return known
        # That of log pi at one temperature is not that at another.
        base = jax.vmap(rungs.target(1.0).base_gradient)(known.theta)
        ratio = (temperatures[source] / temperatures)[:exact, None]
        carried = base + (known.gradient - base) * ratio
        return known._replace(gradient=jnp.where(ratio == 1, known.gradient, carried))

    def _compare(self, log_uniform: Array, theta: Array, given: Batch, target: Tempered) -> Info:
        ends = Point(theta[0]), Point(theta[1])
        return Common(self.rungs.penalised).decide(log_uniform, *ends, 0.0, (), given, target)[0]

    def _rows(self, batch: Batch, pair: int) -> Rows:
        """The fresh batch of a pair."""
        return jax.tree.map(lambda leaf: leaf[: self.rungs.batch_sizes[pair]], batch[f"swap{pair // 2}"])


def sources(accepted: Array) -> Array:
    """Which rung each gets its state from, if these pairs of neighbours swap."""
    goes = accepted.astype(jnp.int32)
    return jnp.arange(accepted.size + 1) + jnp.pad(goes, (0, 1)) - jnp.pad(goes, (1, 0))


def one_more(tree: Any) -> Any:
    """The same with a leading axis."""
    return jax.tree.map(lambda leaf: leaf[None], tree)


def joined(decisions: Sequence[Info]) -> Info:
    """One after the other along the first axis."""
    result: Info = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *decisions)
    return result
