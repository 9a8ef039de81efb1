"""Expansions around several centres, one a mode: every state goes by the nearest of them.

With A(theta) the number of the centre that theta is nearest to (in its Laplace approximation's standard deviations),
and q_i^k(theta) = l_i(c_k) + g_i'h + h'H_i h / 2 the expansion of row i around centre k,

    r_i(theta) = l_i(theta) - q_i^A(theta)(theta)

is small wherever theta is near one of them, so a move from mode to mode leaves as small residuals as one within a mode.
The sum of all q_i^k needs the log-likelihood of all data at c_k, beside the sums of g_i and H_i. A is a fixed function
of the state, so the identities stay exact; a state far from all centres costs noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.control.laplace import Laplace
from mintmc.control.taylor import Expansion
from mintmc.energy import Density
from mintmc.shapes import Scalar, Vector


class Atlas(NamedTuple):
    """Several expansions, with a leading axis of centres."""

    expansions: Expansion
    level: Array  # (centres,) log-likelihood of all data at each, less that at the first
    precision: Array  # (centres, d, d) of the Laplace approximations: what near is
    is_known: Array  # (centres,) False for a place without a centre

    @property
    def has_levels(self) -> bool:
        """Whether l_i(c) counts: it differs from centre to centre."""
        return True

    def chart(self, theta: Vector) -> Expansion:
        """The expansion that a state goes by."""
        return self._at(self.nearest(theta))

    def nearest(self, theta: Vector) -> Array:
        """The number of the nearest centre."""
        offsets = theta - self.expansions.centre
        distance = jnp.einsum("ki,kij,kj->k", offsets, self.precision, offsets)
        return jnp.where(self.is_known, distance, jnp.inf).argmin()

    def total(self, here: Vector, there: Vector) -> Scalar:
        """The sum over all rows of q_i at one state less that at the other."""
        a, b = self.nearest(here), self.nearest(there)
        within = self._at(a).total(here, there)
        return jnp.where(a == b, within, self._value(b, there) - self._value(a, here))

    def total_gradient(self, theta: Vector) -> Vector:
        """The gradient of the sum of all q_i."""
        return self.chart(theta).total_gradient(theta)

    def _at(self, k: Array) -> Expansion:
        expansion: Expansion = jax.tree.map(lambda leaf: leaf[k], self.expansions)
        return expansion

    def _value(self, k: Array, theta: Vector) -> Scalar:
        expansion = self._at(k)
        return self.level[k] + expansion.total(expansion.centre, theta)


def atlas(
    expansions: Sequence[Expansion], densities: Sequence[Density], shapes: Sequence[Laplace], places: int | None = None
) -> Atlas:
    """One atlas of expansions, the densities of all data at their centres, and what is near each.

    It has so many ``places``, of which some may be left empty; None has one for each expansion.
    """
    likelihood = np.array([float(d.likelihood) + float(d.likelihood_rest) for d in densities])
    stacked: Expansion = jax.tree.map(lambda *leaves: jnp.stack(leaves), *expansions)
    precision = jnp.stack([shape.precision for shape in shapes])
    known = jnp.ones(len(expansions), bool)
    made = Atlas(stacked, jnp.asarray(likelihood - likelihood[0], precision.dtype), precision, known)
    empty = (places or len(expansions)) - len(expansions)
    padded: Atlas = jax.tree.map(lambda leaf: jnp.pad(leaf, [(0, empty)] + [(0, 0)] * (leaf.ndim - 1)), made)
    return padded


def empty_atlas(places: int, dim: int, dtype: Any) -> Atlas:
    """An atlas of no centres yet."""
    vectors, matrices = jnp.zeros((places, dim), dtype), jnp.zeros((places, dim, dim), dtype)
    expansions = Expansion(vectors, vectors, matrices)
    return Atlas(expansions, jnp.zeros(places, dtype), matrices, jnp.zeros(places, bool))
