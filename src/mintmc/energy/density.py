"""What is known of one state on all data: log prior and log-likelihood, neither scaled nor normalised."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array


class Density(NamedTuple):
    """Log prior and log-likelihood of one state on all data, neither scaled nor normalised."""

    prior: Array
    likelihood: Array
    likelihood_rest: Array  # what rounding took from `likelihood`
    jacobian: Array | None = None  # log Jacobian of a change of variables, if there is one: no part of the energy

    def minus(self, other: Density) -> tuple[Array, Array]:
        """Differences of log prior and of log-likelihood, accurate even where both are huge."""
        likelihood = (self.likelihood - other.likelihood) + (self.likelihood_rest - other.likelihood_rest)
        return self.prior - other.prior, likelihood

    def energy_above(self, reference: Density, temper: str = "posterior") -> Array:
        """U of this state less that of a reference state: what float32 can hold of it."""
        prior, likelihood = self.minus(reference)
        energy = -likelihood if temper == "likelihood" else -(prior + likelihood)
        return jnp.where(self.is_zero, jnp.inf, energy)

    def energy(self, temper: str = "posterior") -> np.ndarray:
        """U itself, in float64 on the host."""
        prior, likelihood, rest = (np.asarray(part, np.float64) for part in self[:3])
        energy = -(likelihood + rest) if temper == "likelihood" else -(prior + likelihood + rest)
        return np.where(np.asarray(self.is_zero), np.inf, energy)

    @property
    def is_zero(self) -> Array:
        """Whether a factor of the density is zero, whatever the others are."""
        is_zero = (self.prior == -jnp.inf) | (self.likelihood == -jnp.inf)
        return is_zero if self.jacobian is None else is_zero | (self.jacobian == -jnp.inf)
