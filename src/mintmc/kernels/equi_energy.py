"""One rung of the equi-energy sampler (Kou, Zhou & Wong 2006): a local move, or a jump into a ring of the hotter rung.

With h the tempered part of the energy and B what is not tempered, rung k samples exp(B - max(h, H_k) / T_k). A jump
from x proposes a state y drawn uniformly from the states that the hotter rung k+1 left in the ring of x, and accepts it
with log ratio

    (max(h(x), H_k) - max(h(y), H_k)) / T_k  -  (max(h(x), H_{k+1}) - max(h(y), H_{k+1})) / T_{k+1},

in which B cancels. If the rung reads all data this is exact, and it costs nothing where the hotter rung does too:
density and gradient are kept beside the states. On batches both states are compared on one fresh batch, with the
penalty for its noise, which is small because only 1/T_k - 1/T_{k+1} multiplies it. Without floors (H = -inf) the rungs
are plainly tempered.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.acceptance.metropolis import Decision, decide, log_uniform
from mintmc.acceptance.minibatch import Common
from mintmc.data import Batch
from mintmc.energy import Density, Model, Truncated
from mintmc.kernels import metropolis
from mintmc.kernels.base import Info, Kernel
from mintmc.kernels.metropolis import State
from mintmc.ladder.rings import States, Store, ring_of
from mintmc.proposals import Point, Proposal


class Rung(NamedTuple):
    """Where a rung stands on its ladder, passed to each step, so that rungs alike but for this share one program."""

    temperature: Array
    floor: Array
    hotter_temperature: Array
    hotter_floor: Array
    jump_probability: Array


class Settings(NamedTuple):
    """What stays the same from step to step, and from rung to rung."""

    model: Model
    proposal: Proposal
    reference: Density
    penalised: bool
    batch_size: int | None  # None reads all data
    subset_size: int  # rows that tell the hotter rung's rings apart; 0 where its energies are exact
    dim: int
    dtype: Any
    temper: str = "posterior"


class Noise(NamedTuple):
    """The randomness of one step."""

    local: metropolis.Noise
    coin: Array
    pick: Array
    test: Array


class Outcome(NamedTuple):
    """What a move or a jump led to."""

    state: State
    decision: Decision
    touched: Array
    energy: Array
    is_empty: Array  # a jump found nothing in its ring


def randomness(key: Array, settings: Settings) -> Noise:
    """Everything random in one step but the batches."""
    local, coin, pick, test = jax.random.split(key, 4)
    return Noise(
        metropolis.randomness(local, _local(settings, None)),
        jax.random.uniform(coin, dtype=settings.dtype),
        jax.random.uniform(pick, dtype=settings.dtype),
        log_uniform(test, settings.dtype),
    )


def init(theta: Array, batch: Batch, settings: Settings) -> State:
    """The first state."""
    return metropolis.init(theta, batch, _local(settings, batch["rung"]))


def advance(noise: Noise, state: State, batch: Batch, tuning: Any, settings: Settings) -> tuple[State, Info]:
    """Jump if the coin says so, once the hotter rung has left anything; move locally otherwise."""
    jumps = (noise.coin < batch["rung"].jump_probability) & (batch["rings"].filled.sum() > 0)
    outcome = jax.lax.cond(
        jumps,
        lambda: _jump(noise, state, batch, settings),
        lambda: _move(noise.local, state, batch, tuning, settings),
    )
    decision, touched = outcome.decision, outcome.touched
    extras = {
        "jumps": jumps.astype(jnp.int32),
        "empty_rings": outcome.is_empty.astype(jnp.int32),
        "jump_rate": jnp.where(jumps, decision.acceptance_rate, 0),
        "jump_noise": jnp.where(jumps, decision.log_ratio_noise, 0),
    }
    snapshot = _snapshot(outcome, batch["rung"], settings)
    accepted, rate, log_ratio_noise, is_defined = decision[:4]
    density = outcome.state.point.density
    return outcome.state, Info(accepted, rate, log_ratio_noise, is_defined, touched, density, extras, snapshot)


def _local(settings: Settings, rung: Rung | None) -> metropolis.Settings:
    """The Metropolis kernel of this rung's local moves."""
    target = None if rung is None else _target(settings, rung)
    test = None if settings.batch_size is None else Common(settings.penalised)
    size = settings.batch_size or settings.model.n
    return metropolis.Settings(target, settings.proposal, test, size, settings.dim, settings.dtype)  # type: ignore[arg-type]


def _target(settings: Settings, rung: Rung, exchange: bool = False) -> Truncated:
    """Of local moves, or of jumps from the hotter rung."""
    terms = [(1 / rung.temperature, rung.floor)]
    if exchange:
        terms.append((-1 / rung.hotter_temperature, rung.hotter_floor))
    return Truncated(
        settings.model,
        rung.temperature,
        settings.temper,
        exchange,
        terms=tuple(terms),
        reference=settings.reference,
    )


