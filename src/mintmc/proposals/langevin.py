"""Langevin proposal (MALA): in whitened coordinates v = e^2/2 S'g(theta) + e z, and theta' = theta + S v.

The way back would need z' = -(v + e^2/2 S'g(theta')) / e, so log q(theta' -> theta) - log q(theta -> theta')
= (|z|^2 - |z'|^2) / 2. Both gradients must come from the same batch: given the batch, the proposal is then an ordinary
one.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.proposals.base import Point, Proposal, Visit, check_proposal
from mintmc.proposals.tuning import Preconditioner, Tuning, gather, spread
from mintmc.shapes import Scalar, Vector


@dataclass(frozen=True)
class Langevin(Proposal):
    """Metropolis-adjusted Langevin proposal.

    Parameters
    ----------
    step_size
        e in theta' = theta + e^2/2 C grad log pi_T + e N(0, C); None adapts it in warm-up.
    target_acceptance
        The mean acceptance rate that adaptation aims at.
    preconditioner
        C: None, "diagonal" or "dense" (adapted in warm-up), "laplace" (the inverse curvature at the mode), or a vector
        of variances or a covariance matrix.

    Examples
    --------
    >>> import mintmc
    >>> mintmc.Langevin(preconditioner="diagonal")
    Langevin(step_size=None, target_acceptance=0.5, preconditioner='diagonal')
    """

    step_size: float | None = None
    _: KW_ONLY
    target_acceptance: float = 0.5
    preconditioner: Preconditioner = None

    uses_gradient: ClassVar[bool] = True
    visits: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_proposal(self)

    def randomness(self, key: Array, dim: int, dtype: Any) -> Vector:
        """A standard normal vector."""
        return jax.random.normal(key, (dim,), dtype)

    def move(self, randomness: Vector, here: Point, visit: Visit, tuning: Tuning) -> tuple[Point, Scalar]:
        """One step along the gradient, with noise."""
        step, scale = tuning.step_size, tuning.scale
        shift = 0.5 * step**2 * gather(scale, here.gradient) + step * randomness
        there = visit(here.theta + spread(scale, shift))
        back = -(shift + 0.5 * step**2 * gather(scale, there.gradient)) / step
        return there, 0.5 * (jnp.vdot(randomness, randomness) - jnp.vdot(back, back))

    def unit_step(self, dim: int) -> float:
        """The optimal scaling of Roberts & Rosenthal (1998)."""
        result: float = 1.65 / dim ** (1 / 6)
        return result
