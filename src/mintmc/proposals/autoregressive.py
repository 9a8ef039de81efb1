"""Autoregressive proposal around the Laplace approximation N(c, L L') (preconditioned Crank-Nicolson).

    theta' = c + rho (theta - c) + sqrt(1 - rho^2) L z,      z ~ N(0, I)

is reversible with respect to N(c, L L'), so log q(theta' -> theta) - log q(theta -> theta') = log N(theta) - log
N(theta'): what is left to decide is the target over its approximation, which hardly varies where many observations make
the two alike. rho = 0 draws from the approximation itself (an independence sampler). Exact for any target; it mixes
badly where the target has heavier tails than N(c, L L'), and shows it by rejections.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import check
from mintmc.proposals.base import Point, Proposal, Visit
from mintmc.proposals.tuning import LAPLACE, Tuning
from mintmc.shapes import Scalar, Vector


@dataclass(frozen=True)
class Autoregressive(Proposal):
    """Moves around the Laplace approximation of the target at its mode.

    Parameters
    ----------
    persistence
        rho in [0, 1), the share of the way from the centre that a move keeps; 0 draws from the approximation. None
        adapts it in warm-up: 0 wherever moves are accepted more often than ``target_acceptance``.
    target_acceptance
        The mean acceptance rate that adaptation aims at.

    Examples
    --------
    >>> import mintmc
    >>> mintmc.Autoregressive(persistence=0.6).step_size
    0.8
    """

    persistence: float | None = None
    _: KW_ONLY
    target_acceptance: float = 0.5

    preconditioner: ClassVar[str] = LAPLACE
    uses_gradient: ClassVar[bool] = False
    visits: ClassVar[int] = 1
    largest_step: ClassVar[float] = 1.0
    is_around: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check.plain(self)
        if self.persistence is not None:
            check.number("persistence", self.persistence, 0, 1, closed=(True, False))
        check.number("target_acceptance", self.target_acceptance, 0, 1)

    @property
    def step_size(self) -> float | None:
        """sqrt(1 - rho^2), what adaptation works on; None to adapt it."""
        return None if self.persistence is None else (1 - self.persistence**2) ** 0.5

    def randomness(self, key: Array, dim: int, dtype: Any) -> Vector:
        """A standard normal vector."""
        return jax.random.normal(key, (dim,), dtype)

    def move(self, randomness: Vector, here: Point, visit: Visit, tuning: Tuning) -> tuple[Point, Scalar]:
        """Towards the centre, and away from it at random."""
        assert tuning.laplace is not None
        centre, factor, precision = tuning.laplace
        offset = here.theta - centre
        kept = jnp.sqrt(1 - tuning.step_size**2)
        theta = centre + (kept * offset + tuning.step_size * (factor @ randomness))
        # From the states as they are rounded, so that nothing is lost where a deviation is a few hundred floats wide.
        step, offsets = theta - here.theta, offset + (theta - centre)
        return visit(theta), 0.5 * jnp.vdot(step, precision @ offsets)

    def unit_step(self, dim: int) -> float:
        """Draws from the approximation."""
        return 1.0
