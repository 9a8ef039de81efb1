"""Control variates by Taylor expansion: what is known of every row's log-likelihood near a centre.

With g_i, H_i gradient and Hessian of l_i at a centre c, h = theta - c, h' = theta' - c and D = theta' - theta,

    w_i = g_i'D + D' H_i (h + h') / 2                (order 2),            w_i = g_i'D            (order 1)

is close to d_i = l_i(theta') - l_i(theta), and its sum over all rows needs only the sums of g_i and H_i, known from one
pass over the data. What is left, d_i - w_i, is of third (second) order in the distance from the centre: near the mode
of a posterior of n rows it is so small that a batch of 100 rows decides as well as all n (Bardenet, Doucet & Holmes
2017; Quiroz et al. 2019; Prado, Nemeth & Sherlock 2024). For gradients likewise (Baker et al. 2019):

    grad l_i(theta) is close to g_i + H_i h.

w_i of one row is two directional derivatives at the centre, so any model that JAX can differentiate has it, and
no row's gradient or Hessian is ever stored. The identities are exact whatever the centre is; a bad centre costs noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import check
from mintmc.data import Rows
from mintmc.energy import Model, two_sum
from mintmc.shapes import Matrix, PerRow, Scalar, Vector

ORDERS = (1, 2)


@dataclass(frozen=True)
class Taylor:
    """Control variates from an expansion of every row's log-likelihood around a centre.

    Parameters
    ----------
    centre
        Where to expand, params of the form of ``init``; best the mode. None finds the mode in warm-up
        (``mintmc.find_mode``).
    order
        2 needs the sum of all Hessians, d x d numbers, and leaves residuals of third order; 1 needs d numbers and
        leaves residuals of second order: for very many parameters.

    Examples
    --------
    >>> import mintmc
    >>> mintmc.Taylor(order=1)
    Taylor(centre=None, order=1)
    """

    centre: Any = None
    order: int = 2

    def __post_init__(self) -> None:
        check.plain(self)
        check.integer("order", self.order, min(ORDERS), max(ORDERS))


class Expansion(NamedTuple):
    """The log-likelihood of all rows, expanded around a centre."""

    centre: Vector
    gradient: Vector  # the sum of all g_i
    hessian: Matrix | None  # the sum of all H_i; None at order 1

    @property
    def has_levels(self) -> bool:
        """Whether l_i(c) counts: around one centre it is the same at both ends of a move."""
        return False

    def chart(self, theta: Vector) -> Expansion:
        """The expansion that a state goes by: there is one."""
        return self

    def total(self, here: Vector, there: Vector) -> Scalar:
        """The sum of w_i over all rows."""
        step = there - here
        if self.hessian is None:
            return jnp.vdot(self.gradient, step)
        offsets = (here - self.centre) + (there - self.centre)
        return jnp.vdot(self.gradient + 0.5 * (self.hessian @ offsets), step)

    def total_gradient(self, theta: Vector) -> Vector:
        """The sum of g_i + H_i h over all rows."""
        if self.hessian is None:
            return self.gradient
        return self.gradient + self.hessian @ (theta - self.centre)


def each(model: Model, expansion: Expansion, here: Vector, there: Vector, rows: Rows) -> PerRow:
    """w_i of the given rows."""
    step, centre = there - here, expansion.centre

    def along_step(at: Array) -> Array:
        result: Array = jax.jvp(lambda theta: model.each(theta, rows), (at,), (step,))[1]
        return result

    if expansion.hessian is None:
        return along_step(centre)
    offsets = (here - centre) + (there - centre)
    slope, curvature = jax.jvp(along_step, (centre,), (offsets,))
    result: Array = slope + curvature / 2
    return result


def residual_gradient(model: Model, expansion: Expansion, theta: Vector, rows: Rows) -> Vector:
    """The mean over the given rows of grad l_i(theta) - (g_i + H_i h)."""

    def gradient(at: Array) -> Array:
        result: Array = jax.grad(lambda theta: model.each(theta, rows).mean())(at)
        return result

    centre = expansion.centre
    if expansion.hessian is None:
        return gradient(theta) - gradient(centre)
    at_centre, along = jax.jvp(gradient, (centre,), (theta - centre,))
    result: Array = gradient(theta) - (at_centre + along)
    return result


def expand(model: Model, centre: Vector, rows: Rows, order: int = 2) -> Expansion:
    """The sums of g_i and H_i over all data: one pass, block by block; jax-traceable.

    Every block's sums are added with their rounding errors (Knuth's two-sum), so that float32 holds them to the last
    digit at any n. Rows may lie in memory (and repeat some at their end) or be read from a file by the host.
    """
    size, dim = model.block, centre.size

    def block_sum(theta: Array, i: Array) -> Array:
        # The last block is moved up to end at row n; what it shares with its neighbour is masked.
        first = jnp.minimum(i * size, model.n - size)
        part = model.part(rows, first, size)
        return jnp.where(first + jnp.arange(size) >= i * size, model.each(theta, part), 0).sum()

    def sums(i: Array) -> Array:
        gradient = jax.grad(block_sum)
        if order == 1:
            result: Array = gradient(centre, i)[None]
            return result
        basis = jnp.eye(dim, dtype=centre.dtype)

        def along(direction: Array) -> Any:
            return jax.jvp(lambda at: gradient(at, i), (centre,), (direction,))

        gradients, hessian = jax.vmap(along)(basis)
        return jnp.concatenate([gradients[:1], hessian])

    def add(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        total, error = two_sum(carry[0], sums(i))
        return total, carry[1] + error

    zeros = jnp.zeros((1 if order == 1 else 1 + dim, dim), centre.dtype)
    total, rest = jax.lax.fori_loop(0, -(-model.n // size), add, (zeros, zeros))
    total = total + rest
    # Rounding makes the two halves of a symmetric matrix differ in their last digit.
    hessian = None if order == 1 else (total[1:] + total[1:].T) / 2
    return Expansion(centre, total[0], hessian)
