"""From errors of log ratios to errors of the law: the tilt exp(g) of a density, fitted to differences of g.

In coordinates u in which the draws have mean 0 and covariance 1, g(u) = b'u + c |u|^2/2. A draw's law pi exp(g) that
looks standard normal then belongs to a pi with precision 1 + c and mean -b / (1 + c): the draws are off by b / (1 + c)
of their own standard deviations, which are sqrt(1 + c) times those of pi. Fitted by least squares, weighted by how
often the chain goes that way, with a prior on b and c as wide as the differences allow (empirical Bayes), so that
there may be more parameters than pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Tilt(NamedTuple):
    """By how much a law is off, with standard errors."""

    bias: float  # the largest shift of a mean, in standard deviations
    bias_error: float
    parameter: int  # whose it is
    spread: float  # relative error of the standard deviations
    spread_error: float


def fit_tilt(
    draws: np.ndarray,
    here: np.ndarray,
    there: np.ndarray,
    differences: np.ndarray,
    variances: np.ndarray,
    weights: np.ndarray,
) -> Tilt:
    """Fit g to ``differences`` = g(there) - g(here).

    Parameters
    ----------
    draws
        Of the law, (draw, parameter): they say what a standard deviation is.
    here, there
        The two ends, (pair, parameter).
    differences, variances, weights
        Of g between them, their error variances, and how much each pair matters, (pair,).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> draws, here = rng.normal(size=(1000, 1)), rng.normal(size=(50, 1))
    >>> there = here + rng.normal(size=(50, 1))
    >>> tilt = fit_tilt(draws, here, there, 0.3 * (there - here)[:, 0], np.full(50, 1e-4), np.ones(50))
    >>> round(tilt.bias, 1), abs(round(tilt.spread, 2))
    (0.3, 0.0)
    """
    dim = draws.shape[1]
    if len(differences) < 4:
        return Tilt(np.nan, np.nan, 0, np.nan, np.nan)
    draws, here, there = (np.asarray(points, float) for points in (draws, here, there))
    mean, root = _standard(draws)
    u, v = (np.linalg.solve(root, (points - mean).T).T for points in (here, there))
    features = np.column_stack([v - u, ((v**2).sum(axis=1) - (u**2).sum(axis=1)) / 2])
    weights = weights / weights.mean()
    count = weights.sum() ** 2 / (weights**2).sum()
    total, error = np.average(differences**2, weights=weights), np.average(variances, weights=weights)
    # What the differences hold beyond their own errors, as far as that is known, shared out among the parameters.
    signal = max(total - error, error * np.sqrt(2 / count))
    sizes = np.average(features**2, axis=0, weights=weights)
    prior = np.append(np.full(dim, signal / max(sizes[:-1].sum(), 1e-30)), signal / max(sizes[-1], 1e-30))
    weighted = (features * weights[:, None]).T
    left = total
    for _ in range(3):
        covariance = np.linalg.inv(weighted @ features / left + np.diag(1 / prior))
        fit = covariance @ weighted @ differences / left
        freedom = max(count - np.trace(covariance @ weighted @ features) / left, 1.0)
        left = max(np.average((differences - features @ fit) ** 2, weights=weights) * count / freedom, 1e-12)
    c = max(fit[-1], -0.9)
    deviations = np.sqrt((root**2).sum(axis=1))
    shifts = root @ fit[:-1] / deviations / np.sqrt(1 + c)
    errors = np.sqrt(np.einsum("ij,jk,ik->i", root, covariance[:-1, :-1], root)) / deviations
    worst = int(np.argmax(np.abs(shifts)))
    return Tilt(
        bias=float(shifts[worst]),
        bias_error=float(errors[worst]),
        parameter=worst,
        spread=float(np.sqrt(1 + c) - 1),
        spread_error=float(np.sqrt(covariance[-1, -1]) / 2),
    )


def _standard(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean, and a square root of the covariance, which is that of the variances alone where draws are few."""
    mean, deviations = draws.mean(axis=0), draws.std(axis=0)
    deviations = np.where(deviations > 0, deviations, 1.0)
    dim = draws.shape[1]
    correlation = np.atleast_2d(np.cov((draws / deviations).T)) if len(draws) > 1 else np.eye(dim)
    trust = len(draws) / (len(draws) + 5 * dim)
    correlation = trust * correlation + (1 - trust) * np.eye(dim) + 1e-6 * np.eye(dim)
    return mean, deviations[:, None] * np.linalg.cholesky(correlation)
