"""How far a target extends: the standard deviation of its longest direction, in preconditioned coordinates.

The largest eigenvalue of a sample covariance is too large: with d parameters and N states, g = d/N, that of the
identity lies at (1 + sqrt g)^2, and one of l > 1 + sqrt g at l + g l / (l - 1) (Baik & Silverstein 2006). The second is
solved for l, in units of the mean eigenvalue. A preconditioner fitted to the same states makes their covariance the
identity and hides what it missed: the direction that it took for the narrowest is longer than it seems, by up to
1 / (1 - sqrt g).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

LARGEST = 256
"""Parameters up to which their covariance is kept in warm-up."""
_MOST_INFLATED = 2.0
_ENOUGH = 10
"""States a parameter that tell correlations."""


def extent(covariance: Array, scale: Array | None, states: Array, is_fitted: bool) -> Array:
    """Of states with a covariance (d, d); ``is_fitted`` if ``scale`` is the square root of that very covariance."""
    dim = covariance.shape[0]
    share = dim / jnp.maximum(states, 1)
    whitened = _whitened(covariance, scale)
    mean = jnp.trace(whitened) / dim
    largest = jnp.linalg.eigvalsh(whitened)[-1] / mean
    measured = jnp.sqrt(mean * unbiased(largest, share))
    if not is_fitted:
        return measured
    believed = credible(covariance, states)
    hidden = jnp.minimum(1 / jnp.maximum(1 - jnp.sqrt(share * believed), 1e-3), _MOST_INFLATED)
    return jnp.where(believed > 0, hidden, measured)


def credible(covariance: Array, states: Array) -> Array:
    """The share of the correlations seen in so many states that is not chance (Schafer & Strimmer 2005).

    None of those in fewer than ten states a parameter: a chain that still travels correlates everything.
    """
    dim, variances = covariance.shape[0], jnp.diagonal(covariance)
    spread = jnp.sqrt(jnp.where(variances > 0, variances, 1))
    squared = (covariance / jnp.outer(spread, spread)) ** 2 * (1 - jnp.eye(dim))
    by_chance = jnp.sum((1 - squared) ** 2 * (1 - jnp.eye(dim))) / jnp.maximum(states - 1, 1)
    is_some = squared.sum() > 0
    share = jnp.where(is_some, 1 - by_chance / jnp.where(is_some, squared.sum(), 1), 0)
    return jnp.where(states < _ENOUGH * dim, 0, jnp.clip(share, 0, 1) * states / (states + 5))


def unbiased(largest: Array, share: Array) -> Array:
    """The eigenvalue, in units of the mean, behind the largest of a sample covariance; ``share`` is d / N.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> [round(float(unbiased(jnp.asarray(seen), jnp.asarray(0.1))), 2) for seen in (1.5, 4.0 + 0.1 * 4 / 3)]
    [1.0, 4.0]
    """
    above = largest + 1 - share
    root = jnp.sqrt(jnp.maximum(above**2 - 4 * largest, 0))
    return jnp.where(largest > (1 + jnp.sqrt(share)) ** 2, (above + root) / 2, jnp.minimum(largest, 1.0))


def _whitened(covariance: Array, scale: Array | None) -> Array:
    if scale is None:
        return covariance
    if scale.ndim == 1:
        return covariance / jnp.outer(scale, scale)
    half = solve_triangular(scale, covariance, lower=True)
    return solve_triangular(scale, half.T, lower=True)
