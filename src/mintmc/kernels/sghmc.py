"""Stochastic gradient Hamiltonian Monte Carlo, with friction and no test (Chen, Fox & Guestrin 2014).

With momentum r of unit mass, friction C and g an estimate of grad log pi_T on a fresh batch,

    r     <- r + eps g(theta) - eps C r + N(0, 2 eps (C - B)),      B = eps V/2,
    theta <- theta + eps r.

Gradient noise of variance V adds eps^2 V = 2 eps B to the variance of r; that much less is injected, so the sum is the
2 eps C that friction takes out. Needs C >= B. V is what the user says it is; with V = 0 the gradient noise comes on
top.

Never exact at a constant step. Where pi_T is normal with precision H and g has the true variance W, the update of
(theta, r) is linear, and the draws have variance

    (1/H) (1 + eps (W - V) / (2 C)) / (1 - eps^2 H / (4 - 2 eps C)),

so with V = W the error is of order eps^2, with V = 0 of order eps; above eps^2 H = 4 - 2 eps C the chain diverges. At
eps C = 1 no momentum is left, and it is SGLD of step 2 eps^2.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.data import Batch
from mintmc.energy import Tempered
from mintmc.kernels.base import Info, Kernel
from mintmc.kernels.schedule import StepSize, step_at
from mintmc.kernels.sgld import batches, estimate_gradient, settle


class State(NamedTuple):
    """What the next step needs."""

    theta: Array
    momentum: Array
    time: Array  # steps made since the run began: where the schedule stands


class Noise(NamedTuple):
    """The randomness of one step."""

    push: Array
    momentum: Any  # a fresh momentum; None if it is never resampled


class Settings(NamedTuple):
    """What stays the same from step to step."""

    target: Tempered
    step_size: StepSize
    friction: float
    noise_estimate: Array  # V, a scalar or one for each parameter
    resample_every: int | None
    batch_size: int
    dim: int
    dtype: Any


def randomness(key: Array, settings: Settings) -> Noise:
    """Standard normal vectors."""
    for_push, for_momentum = jax.random.split(key)
    normal = partial(jax.random.normal, shape=(settings.dim,), dtype=settings.dtype)
    return Noise(normal(for_push), None if settings.resample_every is None else normal(for_momentum))


def init(theta: Array, batch: Batch) -> State:
    """The first state, at rest; reads no data."""
    return State(theta, jnp.zeros_like(theta), jnp.zeros((), jnp.int32))


def advance(noise: Noise, state: State, batch: Batch, tuning: None, settings: Settings) -> tuple[State, Info]:
    """Push the momentum, then move with it."""
    step_size = step_at(settings.step_size, state.time, settings.dtype)
    momentum = state.momentum
    if settings.resample_every is not None:
        momentum = jnp.where(state.time % settings.resample_every == 0, noise.momentum, momentum)
    gradient = estimate_gradient(state.theta, batch, settings.target)
    # At the allowed limit C = B rounding could make the difference negative.
    injected = jnp.maximum(settings.friction - 0.5 * step_size * settings.noise_estimate, 0)
    push = step_size * (gradient - settings.friction * momentum) + jnp.sqrt(2 * step_size * injected) * noise.push
    momentum = momentum + push
    return settle(state, State(state.theta + step_size * momentum, momentum, state.time + 1), step_size)


def kernel(settings: Settings) -> Kernel:
    """The kernel for the runner."""
    return Kernel(
        randomness=partial(randomness, settings=settings),
        init=init,
        advance=partial(advance, settings=settings),
        position=lambda state: state.theta,
        batches=batches(settings.batch_size, settings.target.model.n),
        touched=settings.batch_size * (1 + settings.target.beside),
        init_touched=0,
        proposal=None,
        moves={0: settings},
    )
