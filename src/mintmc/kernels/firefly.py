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
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.acceptance.metropolis import Decision, decide, log_uniform
from mintmc.control.lower_bounds import Bound, change
from mintmc.data import Batch, Rows
from mintmc.energy import Tempered
from mintmc.kernels.base import Info, Kernel
from mintmc.kernels.metropolis import impossible
from mintmc.proposals import Point, Proposal, Tuning

_BLOCK = 128
"""Rows evaluated at a time: what a step costs then follows how many are bright, not how many could be."""


class State(NamedTuple):
    """What the next step needs."""

    theta: Array
    bright: Array  # z, one flag a row
    gaps: Array  # gap_i at theta; of bright rows alone


class Noise(NamedTuple):
    """The randomness of one step. What z needs is drawn in the step: for hundreds of steps it would fill memory."""

    proposal: Any
    test: Array
    lights: Array  # a key


class Settings(NamedTuple):
    """What stays the same from step to step."""

    target: Tempered
    bound: Bound
    proposal: Proposal
    brighten: float  # q
    capacity: int
    unravel: Callable
    dim: int
    dtype: Any


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


def randomness(key: Array, settings: Settings) -> Noise:
    """Everything random in one step, that of the lights as a key."""
    for_proposal, for_test, for_lights = jax.random.split(key, 3)
    noise = settings.proposal.noise(for_proposal, settings.dim, settings.dtype)
    return Noise(noise, log_uniform(for_test, settings.dtype), for_lights)


def init(theta: Array, batch: Batch, settings: Settings) -> State:
    """The likeliest lights: bright where exp(gap) - 1 > 1, as far as they fit."""
    n = settings.target.model.n
    gaps = _evaluate(theta, jnp.arange(n), jnp.asarray(n), batch["all"], settings).gaps
    bright = gaps > math.log(2)
    return State(theta, bright & (jnp.cumsum(bright) <= settings.capacity), gaps)


def advance(noise: Noise, state: State, batch: Batch, tuning: Tuning, settings: Settings) -> tuple[State, Info]:
    """Move theta with the lights fixed, then the lights with theta fixed."""
    rows = batch["all"]
    decision, theta, lit, proposed = _move_theta(noise, state, rows, tuning, settings)
    most = _most_picked(settings.target.model.n, settings.brighten)
    uniforms = jax.random.uniform(noise.lights, (settings.capacity + 2 * most,), settings.dtype)
    for_lit, for_skips, for_picked = jnp.split(uniforms, (settings.capacity, settings.capacity + most))
    picked = _pick_dark(for_skips, theta, state.bright, rows, settings)
    bright, gaps, fits = _move_lights(jnp.log(for_lit), jnp.log(for_picked), state, lit, picked, settings)
    extras = {
        "bright": jnp.sum(bright, dtype=decision.acceptance_rate.dtype),
        "bound_violations": proposed.violations + picked.violations,
        "overflows": 1 - fits.astype(jnp.int32),
    }
    touched = (proposed.number + picked.number).astype(jnp.int32)
    return State(theta, bright, gaps), Info(*decision[:4], touched, None, extras)


def _move_theta(noise, state, rows, tuning, settings) -> tuple[Decision, Array, Read, Read]:
    """Metropolis-Hastings on bound and bright rows; also the gaps of these at the new state and at the proposal."""
    target, n = settings.target, settings.target.model.n
    there, log_q = settings.proposal.move(noise.proposal, Point(state.theta), Point, tuning)
    index = jnp.nonzero(state.bright, size=settings.capacity, fill_value=n)[0]
    here = Read(index, jnp.sum(state.bright), state.gaps.at[index].get(mode="clip"))
    proposed = _evaluate(there.theta, index, here.number, rows, settings)
    of_bright = jnp.where(here.is_row, log_odds(proposed.gaps) - log_odds(here.gaps), 0).sum()
    of_bound = change(settings.bound, settings.unravel(state.theta), settings.unravel(there.theta))
    of_prior = target.prior(there.theta) - target.prior(state.theta)
    ratio = of_prior + of_bound / target.temperature + of_bright + log_q
    decision = decide(noise.test, ratio, jnp.zeros_like(ratio))
    decision = impossible(decision, ~target.model.is_possible(there.theta))
    theta = jnp.where(decision.accepted, there.theta, state.theta)
    lit = here._replace(gaps=jnp.where(decision.accepted, proposed.gaps, here.gaps))
    return decision, theta, lit, proposed


