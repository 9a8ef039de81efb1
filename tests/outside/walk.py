"""A proposal: a random walk whose steps are Cauchy, so that some are long. Symmetric, so q cancels."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from mintmc.protocols import Proposal


@dataclass(frozen=True)
class CauchyWalk(Proposal):
    """theta' = theta + step * Cauchy."""

    step_size: float | None = None
    target_acceptance: float = 0.3
    preconditioner: ClassVar[None] = None
    uses_gradient: ClassVar[bool] = False
    visits: ClassVar[int] = 1

    def randomness(self, key, dim, dtype):
        return jax.random.cauchy(key, (dim,), dtype)

    def move(self, randomness, here, visit, tuning):
        return visit(here.theta + tuning.step_size * randomness), jnp.zeros((), here.theta.dtype)

    def unit_step(self, dim):
        return 1.0 / dim
