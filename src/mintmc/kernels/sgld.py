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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.acceptance.base import chosen, decided
from mintmc.data import Batch
from mintmc.energy import Tempered
from mintmc.kernels.base import Kernel
from mintmc.kernels.schedule import StepSize, step_at
from mintmc.proposals.tuning import gather, spread
from mintmc.statistics import DECIDED, Info, Statistic

STATISTICS = (*DECIDED, Statistic("step_size"))


class State(NamedTuple):
    """What the next step needs."""

    theta: Array
    time: Array  # steps made since the run began: where the schedule stands


@dataclass(frozen=True)
class SGLDKernel(Kernel):
    """One step along the estimated gradient, with noise."""

    target: Tempered
    step_size: StepSize
    scale: Array | None  # S, a square root of the preconditioner M = S S'
    batch_size: int
    dim: int
    dtype: Any

    statistics = STATISTICS
    proposal = None

    def randomness(self, key: Array) -> Array:
        """A standard normal vector."""
        return jax.random.normal(key, (self.dim,), self.dtype)

    def init(self, theta: Array, batch: Batch) -> State:
        """The first state; reads no data."""
        return State(theta, jnp.zeros((), jnp.int32))

    def advance(self, randomness: Array, state: State, batch: Batch, tuning: None) -> tuple[State, Info]:
        """One step along the estimated gradient, with noise."""
        step_size = step_at(self.step_size, state.time, self.dtype)
        gradient = estimate_gradient(state.theta, batch, self.target)
        shift = 0.5 * step_size * gather(self.scale, gradient) + jnp.sqrt(step_size) * randomness
        return settle(state, State(state.theta + spread(self.scale, shift), state.time + 1), step_size)

    def position(self, state: State) -> Array:
        """Where a state is."""
        return state.theta

    @property
    def temperatures(self) -> Any:
        """That of the target."""
        return self.target.temperature

    @property
    def batches(self) -> dict[str, int]:
        """The batch that a step reads."""
        return batches(self.batch_size, self.target.model.n)

    @property
    def touched(self) -> int:
        """The rows of its batch, at the state and at the centre of an expansion if there is one."""
        return self.batch_size * (1 + self.target.beside)

    def audited(self) -> Mapping[int, Kernel]:
        """Itself: how large its steps are is judged afterwards."""
        return {0: self}

    def linear_update(self, step: float, precision: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A and Q of x <- A x + N(0, Q) where the target is normal and its gradient has covariance ``noise``."""
        root = np.eye(self.dim) if self.scale is None else np.asarray(self.scale, float)
        root = np.diag(root) if root.ndim == 1 else root
        preconditioner = root @ root.T
        update = np.eye(self.dim) - step / 2 * preconditioner @ precision
        return update, step * preconditioner + step**2 / 4 * preconditioner @ noise @ preconditioner


def estimate_gradient(theta: Array, batch: Batch, target: Tempered) -> Array:
    """Gradient of the log target on the batch of this step; exact if that is all data."""
    if "all" in batch:
        return target.full_gradient(theta, batch["all"])[1]
    return target.informed(batch).batch_gradient(theta, batch["gradient"])


def settle(before: Any, after: Any, step_size: Array) -> tuple[Any, Info]:
    """The state after a step, and its record: there is no test, every step is taken that leads to a finite state."""
    is_defined = jnp.isfinite(after.theta).all()
    # Code under jit cannot raise, and a NaN would stay for ever: the old state is kept, and time goes on.
    settled = chosen(is_defined, after, before._replace(time=after.time))
    rate = is_defined.astype(step_size.dtype)
    return settled, decided(is_defined, rate, jnp.zeros_like(rate), is_defined) | {"step_size": step_size}


def batches(batch_size: int, n: int) -> dict[str, int]:
    """The batch that a step reads: all rows need neither shuffling nor gathering."""
    return {"all" if batch_size == n else "gradient": batch_size}
