"""Firefly Monte Carlo: rows whose likelihood is near a lower bound stay dark and are not read.

With 0 < B_i <= L_i and gap_i = (log L_i - log B_i) / T, every row gets a light z_i, and the joint density

    prior(theta)^w  prod_i B_i(theta)^(1/T)  prod_{z_i = 1} (exp(gap_i) - 1)

has the tempered posterior as its marginal exactly (Maclaurin & Adams 2014): at T = 1 a row summed over z_i gives
B_i + (L_i - B_i). A step moves theta with z fixed, which reads the bright rows alone, and then z with theta fixed: with
odds_i = exp(gap_i) - 1, a bright row goes dark with probability min(1, q / odds_i), and each dark one is picked with
probability q and lights up with min(1, odds_i / q). (Algorithm 2 of the paper prints the last inequality reversed.)

Exact while bounds hold and bright rows fit into ``capacity``. A z-update that would not fit is refused as a whole, so
that the chain samples the joint density restricted to what fits; where a bound is above its likelihood, the bound is
taken for the likelihood. Both are counted. Gaps of bright rows are remembered, so a step reads the bright rows once, at
the proposed end, and the dark ones that were picked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.acceptance.base import decide, impossible, log_uniform
from mintmc.control.lower_bounds import Bound, change
from mintmc.data import Batch, Rows
from mintmc.energy import Tempered
from mintmc.kernels.base import Kernel
from mintmc.params import Params
from mintmc.proposals import Point, Proposal, Tuning
from mintmc.statistics import DATA_TOUCHED, DECIDED, Info, Statistic, counted

_BLOCK = 128
"""Rows evaluated at a time: what a step costs then follows how many are bright, not how many could be."""


class State(NamedTuple):
    """What the next step needs."""

    theta: Array
    bright: Array  # z, one flag a row
    gaps: Array  # gap_i at theta; of bright rows alone


class Randomness(NamedTuple):
    """All random numbers of one step. What z needs is drawn in the step: for hundreds of steps it would fill memory."""

    proposal: Any
    test: Array
    lights: Array  # a key


class Read(NamedTuple):
    """Rows that were evaluated at one theta, and padding beyond the first ``number``."""

    which: Array  # n for padding
    number: Array
    gaps: Array

    @property
    def is_row(self) -> Array:
        """Not padding."""
        return jnp.arange(self.which.size) < self.number

    @property
    def violations(self) -> Array:
        """Rows whose bound is above their likelihood, or whose gap is not a number."""
        return jnp.sum(self.is_row & ~(self.gaps >= 0), dtype=jnp.int32)


def log_odds(gap: Array) -> Array:
    """log(exp(gap) - 1), accurate for gaps near 0 and without overflow for large ones."""
    positive = jnp.where(gap <= 0, 1.0, gap)
    return jnp.where(gap <= 0, -jnp.inf, positive + jnp.log(-jnp.expm1(-positive)))


def darkens(log_uniform: Array, log_odds: Array, brighten: float) -> Array:
    """Whether a bright row goes dark: with probability min(1, q / odds)."""
    return log_uniform < math.log(brighten) - log_odds


def lights_up(log_uniform: Array, log_odds: Array, brighten: float) -> Array:
    """Whether a dark row that was picked with probability q lights up: with probability min(1, odds / q)."""
    return log_uniform < log_odds - math.log(brighten)


@dataclass(frozen=True)
class FireflyKernel(Kernel):
    """Move theta with the lights fixed, then the lights with theta fixed."""

    target: Tempered
    bound: Bound
    proposal: Proposal
    brighten: float  # q
    capacity: int
    unravel: Callable[[Array], Params]
    dim: int
    dtype: Any

    statistics = (
        *DECIDED,
        DATA_TOUCHED,
        Statistic("bright", unit="rows"),
        counted("bound_violations"),
        counted("overflows", "updates of the lights"),
    )

    def randomness(self, key: Array) -> Randomness:
        """Everything random in one step, that of the lights as a key."""
        for_proposal, for_test, for_lights = jax.random.split(key, 3)
        numbers = self.proposal.randomness(for_proposal, self.dim, self.dtype)
        return Randomness(numbers, log_uniform(for_test, self.dtype), for_lights)

    def init(self, theta: Array, batch: Batch) -> State:
        """The likeliest lights: bright where exp(gap) - 1 > 1, as far as they fit."""
        n = self.target.model.n
        gaps = self._evaluate(theta, jnp.arange(n), jnp.asarray(n), batch["all"]).gaps
        bright = gaps > math.log(2)
        return State(theta, bright & (jnp.cumsum(bright) <= self.capacity), gaps)

    def advance(self, randomness: Randomness, state: State, batch: Batch, tuning: Tuning) -> tuple[State, Info]:
        """Move theta with the lights fixed, then the lights with theta fixed."""
        rows = batch["all"]
        info, theta, lit, proposed = self._move_theta(randomness, state, rows, tuning)
        most = _most_picked(self.target.model.n, self.brighten)
        uniforms = jax.random.uniform(randomness.lights, (self.capacity + 2 * most,), self.dtype)
        for_lit, for_skips, for_picked = jnp.split(uniforms, (self.capacity, self.capacity + most))
        picked = self._pick_dark(for_skips, theta, state.bright, rows)
        bright, gaps, fits = self._move_lights(jnp.log(for_lit), jnp.log(for_picked), state, lit, picked)
        return State(theta, bright, gaps), info | {
            "data_touched": (proposed.number + picked.number).astype(jnp.int32),
            "bright": jnp.sum(bright, dtype=info["acceptance_rate"].dtype),
            "bound_violations": proposed.violations + picked.violations,
            "overflows": 1 - fits.astype(jnp.int32),
        }

    @property
    def temperatures(self) -> Any:
        """That of the target."""
        return self.target.temperature

    @property
    def batches(self) -> dict[str, int]:
        """Any row may be bright."""
        return {"all": self.target.model.n}

    @property
    def init_touched(self) -> int:
        """All rows, to know which are bright."""
        return self.target.model.n

    def _move_theta(
        self, randomness: Randomness, state: State, rows: Rows, tuning: Tuning
    ) -> tuple[Info, Array, Read, Read]:
        """Metropolis-Hastings on bound and bright rows; also the gaps of these at the new state and at the proposal."""
        target, n = self.target, self.target.model.n
        there, log_q = self.proposal.move(randomness.proposal, Point(state.theta), Point, tuning)
        index = jnp.nonzero(state.bright, size=self.capacity, fill_value=n)[0]
        here = Read(index, jnp.sum(state.bright), state.gaps.at[index].get(mode="clip"))
        proposed = self._evaluate(there.theta, index, here.number, rows)
        of_bright = jnp.where(here.is_row, log_odds(proposed.gaps) - log_odds(here.gaps), 0).sum()
        of_bound = change(self.bound, self.unravel(state.theta), self.unravel(there.theta))
        of_prior = target.prior(there.theta) - target.prior(state.theta)
        ratio = of_prior + of_bound / target.temperature + of_bright + log_q
        info = decide(randomness.test, ratio, jnp.zeros_like(ratio))
        info = impossible(info, ~target.model.is_possible(there.theta))
        theta = jnp.where(info["accepted"], there.theta, state.theta)
        lit = here._replace(gaps=jnp.where(info["accepted"], proposed.gaps, here.gaps))
        return info, theta, lit, proposed

    def _pick_dark(self, uniforms: Array, theta: Array, bright: Array, rows: Rows) -> Read:
        """Dark rows, each with probability q: geometric skips from one to the next cost n q numbers instead of n."""
        n, q = self.target.model.n, self.brighten
        skips = jnp.minimum(jnp.floor(jnp.log1p(-uniforms) / math.log1p(-q)), n).astype(jnp.int32) + 1
        index = jnp.minimum(jnp.cumsum(skips) - 1, n)
        is_bright = bright.at[index].get(mode="fill", fill_value=True)
        index = jnp.sort(jnp.where(is_bright, n, index))  # what is to be read comes first
        return self._evaluate(theta, index, jnp.sum(index < n), rows)

    def _move_lights(
        self, log_lit: Array, log_picked: Array, state: State, lit: Read, picked: Read
    ) -> tuple[Array, Array, Array]:
        """The new lights, the gaps known, and whether the lights fit."""
        stays = ~darkens(log_lit, log_odds(lit.gaps), self.brighten)
        comes = lights_up(log_picked, log_odds(picked.gaps), self.brighten)
        # Padding has index n and is dropped. No row is in both: what has just gone dark must not be picked.
        bright = state.bright.at[lit.which].set(stays, mode="drop").at[picked.which].set(comes, mode="drop")
        gaps = state.gaps.at[lit.which].set(lit.gaps, mode="drop").at[picked.which].set(picked.gaps, mode="drop")
        fits = jnp.sum(bright) <= self.capacity
        return jnp.where(fits, bright, state.bright), gaps, fits

    def _evaluate(self, theta: Array, index: Array, number: Array, rows: Rows) -> Read:
        """Gaps of the first ``number`` rows in ``index``, a block at a time."""
        params, size, model = self.unravel(theta), min(_BLOCK, index.size), self.target.model

        def gap(datum: Any, constants: Any) -> Array:
            log_likelihood = model.log_likelihood(theta, datum)
            result: Array = (log_likelihood - self.bound.log_bound(params, datum, constants)) / self.target.temperature
            return result

        def block(i: Array, gaps: Array) -> Array:
            # The last block is moved up to the end of the buffer and works out some gaps again.
            part = jax.lax.dynamic_slice_in_dim(index, i * size, size)
            constants = jax.tree.map(lambda leaf: jnp.asarray(leaf)[part], self.bound.constants)
            new = jax.vmap(gap)(model.rows_at(rows, part), constants)
            return jax.lax.dynamic_update_slice_in_dim(gaps, new.astype(theta.dtype), i * size, 0)

        blocks = (number + size - 1) // size
        return Read(index, number, jax.lax.fori_loop(0, blocks, block, jnp.zeros(index.shape, theta.dtype)))


def _most_picked(n: int, q: float) -> int:
    """So many that the number of picked rows, binomial(n, q), exceeds it less than once in 1e20 steps."""
    return min(n, math.ceil(n * q + 10 * math.sqrt(n * q) + 20))
