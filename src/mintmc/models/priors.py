"""The prior of a regression: weak, proper, and in the units of the data, as rstanarm's defaults are.

With s = sd(y) for gaussian and student, 1 for others, and k the prior scale (2.5):

    beta_j ~ normal(0, k s / sd(x_j))
    beta_Intercept + sum_j mean(x_j) beta_j ~ normal(m, k s),     m = mean(y) for gaussian and student, 0 for others
    sigma ~ exponential(mean s)

The second line is the intercept where all predictors are at their means: units and origins of columns do not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.models.design import Design
from mintmc.models.families import Family


@dataclass(frozen=True, eq=False)
class Prior:
    """Independent normals of coefficients with centred predictors, and an exponential of sigma.

    ``scales`` is None if coefficients have a flat prior, and ``sigma_mean`` if there is no sigma.
    """

    scales: np.ndarray | None
    location: float  # of the intercept
    intercept: int | None
    means: np.ndarray  # of the other columns
    sigma_mean: float | None

    @classmethod
    def of(cls, design: Design, family: Family, scale: float | None) -> Prior:
        """In the units of the data."""
        spread, at = family.spread(design.y), design.intercept
        scales = None
        if scale is not None:
            # A constant column without an intercept beside it is one, in units of its own.
            scales = scale * spread / np.where(design.deviations > 0, design.deviations, 1.0)
        location = float(design.y.mean()) if family.link == "identity" else 0.0
        means = np.zeros_like(design.means)
        if at is not None:
            means = np.where(np.arange(len(means)) == at, 0.0, design.means)
        return cls(scales, location, at, means, spread if family.has_sigma else None)

    def log_density(self, params: Any) -> Array:
        """Normalised, but for what is flat."""
        result = jnp.zeros((), params["beta"].dtype)
        if self.scales is not None:
            z = self._centred(params["beta"]) / self.scales
            constant = -np.log(self.scales).sum() - 0.5 * len(self.scales) * math.log(2 * math.pi)
            result += constant - 0.5 * jnp.sum(z**2)
        if self.sigma_mean is not None:
            result -= params["sigma"] / self.sigma_mean + math.log(self.sigma_mean)
        return result

    def sample(self, key: Any) -> dict[str, Array]:
        """One draw."""
        if self.scales is None:
            raise ValueError("prior_scale must be a number for draws from the prior, got None: a flat one")
        key_beta, key_sigma = jax.random.split(key)
        beta = jax.random.normal(key_beta, self.scales.shape) * self.scales
        if self.intercept is not None:
            beta = beta.at[self.intercept].add(self.location - self._at_means(beta))
        if self.sigma_mean is None:
            return {"beta": beta}
        return {"beta": beta, "sigma": jax.random.exponential(key_sigma) * self.sigma_mean}

    def _centred(self, beta: Array) -> Array:
        """What has independent normals of mean 0."""
        if self.intercept is None:
            return beta
        return beta.at[self.intercept].add(self._at_means(beta) - self.location)

    def _at_means(self, beta: Array) -> Array:
        return jnp.dot(jnp.asarray(self.means, beta.dtype), beta, precision="highest")
