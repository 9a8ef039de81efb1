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

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.data import Batch
from mintmc.energy import Tempered
from mintmc.kernels.schedule import StepSize, step_at
from mintmc.kernels.stochastic_gradient import StochasticGradientKernel, settle
from mintmc.statistics import Info


class State(NamedTuple):
    """What the next step needs."""

    theta: Array
    momentum: Array
    time: Array  # steps made since the run began: where the schedule stands


class Randomness(NamedTuple):
    """All random numbers of one step but its batch."""

    push: Array
    momentum: Any  # a fresh momentum; None if it is never resampled


@dataclass(frozen=True)
class SGHMCKernel(StochasticGradientKernel):
    """Push the momentum, then move with it."""

    target: Tempered
    step_size: StepSize
    friction: float
    noise_estimate: Array  # V, a scalar or one for each parameter
    resample_every: int | None
    batch_size: int
    dim: int
    dtype: Any

    def randomness(self, key: Array) -> Randomness:
        """Standard normal vectors."""
        for_push, for_momentum = jax.random.split(key)
        normal = partial(jax.random.normal, shape=(self.dim,), dtype=self.dtype)
        return Randomness(normal(for_push), None if self.resample_every is None else normal(for_momentum))

    def init(self, theta: Array, batch: Batch) -> State:
        """The first state, at rest; reads no data."""
        return State(theta, jnp.zeros_like(theta), jnp.zeros((), jnp.int32))

    def advance(self, randomness: Randomness, state: State, batch: Batch, tuning: None) -> tuple[State, Info]:
        """Push the momentum, then move with it."""
        step_size = step_at(self.step_size, state.time, self.dtype)
        momentum = state.momentum
        if self.resample_every is not None:
            momentum = jnp.where(state.time % self.resample_every == 0, randomness.momentum, momentum)
        gradient = self.gradient(state.theta, batch)
        # At the allowed limit C = B rounding could make the difference negative.
        injected = jnp.maximum(self.friction - 0.5 * step_size * self.noise_estimate, 0)
        kick = jnp.sqrt(2 * step_size * injected) * randomness.push
        momentum = momentum + (step_size * (gradient - self.friction * momentum) + kick)
        return settle(state, State(state.theta + step_size * momentum, momentum, state.time + 1), step_size)

    def linear_update(self, step: float, precision: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A and Q of x <- A x + N(0, Q), x = (theta, r), where the target is normal; see ``SGLDKernel``."""
        one = np.eye(self.dim)
        kept = 1 - step * self.friction
        update = np.block([[one - step**2 * precision, step * kept * one], [-step * precision, kept * one]])
        injected = np.maximum(self.friction - step * np.asarray(self.noise_estimate, float) / 2, 0)
        pushed = 2 * step * injected * one + step**2 * noise
        return update, np.kron([[step**2, step], [step, 1.0]], pushed)
