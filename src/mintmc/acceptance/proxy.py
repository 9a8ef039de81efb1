"""Taylor proxies (Bardenet, Doucet & Holmes 2017): second-order control variates for differences of log-likelihoods.

With g_i, H_i gradient and Hessian of l_i at a centre c, and h = theta - c, h' = theta' - c,

    w_i = g_i'(theta' - theta) + (theta' - theta)' H_i (h + h') / 2

is close to d_i near the centre, and its mean needs only the mean gradient and Hessian, computed once in a pass over
all data. w_i itself is two directional derivatives at the centre, for any model. The centre is given (the MAP), or
dropped anew at the current state every so many steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.data import Rows
from mintmc.energy import Model


class Expansion(NamedTuple):
    """The mean log-likelihood to second order around a centre."""

    centre: Array
    gradient: Array
    hessian: Array
    age: Array  # steps since it was computed

    def mean(self, here: Array, there: Array) -> Array:
        """The mean of w_i over all data."""
        step, sum_of_offsets = there - here, here + there - 2 * self.centre
        return self.gradient @ step + step @ self.hessian @ sum_of_offsets / 2


@dataclass(frozen=True)
class Proxy:
    """How to expand, and how far off the expansion may be."""

    centre: Array | None  # None: the state where the chain starts
    remainder: Callable[[Array, Array, Array], Array]  # here, there, centre -> bound on |d_i - w_i|
    every: int | None  # steps from one centre to the next; None keeps the first
    passes: ClassVar[int] = 2  # over the data, for gradient and Hessian

    def start(self, theta: Array, rows: Rows, model: Model) -> Expansion:
        """The expansion before the first step."""
        return self.expand(theta if self.centre is None else jnp.asarray(self.centre, theta.dtype), rows, model)

    def expand(self, centre: Array, rows: Rows, model: Model) -> Expansion:
        """Mean gradient and Hessian over all data."""

        def mean(theta: Array) -> Array:
            return model.each(theta, rows)[: model.n].mean()

        return Expansion(centre, jax.grad(mean)(centre), jax.hessian(mean)(centre), jnp.zeros((), jnp.int32))

    def each(self, here: Array, there: Array, centre: Array, rows: Rows, model: Model) -> Array:
        """w_i of the given rows."""
        step, sum_of_offsets = there - here, here + there - 2 * centre

        def along_step(at: Array) -> Array:
            return jax.jvp(lambda theta: model.each(theta, rows), (at,), (step,))[1]

        slope, curvature = jax.jvp(along_step, (centre,), (sum_of_offsets,))
        return slope + curvature / 2
