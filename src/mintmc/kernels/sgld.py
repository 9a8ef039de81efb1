"""Stochastic gradient Langevin dynamics: a gradient step on a batch, with noise, and no test (Welling & Teh 2011).

    theta <- theta + eps_t/2 * M g(theta) + N(0, eps_t M),      E g = grad log pi_T,

g on a fresh batch, scaled in ``energy.py``; M = 1 unless a preconditioner is given. On all data this is unadjusted
Langevin.

Never exact at a constant step. Where pi_T is normal with precision H and g has variance V (M = 1), the draws have
variance

    (1/H) (1 + eps V/4) / (1 - eps H/4),

so the error is the larger, the larger the step and the noisier the batch; above eps = 4/H the chain diverges. With
decreasing steps the averages weighted by eps_t converge to those of pi_T (Teh, Thiery & Vollmer 2016).

Note the conventions: others write s = eps/2, that is drift s g and noise N(0, 2 s). Drift eps g with noise N(0, eps)
samples pi_T^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.data import Batch
from mintmc.energy import Tempered
from mintmc.kernels.schedule import StepSize, step_at
from mintmc.kernels.stochastic_gradient import StochasticGradientKernel, settle
from mintmc.proposals.tuning import gather, spread
from mintmc.statistics import Info


class State(NamedTuple):
    """What the next step needs."""

    theta: Array
    time: Array  # steps made since the run began: where the schedule stands


@dataclass(frozen=True)
class SGLDKernel(StochasticGradientKernel):
    """One step along the estimated gradient, with noise."""

    target: Tempered
    step_size: StepSize
    scale: Array | None  # S, a square root of the preconditioner M = S S'
    batch_size: int
    dim: int
    dtype: Any

    def randomness(self, key: Array) -> Array:
        """A standard normal vector."""
        return jax.random.normal(key, (self.dim,), self.dtype)

    def init(self, theta: Array, batch: Batch) -> State:
        """The first state; reads no data."""
        return State(theta, jnp.zeros((), jnp.int32))

    def advance(self, randomness: Array, state: State, batch: Batch, tuning: None) -> tuple[State, Info]:
        """One step along the estimated gradient, with noise."""
        step_size = step_at(self.step_size, state.time, self.dtype)
        gradient = self.gradient(state.theta, batch)
        shift = 0.5 * step_size * gather(self.scale, gradient) + jnp.sqrt(step_size) * randomness
        return settle(state, State(state.theta + spread(self.scale, shift), state.time + 1), step_size)

    def linear_update(self, step: float, precision: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A and Q of x <- A x + N(0, Q) where the target is normal and its gradient has covariance ``noise``."""
        root = np.eye(self.dim) if self.scale is None else np.asarray(self.scale, float)
        root = np.diag(root) if root.ndim == 1 else root
        preconditioner = root @ root.T
        update = np.eye(self.dim) - step / 2 * preconditioner @ precision
        return update, step * preconditioner + step**2 / 4 * preconditioner @ noise @ preconditioner
