"""Metropolis-Hastings: a proposal times an acceptance test. On all data it is MCMC, on batches it is MINT.

A gradient proposal reads one gradient batch for the whole move, forwards and back, and an acceptance test on
batches reads an independent one: given the gradient batch, the proposal is then an ordinary q.

A proposed state whose prior is zero is rejected whatever likelihood and gradient are there, and is no undefined move.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.acceptance.metropolis import Decision, decide, log_uniform
from mintmc.acceptance.minibatch import AcceptanceTest
from mintmc.data import Batch
from mintmc.energy import Tempered
from mintmc.kernels.base import Info, Kernel
from mintmc.proposals import Point, Proposal, Tuning


class State(NamedTuple):
    """What the next step needs: the point, and what the acceptance test remembers of it."""

    point: Point
    memory: Any


class Noise(NamedTuple):
    """The randomness of one step."""

    proposal: Any
    test: Any


class Settings(NamedTuple):
    """What stays the same from step to step."""

    target: Tempered
    proposal: Proposal
    test: AcceptanceTest | None  # None decides exactly, on all data
    batch_size: int  # n on all data
    dim: int
    dtype: Any


def randomness(key: Array, settings: Settings) -> Noise:
    """Everything random in one step but the batches."""
    for_proposal, for_test = jax.random.split(key)
    test_noise = log_uniform if settings.test is None else settings.test.noise
    return Noise(
        settings.proposal.noise(for_proposal, settings.dim, settings.dtype), test_noise(for_test, settings.dtype)
    )


def init(theta: Array, batch: Batch, settings: Settings) -> State:
    """The first state."""
    settings = settings._replace(target=settings.target.informed(batch))
    if settings.test is None:
        return State(visit(theta, batch, settings), ())
    return State(Point(theta), settings.test.remember(theta, batch, settings.target))


def advance(noise: Noise, state: State, batch: Batch, tuning: Tuning, settings: Settings) -> tuple[State, Info]:
    """Propose, decide, move."""
    settings = settings._replace(target=settings.target.informed(batch))
    look = partial(visit, batch=batch, settings=settings)
    # On all data the target at the current state is known; on a fresh batch it is not.
    here = state.point if settings.test is None else look(state.point.theta)
    there, log_q = settings.proposal.move(noise.proposal, here, look, tuning)
    decision, memory = _decide(noise.test, here, there, log_q, state.memory, batch, settings)
    kept = there if settings.test is None else Point(there.theta)
    moved = State(jax.tree.map(partial(jnp.where, decision.accepted), kept, state.point), memory)
    touched = decision.data_touched
    if touched is not None:
        touched = touched + gradients_per_step(settings) * settings.batch_size
    return moved, Info(*decision[:4], touched, moved.point.density, decision.extras)


def visit(theta: Array, batch: Batch, settings: Settings) -> Point:
    """What the proposal and the test need to know of a state."""
    target, with_gradient = settings.target, settings.proposal.uses_gradient
    if settings.test is not None:
        return Point(theta, target.batch_gradient(theta, batch["gradient"]) if with_gradient else None)
    if with_gradient:
        density, gradient = target.full_gradient(theta, batch["all"])
        return Point(theta, gradient, density)
    return Point(theta, None, target.model.density(theta, batch["all"]))


def _decide(noise, here, there, log_q, memory, batch, settings) -> tuple[Decision, Any]:
    if settings.test is None:
        ratio = settings.target.log_ratio(here.density, there.density)
        # Nothing makes up for a density of zero, not even a log q that is not a number.
        ratio = jnp.where(ratio == -jnp.inf, ratio, ratio + log_q)
        return decide(noise, ratio, jnp.zeros_like(ratio)), ()
    decision, memory = settings.test.decide(noise, here.theta, there.theta, log_q, memory, batch, settings.target)
    return impossible(decision, ~settings.target.model.is_possible(there.theta)), memory


def impossible(decision: Decision, where: Array) -> Decision:
    """The decision, but a certain rejection ``where`` the prior of the proposed state is zero."""
    return decision._replace(
        accepted=decision.accepted & ~where,
        acceptance_rate=jnp.where(where, 0, decision.acceptance_rate),
        log_ratio_noise=jnp.where(where, 0, decision.log_ratio_noise),
        is_defined=decision.is_defined | where,
    )


def batches(settings: Settings) -> dict[str, int]:
    """The batches that a step reads."""
    if settings.test is None:
        return {"all": settings.batch_size}
    roles = (*settings.test.roles, *(("gradient",) if settings.proposal.uses_gradient else ()))
    return {role: settings.target.model.n if role == "all" else settings.batch_size for role in roles}


def gradients_per_step(settings: Settings) -> int:
    """Gradients on a batch that a move needs: those of all states visited, of the first, and of a centre."""
    states = settings.proposal.visits + 1 if settings.proposal.uses_gradient else 0
    return states * (1 + settings.target.beside)


def data_per_step(settings: Settings) -> int | None:
    """Data points read in one step: both ends of a comparison, gradients, everything; None if it varies."""
    if settings.test is None:
        return settings.proposal.visits * settings.batch_size
    if settings.test.touches is None:
        return None
    return (settings.test.touches + settings.target.beside + gradients_per_step(settings)) * settings.batch_size


def kernel(settings: Settings) -> Kernel:
    """The kernel for the runner."""
    return Kernel(
        randomness=partial(randomness, settings=settings),
        init=partial(init, settings=settings),
        advance=partial(advance, settings=settings),
        position=lambda state: state.point.theta,
        batches=batches(settings),
        touched=data_per_step(settings),
        init_touched=settings.batch_size if settings.test is None else settings.test.init_touches * settings.batch_size,
        proposal=settings.proposal,
        moves={} if settings.test is None or "all" in settings.test.roles else {0: settings},
    )