def _pick_dark(uniforms, theta, bright, rows, settings) -> Read:
    """Dark rows, each with probability q: geometric skips from one to the next cost n q numbers instead of n."""
    n, q = settings.target.model.n, settings.brighten
    skips = jnp.minimum(jnp.floor(jnp.log1p(-uniforms) / math.log1p(-q)), n).astype(jnp.int32) + 1
    index = jnp.minimum(jnp.cumsum(skips) - 1, n)
    is_bright = bright.at[index].get(mode="fill", fill_value=True)
    index = jnp.sort(jnp.where(is_bright, n, index))  # what is to be read comes first
    return _evaluate(theta, index, jnp.sum(index < n), rows, settings)


def _move_lights(log_lit, log_picked, state, lit, picked, settings) -> tuple[Array, Array, Array]:
    """The new lights, the gaps known, and whether the lights fit."""
    stays = ~darkens(log_lit, log_odds(lit.gaps), settings.brighten)
    comes = lights_up(log_picked, log_odds(picked.gaps), settings.brighten)
    # Padding has index n and is dropped. No row is in both: what has just gone dark must not be picked.
    bright = state.bright.at[lit.which].set(stays, mode="drop").at[picked.which].set(comes, mode="drop")
    gaps = state.gaps.at[lit.which].set(lit.gaps, mode="drop").at[picked.which].set(picked.gaps, mode="drop")
    fits = jnp.sum(bright) <= settings.capacity
    return jnp.where(fits, bright, state.bright), gaps, fits


def _evaluate(theta: Array, index: Array, count: Array, rows: Rows, settings: Settings) -> Read:
    """Gaps of the first ``count`` rows in ``index``, a block at a time."""
    params, size = settings.unravel(theta), min(_BLOCK, index.size)

    model = settings.target.model

    def gap(datum: Any, constants: Any) -> Array:
        log_likelihood = model.log_likelihood(theta, datum)
        return (log_likelihood - settings.bound.log_bound(params, datum, constants)) / settings.target.temperature

    def block(i: Array, gaps: Array) -> Array:
        # The last block is moved up to the end of the buffer and works out some gaps again.
        part = jax.lax.dynamic_slice_in_dim(index, i * size, size)
        constants = jax.tree.map(lambda leaf: leaf[part], settings.bound.constants)
        new = jax.vmap(gap)(model.rows_at(rows, part), constants)
        return jax.lax.dynamic_update_slice_in_dim(gaps, new.astype(theta.dtype), i * size, 0)

    blocks = (count + size - 1) // size
    return Read(index, count, jax.lax.fori_loop(0, blocks, block, jnp.zeros(index.shape, theta.dtype)))


def _most_picked(n: int, q: float) -> int:
    """So many that the number of picked rows, binomial(n, q), exceeds it less than once in 1e20 steps."""
    return min(n, math.ceil(n * q + 10 * math.sqrt(n * q) + 20))


def kernel(settings: Settings) -> Kernel:
    """The kernel for the runner."""
    n = settings.target.model.n
    return Kernel(
        randomness=partial(randomness, settings=settings),
        init=partial(init, settings=settings),
        advance=partial(advance, settings=settings),
        position=lambda state: state.theta,
        batches={"all": n},
        touched=None,
        init_touched=n,
        proposal=settings.proposal,
    )
