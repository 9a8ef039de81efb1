"""TunaMH: exact Metropolis-Hastings that reads a Poisson number of rows (Zhang, Cooper & De Sa 2020).

With U_i = -log L_i / T, scales c_i such that |U_i(theta') - U_i(theta)| <= c_i M(theta, theta'), L = M sum_i c_i
and r_i = (U_i(theta) - U_i(theta')) / (c_i M) in [-1, 1]:

    B ~ Poisson(chi L^2 + L) rows are drawn with probabilities proportional to c_i,
    row i is kept with probability (1 - r_i + 2 chi L) / (2 + 2 chi L),
    log ratio = sum over kept of log (1 + r_i + 2 chi L) / (1 - r_i + 2 chi L) + log prior and proposal terms.

Row i is then kept Poisson(chi L c_i M + (U_i' - U_i + c_i M)/2) times, and on the way back with U_i and U_i' exchanged.
Summed over rows the two means differ by the log ratio of the likelihoods, so that it cancels in the ratio of the joint
laws, and the powers of the means remain: the last line. Detailed balance holds for every chi > 0; a larger one reads
more rows and accepts more moves. Exact as long as the scales hold; rows that break theirs are counted.

Rows are drawn by an alias table (``control/alias.py``), with exactly the probabilities that the formula assumes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import count
from mintmc.acceptance.base import decide, impossible, log_uniform
from mintmc.control.alias import Weighted
from mintmc.data import Batch, Rows
from mintmc.energy import Tempered
from mintmc.kernels.base import Kernel
from mintmc.params import Params
from mintmc.proposals import Point, Proposal, Tuning
from mintmc.statistics import DATA_TOUCHED, DECIDED, Info, counted
from mintmc.threefry import as_jax

_BLOCK = 128
"""Rows read at a time."""
_MOST_ROWS = 2.0**29
"""A move that would read more is refused: it would take minutes, and counts would leave int32. The limit is
symmetric in both ends, so refusing keeps detailed balance."""


class State(NamedTuple):
    """What the next step needs."""

    theta: Array


class Randomness(NamedTuple):
    """All random numbers of one step; how much the rows need depends on the state, so they get a key."""

    proposal: Any
    test: Array
    rows: Array  # a key


class Sums(NamedTuple):
    """What is summed over the rows read."""

    log_ratio: Array
    kept: Array
    violations: Array


def mean_rows(step: Array, chi: float) -> Array:
    """How many rows a move reads on average, L + chi L^2."""
    return step + chi * step**2


def keep_probability(change: Array, chi_step: Array) -> Array:
    """The probability to keep a row with r = ``change``, where ``chi_step`` is chi L."""
    return ((1 - change) + 2 * chi_step) / (2 + 2 * chi_step)


def log_weight(change: Array, chi_step: Array) -> Array:
    """What a kept row adds to the log ratio: 2 artanh(r / (1 + 2 chi L))."""
    return jnp.log((1 + change) + 2 * chi_step) - jnp.log((1 - change) + 2 * chi_step)


def euclidean(params: Params, proposed: Params) -> Array:
    """The Euclidean distance between params as flat vectors."""
    squares = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), params, proposed)
    return jnp.sqrt(jax.tree.reduce(jnp.add, squares))


@dataclass(frozen=True)
class TunaKernel(Kernel):
    """Propose, read, decide."""

    target: Tempered
    scales: Weighted
    distance: Callable[[Params, Params], Array]
    chi: float
    proposal: Proposal
    unravel: Callable[[Array], Params]
    dim: int
    dtype: Any

    statistics = (*DECIDED, DATA_TOUCHED, counted("kept"), counted("bound_violations"))

    def randomness(self, key: Array) -> Randomness:
        """Everything random in one step, that of the rows as a key."""
        for_proposal, for_test, for_rows = jax.random.split(key, 3)
        numbers = self.proposal.randomness(for_proposal, self.dim, self.dtype)
        return Randomness(numbers, log_uniform(for_test, self.dtype), for_rows)

    def init(self, theta: Array, batch: Batch) -> State:
        """The first state; reads no data."""
        return State(theta)

    def advance(self, randomness: Randomness, state: State, batch: Batch, tuning: Tuning) -> tuple[State, Info]:
        """Propose, read, decide."""
        target = self.target
        point, log_q = self.proposal.move(randomness.proposal, Point(state.theta), Point, tuning)
        here, there = state.theta, point.theta
        bound = self.distance(self.unravel(here), self.unravel(there)) / target.temperature
        expected = mean_rows(self.scales.total * bound, self.chi)
        is_possible = (bound >= 0) & (expected <= _MOST_ROWS)  # False for NaN as well
        for_number, for_rows = jax.random.split(randomness.rows)
        number = jax.random.poisson(as_jax(for_number), jnp.where(is_possible, expected, 0), dtype=jnp.int32)
        sums = self._read(for_rows, here, there, bound, number, batch["all"])
        ratio = target.prior(there) - target.prior(here) + sums.log_ratio + log_q
        info = decide(randomness.test, jnp.where(is_possible, ratio, jnp.nan), jnp.zeros_like(ratio))
        info = impossible(info, ~target.model.is_possible(there))
        rows = {"data_touched": count.times(2, number), "kept": sums.kept, "bound_violations": sums.violations}
        return State(jnp.where(info["accepted"], there, here)), info | rows

    @property
    def temperatures(self) -> Any:
        """That of the target."""
        return self.target.temperature

    @property
    def batches(self) -> dict[str, int]:
        """Any row may be drawn."""
        return {"all": self.target.model.n}

    def _read(self, key: Array, here: Array, there: Array, bound: Array, number: Array, rows: Rows) -> Sums:
        """Draw ``number`` rows in blocks and add up what the kept ones say."""

        def one_block(carry: tuple[Array, Sums]) -> tuple[Array, Sums]:
            i, sums = carry
            is_drawn = i * _BLOCK + jnp.arange(_BLOCK) < number
            block = self._sum_block(jax.random.fold_in(key, i), here, there, bound, is_drawn, rows)
            return i + 1, jax.tree.map(jnp.add, sums, block)

        zero = jnp.zeros((), jnp.int32)
        nothing = Sums(jnp.zeros((), here.dtype), zero, zero)
        return jax.lax.while_loop(lambda carry: carry[0] * _BLOCK < number, one_block, (zero, nothing))[1]

    def _sum_block(self, key: Array, here: Array, there: Array, bound: Array, is_drawn: Array, rows: Rows) -> Sums:
        for_index, for_keeping = jax.random.split(key)
        scales, model = self.scales, self.target.model
        index = scales.pick(jax.random.bits(for_index, (*is_drawn.shape, 2), jnp.uint32))
        drawn = model.rows_at(rows, index)
        before, after = model.each(here, drawn), model.each(there, drawn)
        change = (after - before) / self.target.temperature / (scales.each[index] * bound)
        # A difference of two rounded numbers may exceed its bound by their rounding, which is nobody's fault.
        rounding = 8 * jnp.finfo(here.dtype).eps * (jnp.abs(before) + jnp.abs(after))
        allowed = scales.each[index] * bound * self.target.temperature + rounding
        is_violated = ~(jnp.abs(after - before) <= allowed)
        change = jnp.clip(change, -1, 1)
        chi_step = self.chi * scales.total * bound
        uniform = jax.random.uniform(for_keeping, is_drawn.shape, here.dtype)
        kept = is_drawn & (uniform < keep_probability(change, chi_step))
        # A likelihood that is not a number makes the ratio so, whether or not the row would have been kept.
        used = is_drawn & (kept | jnp.isnan(change))
        log_ratio = jnp.where(used, log_weight(change, chi_step), 0).sum()
        return Sums(log_ratio, jnp.sum(kept, dtype=jnp.int32), jnp.sum(is_drawn & is_violated, dtype=jnp.int32))
