"""Which mode a state belongs to, and the map that carries it from mode to mode.

Mode j is known by a mean mu_j and a scale L_j (lower triangular, L_j L_j' the covariance of the draws there). A state
belongs to

    A(x) = argmax_j w_j Q_j(x),        Q_j multivariate t around mu_j with scale L_j and 7 degrees of freedom,

a fixed function of the state; heavy tails, so that far from all modes the widest does not take everything. From mode i
to mode k

    y = mu_k + L_k L_i^-1 (x - mu_i)

keeps the place within the mode, and volumes grow by |L_k| / |L_i| (Pompe, Holmes & Latuszynski 2020). All modes
together are a density, sum_j w_j Q_j(x): what the evidence is told from.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.shapes import PerMode, Scalar, Vector

FREEDOM = 7.0


class Landscape(NamedTuple):
    """The modes that are known, in the first of a fixed number of places; a place without a mode has no weight."""

    mean: Array  # (places, d)
    factor: Array  # (places, d, d): L
    inverse: Array  # (places, d, d): L^-1
    log_weight: Array  # (places,): log w; -inf where there is no mode

    @property
    def known(self) -> Array:
        """How many modes are known."""
        return jnp.isfinite(self.log_weight).sum()

    @property
    def log_volume(self) -> Array:
        """Log |L| of every mode."""
        return jnp.log(jnp.diagonal(self.factor, axis1=1, axis2=2)).sum(axis=1)

    def log_weighted(self, theta: Vector) -> PerMode:
        """Log w_j Q_j(theta), up to a constant that all share."""
        whitened = jnp.einsum("kij,kj->ki", self.inverse, theta - self.mean)
        tails = 0.5 * (FREEDOM + theta.size) * jnp.log1p((whitened**2).sum(axis=1) / FREEDOM)
        return self.log_weight - self.log_volume - tails

    def log_density(self, log_weighted: PerMode) -> Scalar:
        """Log sum_j w_j Q_j, of what ``log_weighted`` says."""
        dim = self.mean.shape[1]
        constant = math.lgamma((FREEDOM + dim) / 2) - math.lgamma(FREEDOM / 2) - dim / 2 * math.log(FREEDOM * math.pi)
        return jax.nn.logsumexp(log_weighted) + constant

    def carried(self, theta: Vector, here: Array | int, there: Array | int) -> Vector:
        """The same place within another mode."""
        return self.mean[there] + self.factor[there] @ (self.inverse[here] @ (theta - self.mean[here]))

    def other(self, uniform: Array, here: Array) -> Array:
        """A mode other than ``here``, each as likely, from a number in [0, 1); itself if it is the only one."""
        others = jnp.maximum(self.known - 1, 1)
        chosen = jnp.minimum((uniform * others).astype(jnp.int32), others - 1)
        return jnp.where(self.known > 1, chosen + (chosen >= here), here)
