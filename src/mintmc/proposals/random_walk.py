"""Gaussian random walk: theta' = theta + step * S z, z ~ N(0, I). Symmetric, so q cancels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.proposals.base import Point, Proposal, Visit, check_proposal
from mintmc.proposals.tuning import Preconditioner, Tuning, spread
from mintmc.shapes import Scalar, Vector


@dataclass(frozen=True)
class RandomWalk(Proposal):
    """Gaussian random-walk proposal.

    Parameters
    ----------
    step_size
        Standard deviation of a step in every (preconditioned) coordinate; None adapts it in warm-up.
    target_acceptance
        The mean acceptance rate that adaptation aims at.
    preconditioner
        None, "diagonal" or "dense" (adapted in warm-up), "laplace" (the inverse curvature at the mode), or a vector of
        variances or a covariance matrix.

    Examples
    --------
    >>> import mintmc
    >>> mintmc.RandomWalk(step_size=0.1)
    RandomWalk(step_size=0.1, target_acceptance=0.3, preconditioner=None)
    """

    step_size: float | None = None
    _: KW_ONLY
    target_acceptance: float = 0.30
    preconditioner: Preconditioner = None

    uses_gradient: ClassVar[bool] = False
    visits: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_proposal(self)

    def randomness(self, key: Array, dim: int, dtype: Any) -> Vector:
        """A standard normal vector."""
        return jax.random.normal(key, (dim,), dtype)

    def move(self, randomness: Vector, here: Point, visit: Visit, tuning: Tuning) -> tuple[Point, Scalar]:
        """One step in a random direction."""
        theta = here.theta + spread(tuning.scale, tuning.step_size * randomness)
        return visit(theta), jnp.zeros((), theta.dtype)

    def unit_step(self, dim: int) -> float:
        """The optimal scaling of Roberts, Gelman & Gilks (1997)."""
        result: float = 2.38 / dim**0.5
        return result
