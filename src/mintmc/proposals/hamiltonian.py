"""Hamiltonian proposal: a leapfrog trajectory, volume-preserving and reversible, from a fresh momentum r ~ N(0, I).

In whitened coordinates: r += e/2 S'g; theta += e S r; ...; r += e/2 S'g. The ratio of momentum densities
(|r_0|^2 - |r_L|^2) / 2 plays the part of log q. One gradient batch serves the whole trajectory; changing it
midway would break reversibility (Betancourt 2015).

A trajectory of fixed length may be a multiple of half a period of the target and come back to where it began, or to the
other side, for ever (Neal 2011). So its length t is drawn, and its steps are longer or shorter by up to a fifth. Along
a direction of standard deviation s of a normal target a trajectory leaves a correlation of cos(t/s), and of cos^2(t/s)
between squares: both vanish at t = pi/2 s. With t uniform on (0.3 pi, 0.7 pi) standard deviations of the longest
direction, as warm-up has measured it, their means are 0 and 0.12 there, and that of cos(t/s) is at most 0.28 along any
shorter one. The number of steps is t over the adapted step, and at most ``steps``. What is drawn before the chain is
looked at, and what stays as it is after warm-up, keeps it exact.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import check
from mintmc.proposals.base import Point, Proposal, Visit, check_proposal
from mintmc.proposals.tuning import ADAPTED, AUTO, LAPLACE, Preconditioner, Tuning, gather, spread, suited
from mintmc.shapes import Scalar, Vector

_STRETCH = 0.2
_SHORTEST, _LONGEST = 0.3 * math.pi, 0.7 * math.pi
"""Trajectories, in standard deviations of the longest direction."""
_MOST_STEPS = 2**16
"""What ``count.multiple`` can count."""


class Randomness(NamedTuple):
    """All random numbers of one trajectory."""

    momentum: Vector
    stretch: Scalar  # of its steps
    share: Any = 1.0  # of the longest trajectory


@dataclass(frozen=True)
class Hamiltonian(Proposal):
    """Hamiltonian Monte Carlo with trajectories of random length.

    Parameters
    ----------
    step_size
        Length of one leapfrog step, of all trajectories in the mean; None adapts it in warm-up.
    steps
        The most leapfrog steps in one trajectory. Each makes a random number of them: as many as go 0.3 pi to 0.7 pi
        standard deviations along the target's longest direction, by what warm-up has seen, or 3/7 ``steps`` to
        ``steps`` where these are fewer or nothing is known. A large number costs nothing where fewer are enough.
    target_acceptance
        The mean acceptance rate that adaptation aims at.
    preconditioner
        Inverse mass matrix: None, "diagonal" or "dense" (adapted in warm-up), "laplace" (the inverse curvature at the
        mode), or given. "auto" is "dense" up to 50 parameters and "diagonal" beyond; it is None with a given
        ``step_size``, which is then one of the parameters themselves, and where chains go from mode to mode (ladders,
        ``Leaps``), so that their covariance is not that of a mode.

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
    preconditioner: Preconditioner = AUTO

    uses_gradient: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_proposal(self, (AUTO, *ADAPTED, LAPLACE))
        check.integer("steps", self.steps, 1, most=_MOST_STEPS)

    @property
    def visits(self) -> int:
        """One state a leapfrog step, at most."""
        return self.steps

    @property
    def varies(self) -> bool:
        """Trajectories differ in length."""
        return self.steps > 1

    @property
    def adapts_path(self) -> bool:
        """Whether there is a length to choose."""
        return self.steps > 1

    def settled(self, dim: int, several_modes: bool) -> Hamiltonian:
        """With the preconditioner chosen."""
        return replace(self, preconditioner=suited(self.preconditioner, self.step_size, dim, several_modes))

    def randomness(self, key: Array, dim: int, dtype: Any) -> Randomness:
        """The momentum, how long the steps are, and how many."""
        stretch = jax.random.uniform(jax.random.fold_in(key, 1), (), dtype, 1 - _STRETCH, 1 + _STRETCH)
        share = jax.random.uniform(jax.random.fold_in(key, 2), (), dtype)
        return Randomness(jax.random.normal(key, (dim,), dtype), stretch, share)

    def visited(self, randomness: Randomness, tuning: Tuning) -> Any:
        """The number of steps: a random length over the adapted step."""
        if not self.varies:
            return self.steps
        most: Any = float(self.steps)
        if tuning.path is not None:  # infinite while it is not known
            most = jnp.fmin(_LONGEST * tuning.path / tuning.step_size, most)
        drawn = most * (_SHORTEST / _LONGEST + (1 - _SHORTEST / _LONGEST) * randomness.share)
        return jnp.clip(jnp.round(drawn), 1, self.steps).astype(jnp.int32)

    def move(self, randomness: Randomness, here: Point, visit: Visit, tuning: Tuning) -> tuple[Point, Scalar]:
        """The end of the trajectory."""
        step, scale, first = tuning.step_size * randomness.stretch, tuning.scale, randomness.momentum

        def leapfrog(_: Any, carry: tuple[Point, Array]) -> tuple[Point, Array]:
            point, momentum = carry
            momentum = momentum + 0.5 * step * gather(scale, point.gradient)
            point = visit(point.theta + spread(scale, step * momentum))
            return point, momentum + 0.5 * step * gather(scale, point.gradient)

        there, momentum = jax.lax.fori_loop(0, self.visited(randomness, tuning), leapfrog, (here, first))
        return there, 0.5 * (jnp.vdot(first, first) - jnp.vdot(momentum, momentum))

    def unit_step(self, dim: int) -> float:
        """A trajectory of unit length or so, shorter steps in higher dimension (Beskos et al. 2013)."""
        result: float = 1.0 / dim**0.25
        return result
