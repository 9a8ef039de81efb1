"""The exact test: Metropolis on all data.

What is known of the current state, its density and its gradient, stays known until the chain moves, so a step reads
all data once for every state that its proposal visits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array

from mintmc.acceptance.base import AcceptanceTest, decide
from mintmc.data import Batch
from mintmc.energy import Tempered
from mintmc.proposals import Point, Proposal
from mintmc.statistics import Info


@dataclass(frozen=True)
class Exact(AcceptanceTest):
    """Both ends on all data."""

    roles: ClassVar[tuple[str, ...]] = ("all",)
    is_exact: ClassVar[bool] = True

    def visit(self, theta: Array, batch: Batch, target: Tempered, with_gradient: bool) -> Point:
        """Density, and gradient where it is asked for, in one pass."""
        if with_gradient:
            density, gradient = target.full_gradient(theta, batch["all"])
            return Point(theta, gradient, density)
        return Point(theta, None, target.model.density(theta, batch["all"]))

    def decide(
        self,
        randomness: Array,
        here: Point,
        there: Point,
        log_q: Array,
        memory: tuple[Any, ...],
        batch: Batch,
        target: Tempered,
    ) -> tuple[Info, tuple[Any, ...]]:
        """Metropolis; nothing makes up for a density of zero, not even a log q that is not a number."""
        ratio = target.log_ratio(here.density, there.density)
        ratio = jnp.where(ratio == -jnp.inf, ratio, ratio + log_q)
        return decide(randomness, ratio, jnp.zeros_like(ratio)), memory

    def rows_of_step(self, proposal: Proposal, visits: int, batch_size: int, target: Tempered) -> int:
        """All data for every state visited; what is known of the first one is kept."""
        return visits * batch_size

    def rows_of_init(self, batch_size: int) -> int:
        """One pass for the first state."""
        return batch_size
