"""The Laplace approximation N(c, P^-1) of a tempered target: P is its curvature at the centre.

P = -(sum of H_i / T + the prior's and the Jacobian's own terms), worked out in float64 on the host.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.control.taylor import Expansion
from mintmc.energy import Tempered


class Laplace(NamedTuple):
    """A normal distribution: what a proposal needs to know of the target's shape."""

    centre: Array  # (d,)
    factor: Array  # (d, d) lower triangular L, the covariance is L L'
    precision: Array  # (d, d)

    def distance(self, thetas: np.ndarray) -> np.ndarray:
        """How far states (..., d) are from the centre, in standard deviations: the root mean square over directions."""
        offsets = thetas.astype(float) - np.asarray(self.centre, float)
        squares = np.einsum("...i,ij,...j->...", offsets, np.asarray(self.precision, float), offsets)
        result: np.ndarray = np.sqrt(squares / offsets.shape[-1])
        return result


def curvature(target: Tempered, expansion: Expansion) -> np.ndarray:
    """P, in float64."""
    assert expansion.hessian is not None
    own = target.without_data_curvature(expansion.centre)
    likelihood = np.asarray(expansion.hessian, float) / float(target.temperature)
    result: np.ndarray = -(likelihood + np.asarray(own, float))
    return result


def laplace(target: Tempered, expansion: Expansion, is_peak: bool = True) -> Laplace | None:
    """The approximation around an expansion's centre; None where the target is not curved like a peak.

    If it need not be one (``is_peak``), curvature of the wrong sign is turned round, and none is flatter than a
    hundredth of what the parameters' own are: a normal distribution to propose from, if not an approximation.
    """
    precision = curvature(target, expansion)
    if not np.isfinite(precision).all():
        return None
    # By eigenvalues of the correlation: parameters may have any scale, and a peak must be one in all directions.
    diagonal = np.abs(np.diagonal(precision))
    scale = np.sqrt(np.where(diagonal > 0, diagonal, max(diagonal.max(), 1.0)))
    values, vectors = np.linalg.eigh(precision / np.outer(scale, scale))
    if is_peak and values[0] <= len(scale) * np.finfo(expansion.centre.dtype).eps * values[-1]:
        return None
    if not is_peak:
        values = np.maximum(np.abs(values), 0.01)
        precision = (vectors * values) @ vectors.T * np.outer(scale, scale)
    covariance = (vectors / values) @ vectors.T / np.outer(scale, scale)
    dtype = expansion.centre.dtype
    factor = np.linalg.cholesky((covariance + covariance.T) / 2)
    return Laplace(expansion.centre, jnp.asarray(factor, dtype), jnp.asarray(precision, dtype))
