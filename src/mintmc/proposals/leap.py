"""A leap: to the same place within another mode, or to a fresh one.

*affine*: y = mu_k + L_k L_i^-1 (x - mu_i), with i the mode of x and k another one, each as likely: q is a Jacobian,
|L_k| / |L_i|. *independent*: y = mu_k + L_k z, z multivariate t: q is Q_i(x) / Q_k(y). Either is a move only if y
belongs to mode k, otherwise the chain could not come back; then it stays where it is, and nothing is evaluated.

Exact for any fixed means and scales; bad ones cost acceptance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.modes.label import FREEDOM, Landscape
from mintmc.proposals.base import Point, Proposal, Visit
from mintmc.proposals.tuning import Tuning
from mintmc.shapes import Scalar, Vector


class Randomness(NamedTuple):
    """All random numbers of one leap."""

    uniform: Array
    fresh: Array | None  # (d,) multivariate t


class Way(NamedTuple):
    """Where a leap would lead."""

    mode: Array
    to: Array
    theta: Array
    log_q: Array
    is_possible: Array  # whether it could come back
    log_fit: tuple[Array, Array]  # log density of all fitted modes together, here and there


@dataclass(frozen=True)
class Leap(Proposal):
    """From mode to mode; the modes are in the tuning."""

    is_independent: bool = False
    uses_gradient: bool = False  # whether whoever moves on from there needs it
    step_size: ClassVar[float] = 1.0
    target_acceptance: ClassVar[float] = 0.5
    preconditioner: ClassVar[None] = None
    visits: ClassVar[int] = 1

    def randomness(self, key: Array, dim: int, dtype: Any) -> Randomness:
        """Which mode, and where in it if not at the same place."""
        which, where, width = jax.random.split(key, 3)
        fresh = student(where, width, dim, dtype) if self.is_independent else None
        return Randomness(jax.random.uniform(which, dtype=dtype), fresh)

    def move(self, randomness: Randomness, here: Point, visit: Visit, tuning: Tuning) -> tuple[Point, Scalar]:
        """Where the leap leads, and its log q; -inf if it would not be reversible."""
        way = self.way(randomness, here.theta, tuning.modes)
        there = jax.lax.cond(way.is_possible, lambda: visit(way.theta), lambda: here)
        return there, jnp.where(way.is_possible, way.log_q, -jnp.inf)

    def way(self, randomness: Randomness, theta: Vector, modes: Landscape) -> Way:
        """From which mode to which, and where."""
        near = modes.log_weighted(theta)
        mode = near.argmax()
        to = modes.other(randomness.uniform, mode)
        if randomness.fresh is None:
            there = modes.carried(theta, mode, to)
            log_q = modes.log_volume[to] - modes.log_volume[mode]
        else:
            there = modes.mean[to] + modes.factor[to] @ randomness.fresh
            plain = modes._replace(log_weight=jnp.zeros_like(modes.log_weight))
            log_q = plain.log_weighted(theta)[mode] - plain.log_weighted(there)[to]
        near_there = modes.log_weighted(there)
        is_possible = (to != mode) & (near_there.argmax() == to)
        return Way(mode, to, there, log_q, is_possible, (modes.log_density(near), modes.log_density(near_there)))

    def unit_step(self, dim: int) -> float:
        """Leaps have no step size."""
        return 1.0


def student(where: Array, width: Array, dim: int, dtype: Any) -> Array:
    """Multivariate t around 0, of unit scale, by two keys."""
    shrink = jnp.sqrt(FREEDOM / jax.random.chisquare(width, FREEDOM, dtype=dtype))
    return shrink * jax.random.normal(where, (dim,), dtype)


def drawn(modes: Landscape, key: Array, number: int) -> Array:
    """Independent draws (number, d) from all modes as they were fitted."""
    dim, dtype = modes.mean.shape[1], modes.mean.dtype

    def one(key: Array) -> Array:
        which, where, width = jax.random.split(key, 3)
        mode = jax.random.categorical(which, modes.log_weight)
        return modes.mean[mode] + modes.factor[mode] @ student(where, width, dim, dtype)

    return jax.vmap(one)(jax.random.split(key, number))