def _move(noise: metropolis.Noise, state: State, batch: Batch, tuning: Any, settings: Settings) -> Outcome:
    local = _local(settings, batch["rung"])
    moved, info = metropolis.advance(noise, state, batch, tuning, local)
    decision = Decision(info.accepted, info.acceptance_rate, info.log_ratio_noise, info.is_defined)
    reference = settings.model.reference_rows(settings.batch_size or 0)
    touched = jnp.asarray((metropolis.data_per_step(local) or 0) + reference, jnp.int32)
    return Outcome(moved, decision, touched, _energy(state, moved, batch, settings), jnp.zeros((), bool))


def _jump(noise: Noise, state: State, batch: Batch, settings: Settings) -> Outcome:
    rung, store = batch["rung"], batch["rings"]
    ring = _ring(state.point, store, settings)
    # Then the chain stays where it is. A local move instead (as in Algorithm 2) would be made more often in empty rings
    # than in others, and so would not be reversible.
    is_empty = store.filled[ring] == 0
    log_uniform = jnp.where(is_empty, jnp.inf, noise.test)
    place = jnp.minimum((noise.pick * store.filled[ring]).astype(jnp.int32), store.filled[ring] - 1)
    target = _target(settings, rung, exchange=True)
    found = States.unpacked(store.states[ring, place], settings.dim, settings.model.log_jacobian is not None)
    theta = found.theta
    if settings.batch_size is not None:
        there = Point(theta)
        test = Common(settings.penalised)
        decision, _ = test.decide(log_uniform, state.point.theta, theta, 0.0, (), batch, target)
        touched = 2 * settings.batch_size + settings.model.reference_rows(settings.batch_size)
    else:
        if found.density is not None:
            gradient = found.gradient
            if gradient is not None:
                gradient = _target(settings, rung).base_gradient(theta) + gradient / rung.temperature
            there, touched = Point(theta, gradient, found.density), 0
        else:
            there = metropolis.visit(theta, batch, _local(settings, rung))
            touched = settings.model.n
        ratio = target.log_ratio(state.point.density, there.density)
        decision = decide(log_uniform, ratio, jnp.zeros_like(ratio))
    point = jax.tree.map(partial(jnp.where, decision.accepted), there, state.point)
    moved = state._replace(point=point)
    decision = decision._replace(acceptance_rate=jnp.where(is_empty, 0, decision.acceptance_rate))
    read = jnp.asarray(touched + settings.subset_size, jnp.int32)
    return Outcome(moved, decision, read, _energy(state, moved, batch, settings), is_empty)


def _ring(here: Point, store: Store, settings: Settings) -> Array:
    if store.edges.size == 0:
        return jnp.zeros((), jnp.int32)
    if store.subset is None:
        energy = here.density.energy_above(settings.reference, settings.temper)
    else:
        energy, _ = settings.model.energies_above(here.theta, store.subset, settings.reference, settings.temper)
    return ring_of(energy, store.edges).astype(jnp.int32)


def _energy(before: State, after: State, batch: Batch, settings: Settings) -> Array:
    """The energy to record: exact and of the new state, or estimated and of the old.

    A new state was accepted because of the batch of this step, which is therefore biased in its favour; the old state
    has not seen it.
    """
    if settings.batch_size is None:
        return after.point.density.energy_above(settings.reference, settings.temper)
    return settings.model.energies_above(before.point.theta, batch["test"], settings.reference, settings.temper)[0]


def _snapshot(outcome: Outcome, rung: Rung, settings: Settings) -> dict[str, Array]:
    shown = {"energy": outcome.energy}
    if settings.batch_size is None and settings.proposal.uses_gradient:
        here = outcome.state.point
        shown["gradient"] = (here.gradient - _target(settings, rung).base_gradient(here.theta)) * rung.temperature
    return shown


def kernel(settings: Settings) -> Kernel:
    """The kernel for the runner."""
    local = _local(settings, None)
    target_rate = settings.proposal.target_acceptance

    def lesson(state: State, info: Info) -> tuple[Array, Array]:
        # A jump says nothing about the step size.
        rate = jnp.where(info.extras["jumps"] > 0, target_rate, info.acceptance_rate)
        return rate, state.point.theta

    return Kernel(
        randomness=partial(randomness, settings=settings),
        init=partial(init, settings=settings),
        advance=partial(advance, settings=settings),
        position=lambda state: state.point.theta,
        batches=metropolis.batches(local),
        touched=None,
        init_touched=settings.model.n if settings.batch_size is None else 0,
        proposal=settings.proposal,
        lesson=lesson,
    )
