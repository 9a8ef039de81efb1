"""The correction variable of the minibatch Barker test: what turns normal noise into logistic noise.

Barker's test accepts with probability S(D) = P(D + X_log > 0), X_log logistic with cdf S. A batch gives D
with normal noise. If X_corr solves

    N(0, sigma^2) + X_corr = X_log    in law,

then noise of variance s2 < sigma^2 is topped up to N(0, sigma^2), X_corr is added, and the test is Barker's
(Seita, Pan, Chen & Canny 2017). No X_corr is exact for any sigma > 0: its characteristic function
pi t exp(sigma^2 t^2 / 2) / sinh(pi t) is unbounded. It is therefore fitted: with Y_j its possible values,

    sum_j u_j Phi((x - Y_j) / sigma)  ~  S(x)    for all x.

Two fits of u:

*atoms*: least squares under u >= 0 (Lawson & Hanson 1974), on Y in [-20, 20] with spacing 0.1. A few dozen
atoms remain; the cdf is off by 7.3e-8 at variance 1, 8.5e-10 at 0.81 and 2.2e-5 at 1.44.

*ridge*: the published recipe, u = (M'M + penalty I)^-1 M'v with M_ij = Phi((x_i - Y_j) / sigma) and
v_i = S(x_i), negative entries set to 0. The cdf is off by 8.9e-4 at variance 1, where u then sums to
1.0009.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve, toeplitz
from scipy.optimize import nnls
from scipy.special import expit, ndtr

from mintmc import check

LOGISTIC_VARIANCE = math.pi**2 / 3
_RANGE = 20.0  # of X_corr; the logistic tail beyond it is 2e-9
_SPACING = 0.1  # between candidate atoms
_SOLVED_HALF_GRID = 1000  # of the ridge problem: 2001 unknowns


class Atoms(NamedTuple):
    """A discrete law: draw ``values`` with probabilities ``weights``, without interpolating between them."""

    values: np.ndarray
    weights: np.ndarray  # positive, sum to 1


class Table(NamedTuple):
    """A law with a piecewise linear cdf: a draw is ``interp(u, cdf, grid)`` with ``u`` uniform on (0, 1).

    ``cdf`` need not end at 1. The ridge fit's ends above it, so that such a draw never reaches the last
    cells, as in the authors' code; divide by ``cdf[-1]`` for a symmetric law.
    """

    grid: np.ndarray  # edges of the cells
    cdf: np.ndarray  # 0 at the first edge


@functools.cache
def atoms(variance: float = 1.0) -> Atoms:
    """Fit X_corr by non-negative least squares.

    Parameters
    ----------
    variance
        sigma^2, the variance of the normal part, below that of the logistic law, pi^2 / 3. The larger, the
        less data the test needs and the worse the fit: see ``cdf_error``. Below 0.01 the spacing of the
        atoms shows.

    Examples
    --------
    >>> values, weights = atoms(1.0)
    >>> bool(abs(weights @ values**2 + 1.0 - LOGISTIC_VARIANCE) < 1e-6)
    True

    """
    sigma = _sigma(variance)
    values = _SPACING * np.arange(round(_RANGE / _SPACING) + 1)
    points = _SPACING * np.arange(2 * len(values) - 1)

    # The law is symmetric: an unknown is the weight shared by +y and -y, and x >= 0 says all.
    pair_cdf = (ndtr((points[:, None] - values) / sigma) + ndtr((points[:, None] + values) / sigma)) / 2
    weights, _ = nnls(pair_cdf, expit(points), maxiter=100 * len(values))

    weights /= weights.sum()
    values = np.concatenate([-values[:0:-1], values])
    weights = np.concatenate([weights[:0:-1] / 2, weights[:1], weights[1:] / 2])
    kept = weights > 0
    return Atoms(_frozen(values[kept]), _frozen(weights[kept]))


@functools.cache
def ridge(variance: float = 1.0, half_grid: int = 4000, penalty: float = 10.0) -> Table:
    """Fit X_corr by the published recipe: ridge regression, then clipping.

    The recipe asks for ``2 * half_grid + 1`` points of [-20, 20]. Sums over the grid grow like ``half_grid``
    and u shrinks like its inverse, so the fitted density depends on ``penalty / half_grid**2`` alone: a grid
    finer than 2001 points is solved on 2001. Cells are centred on the grid points, so that interpolation does
    not move the mean (the authors' sampler moves it by half a spacing, -0.0025).

    Examples
    --------
    >>> f"{cdf_error(ridge(1.0), 1.0):.1e}"
    '8.9e-04'

    """
    sigma = _sigma(variance)
    half_grid = check.integer("half_grid", half_grid, 1)
    penalty = check.number("penalty", penalty, 0.0)

    size = min(half_grid, _SOLVED_HALF_GRID)
    penalty *= (size / half_grid) ** 2
    spacing = _RANGE / size
    points = spacing * np.arange(-2 * size, 2 * size + 1)
    values = spacing * np.arange(-size, size + 1)

    smooth = toeplitz(ndtr((points - values[0]) / sigma), ndtr((points[0] - values) / sigma))
    normal = smooth.T @ smooth
    normal[np.diag_indices_from(normal)] += penalty
    mass = solve(normal, smooth.T @ expit(points), assume_a="pos").clip(min=0)

    edges = spacing * (np.arange(-size, size + 2) - 0.5)
    return Table(_frozen(edges), _frozen(np.concatenate([[0.0], np.cumsum(mass)])))


def cdf_error(law: Atoms | Table, variance: float = 1.0) -> float:
    """Largest distance between the cdf of N(0, variance) + X_corr and the logistic cdf.

    A law whose mass is not 1 is taken as it is: this is how the published errors were measured.

    Examples
    --------
    >>> cdf_error(atoms(1.0), 1.0) < 1e-7
    True

    """
    sigma = _sigma(variance)
    points = np.linspace(-2 * _RANGE, 2 * _RANGE, 4001)  # steps of 0.02
    smooth = _smooth_atoms(law, points, sigma) if isinstance(law, Atoms) else _smooth_table(law, points, sigma)
    return float(np.abs(smooth - expit(points)).max())


def _smooth_atoms(law: Atoms, points: np.ndarray, sigma: float) -> np.ndarray:
    """Cdf of the atoms plus normal noise."""
    result: np.ndarray = ndtr((points[:, None] - law.values) / sigma) @ law.weights
    return result


def _smooth_table(law: Table, points: np.ndarray, sigma: float) -> np.ndarray:
    """Cdf of the table plus normal noise: Phi averaged over every cell, by its integral z Phi(z) + phi(z)."""
    density = np.diff(law.cdf) / np.diff(law.grid)
    # Summed by parts: the density's jump at every edge meets the integral of Phi once.
    jumps = np.diff(density, prepend=0.0, append=0.0)
    edges = jumps != 0  # a clipped fit has runs of empty cells
    z = (points[:, None] - law.grid[edges]) / sigma
    result: np.ndarray = sigma * (z * ndtr(z) + np.exp(-z * z / 2) / math.sqrt(2 * math.pi)) @ jumps[edges]
    return result


def _sigma(variance: float) -> float:
    return math.sqrt(check.number("variance", variance, 0.0, LOGISTIC_VARIANCE))


def _frozen(values: np.ndarray) -> np.ndarray:
    """Read-only, because a cached result is shared."""
    values.setflags(write=False)
    return values
