"""Hamiltonian proposal: a leapfrog trajectory, volume-preserving and reversible, from a fresh momentum r ~ N(0, I).

In whitened coordinates: r += e/2 S'g; theta += e S r; ...; r += e/2 S'g. The ratio of momentum densities
(|r_0|^2 - |r_L|^2) / 2 plays the part of log q. One gradient batch serves the whole trajectory; changing it
midway would break reversibility (Betancourt 2015).

Each trajectory's steps are longer or shorter by up to a fifth, at random: one of fixed length may be a multiple of half
a period of the target and come back to where it began, or to the other side, for ever (Neal 2011; on a normal
distribution in two dimensions it left 330 of 6,000 draws' worth). What is drawn before the chain is looked at keeps it
exact.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import check
from mintmc.proposals.base import Point, Proposal, Visit, check_proposal
from mintmc.proposals.tuning import Preconditioner, Tuning, gather, spread
from mintmc.shapes import Scalar, Vector

_STRETCH = 0.2


class Randomness(NamedTuple):
    """All random numbers of one trajectory."""

    momentum: Vector
    stretch: Scalar  # of its steps


@dataclass(frozen=True)
class Hamiltonian(Proposal):
    """Hamiltonian Monte Carlo with a fixed number of leapfrog steps.

    Parameters
    ----------
    step_size
        Length of one leapfrog step, of all trajectories in the mean; None adapts it in warm-up.
    steps
        Leapfrog steps in one trajectory.
    target_acceptance
        The mean acceptance rate that adaptation aims at.
    preconditioner
        Inverse mass matrix: None, "diagonal" or "dense" (adapted in warm-up), "laplace" (the inverse curvature at the
        mode), or given.

    Examples
    --------
    >>> import mintmc
    >>> mintmc.Hamiltonian(steps=5).visits
    5
    """

    step_size: float | None = None
    _: KW_ONLY
    steps: int = 10
    target_acceptance: float = 0.65
    preconditioner: Preconditioner = None

    uses_gradient: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_proposal(self)
        check.integer("steps", self.steps, 1, most=check.LARGEST_COUNT)

    @property
    def visits(self) -> int:
        """One state a leapfrog step."""
        return self.steps

    def randomness(self, key: Array, dim: int, dtype: Any) -> Randomness:
        """The momentum, and how long the steps are."""
        stretch = jax.random.uniform(jax.random.fold_in(key, 1), (), dtype, 1 - _STRETCH, 1 + _STRETCH)
        return Randomness(jax.random.normal(key, (dim,), dtype), stretch)

    def move(self, randomness: Randomness, here: Point, visit: Visit, tuning: Tuning) -> tuple[Point, Scalar]:
        """The end of the trajectory."""
        step, scale, first = tuning.step_size * randomness.stretch, tuning.scale, randomness.momentum

        def leapfrog(_: Any, carry: tuple[Point, Array]) -> tuple[Point, Array]:
            point, momentum = carry
            momentum = momentum + 0.5 * step * gather(scale, point.gradient)
            point = visit(point.theta + spread(scale, step * momentum))
            return point, momentum + 0.5 * step * gather(scale, point.gradient)

        there, momentum = jax.lax.fori_loop(0, self.steps, leapfrog, (here, first))
        return there, 0.5 * (jnp.vdot(first, first) - jnp.vdot(momentum, momentum))

    def unit_step(self, dim: int) -> float:
        """A trajectory of unit length or so, shorter steps in higher dimension (Beskos et al. 2013)."""
        result: float = 1.0 / dim**0.25
        return result
