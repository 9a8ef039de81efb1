"""How often the sequential t-test decides wrongly, how much data it reads, and which test is cheapest.

The test of Korattikara, Chen & Welling (2014) looks at the data after every ``batch_size`` new observations
and stops at the first look where a one-sided test at level ``epsilon`` is sure of the sign; once all n are
read it is always right. With normal batch means its statistic z depends on the population only through

    mu_std = (mean - threshold) * sqrt(n - 1) / sd,

and after a fraction pi_j of the data z_j = W(v_j) / sqrt(v_j), with W a Brownian motion of drift mu_std and
v_j = pi_j / (1 - pi_j) its clock. The test stops at the first |z_j| > G = Phi^-1(1 - epsilon), and

    z_j | z_{j-1}  ~  N(b_j z_{j-1} + a_j mu_std, s_j^2),
    b_j^2 = v_{j-1} / v_j,    s_j^2 = 1 - b_j^2,    a_j = (v_j - v_{j-1}) / sqrt(v_j).

The law of z_j among the walks still going is carried on ``bins`` cells of [-G, G]. This is the authors'
dynamic programme, with an error of order 1 / bins^2. One pass serves every mu_std, by Girsanov's formula: as
long as it goes on, the walk with drift has the density of the walk without times exp(mu_std sqrt(v_j) z_j),
up to a constant. Exact for normal batch means and known sd; the test itself estimates the sd and uses
Student's tail.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.special import ndtr, ndtri

from mintmc import check

BATCH_SIZES = tuple(range(50, 501, 50))
EPSILONS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.2)
_SURELY_STOPPED = 1e-15


class Performance(NamedTuple):
    """What a sequential test does on average, for each mu_std asked for."""

    error: np.ndarray  # probability of the wrong decision; at mu_std = 0, of "below the threshold" before the last look
    looks: np.ndarray  # expected number of looks
    fraction: np.ndarray  # expected fraction of the data read


class Design(NamedTuple):
    """A sequential test: look after every ``batch_size`` observations, at level ``epsilon``."""

    batch_size: int
    epsilon: float


class DesignTable(NamedTuple):
    """The cheapest test for each mu_std: an oracle's choice, since mu_std takes the full data to know."""

    mu_std: np.ndarray  # increasing and evenly spaced
    batch_size: np.ndarray
    epsilon: np.ndarray


def performance(mu_std: ArrayLike, n: int, batch_size: int, epsilon: float, bins: int = 100) -> Performance:
    """Error and cost of one sequential test; the results have the shape of ``mu_std``.

    Examples
    --------
    >>> error, looks, fraction = performance(0.0, n=13000, batch_size=450, epsilon=0.01)
    >>> f"{error:.5f} {looks:.4f} {fraction:.5f}"
    '0.09967 25.7839 0.88944'

    """
    n, bins = check.integer("n", n, 2), check.integer("bins", bins, 1)
    batch_size = check.integer("batch_size", batch_size, 1, n, "n")
    limit = -ndtri(check.number("epsilon", epsilon, 0.0, 0.5, closed=(False, True)))
    drift = np.abs(_finite(mu_std))  # the two signs mirror each other
    last = -(-n // batch_size)

    error, looks, fraction = (np.zeros(drift.shape) for _ in range(3))
    going = np.ones(drift.shape)
    cells, density, clock = np.zeros(1), np.ones(1), 0.0  # z_0 = 0
    for look in range(1, last):
        read = look * batch_size / n
        before, clock = clock, _clock(read)
        wrong, right = _stop(drift, going, cells, density, before, clock, limit)
        error += wrong
        looks += look * (wrong + right)
        fraction += read * (wrong + right)
        going = np.maximum(going - wrong - right, 0.0)
        if going.max(initial=0.0) < _SURELY_STOPPED:
            break
        cells, density = _advance(cells, density, before, clock, limit, bins)
    return Performance(error[()], (looks + last * going)[()], (fraction + going)[()])


def conservative(
    n: int,
    max_error: float,
    batch_sizes: Sequence[int] = BATCH_SIZES,
    epsilons: Sequence[float] = EPSILONS,
    bins: int = 200,
) -> Design:
    """The cheapest test whose error at mu_std = 0, its worst case, is below ``max_error``.

    Cost is the expected number of looks times the batch size. The authors' 100 bins overstate the error by up
    to 3e-3 when looks are many (n = 100000), enough to change the choice; hence 200.

    Examples
    --------
    >>> conservative(13000, 0.1, batch_sizes=(400, 450, 500))
    Design(batch_size=450, epsilon=0.01)

    """
    designs, best = _cheapest(np.zeros(1), n, max_error, batch_sizes, epsilons, bins)
    result: Design = designs[best[0]]
    return result


def table(
    n: int,
    max_error: float,
    batch_sizes: Sequence[int] = BATCH_SIZES,
    epsilons: Sequence[float] = EPSILONS,
    bins: int = 100,
    half_width: float = 10.0,
    half_points: int = 2000,
) -> DesignTable:
    """The cheapest test with error below ``max_error``, for each mu_std of a grid.

    The grid has ``2 * half_points + 1`` points on [-half_width, half_width]. The dynamic programme runs at
    101 drifts and is interpolated: to 1e-4 in the error, and in the data read relative to n.

    Examples
    --------
    >>> chosen = table(1000, 0.1, batch_sizes=(50, 100), epsilons=(0.01, 0.05), half_points=2)
    >>> chosen.mu_std, chosen.batch_size, chosen.epsilon
    (array([-10.,  -5.,   0.,   5.,  10.]),
     array([50, 50, 50, 50, 50]),
     array([0.05, 0.05, 0.01, 0.05, 0.05]))

    """
    half_width = check.number("half_width", half_width, 0.0)
    half_points = check.integer("half_points", half_points, 1)
    positive = np.linspace(0.0, half_width, half_points + 1)
    designs, best = _cheapest(positive, n, max_error, batch_sizes, epsilons, bins)

    mirrored = np.concatenate([best[:0:-1], best])
    return DesignTable(
        np.concatenate([-positive[:0:-1], positive]),
        np.array([design.batch_size for design in designs])[mirrored],
        np.array([design.epsilon for design in designs])[mirrored],
    )


def _stop(
    drift: np.ndarray,
    going: np.ndarray,
    cells: np.ndarray,
    density: np.ndarray,
    before: float,
    clock: float,
    limit: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Probability of stopping at this look on the wrong and on the right side, for each drift >= 0."""
    # Girsanov's tilt, relative to the topmost cell so that it cannot overflow.
    mass = density * np.exp(np.sqrt(before) * np.multiply.outer(drift, cells - cells[-1]))
    mass *= (going / mass.sum(axis=-1))[..., None]

    mean = np.add.outer((clock - before) / np.sqrt(clock) * drift, np.sqrt(before / clock) * cells)
    sd = np.sqrt(1 - before / clock)
    return (mass * ndtr((-limit - mean) / sd)).sum(axis=-1), (mass * ndtr((mean - limit) / sd)).sum(axis=-1)


def _advance(
    cells: np.ndarray, density: np.ndarray, before: float, clock: float, limit: float, bins: int
) -> tuple[np.ndarray, np.ndarray]:
    """Cell centres and density, up to a factor, of the driftless walks that go on past this look."""
    centres = (np.arange(bins) + 0.5) * (2 * limit / bins) - limit
    # Without drift the density is even: half of it is enough.
    upper = centres[bins // 2 :]
    scaled = np.subtract.outer(upper, np.sqrt(before / clock) * cells) / np.sqrt(1 - before / clock)
    half = np.exp(-scaled * scaled / 2) @ density
    half /= half.max()
    return centres, np.concatenate([half[bins % 2 :][::-1], half])


def _clock(read: float) -> float:
    """Brownian time at which a fraction ``read`` of the data is read; infinite at the end."""
    return read / (1 - read)


def _cheapest(
    drift: np.ndarray,
    n: int,
    max_error: float,
    batch_sizes: Sequence[int],
    epsilons: Sequence[float],
    bins: int,
) -> tuple[list[Design], np.ndarray]:
    """All designs, and for each drift (increasing from 0) the index of the cheapest feasible one."""
    max_error = check.number("max_error", max_error, 0.0, 0.5, closed=(False, True))
    designs = _designs(check.integer("n", n, 2), batch_sizes, epsilons)

    nodes = _nodes(drift)
    error, cost = np.empty((2, len(designs), len(drift)))
    for row, (size, level) in enumerate(designs):
        figures = performance(nodes, n, size, level, bins)
        error[row] = _interpolate(drift, nodes, figures.error)
        cost[row] = _interpolate(drift, nodes, figures.looks) * size

    smallest = error.min(axis=0).max()
    if smallest >= max_error:
        raise ValueError(
            f"max_error must be above {smallest:.3g}, the smallest error of these tests, got {max_error:g}"
        )
    return designs, np.where(error < max_error, cost, np.inf).argmin(axis=0)


def _designs(n: int, batch_sizes: Sequence[int], epsilons: Sequence[float]) -> list[Design]:
    for name, values in (("batch_sizes", batch_sizes), ("epsilons", epsilons)):
        if len(values) == 0:
            raise ValueError(f"{name} must hold at least one value, got {values!r}")
    sizes = [check.integer("batch_sizes", size, 1, n, "n") for size in batch_sizes]
    levels = [check.number("epsilons", level, 0.0, 0.5, closed=(False, True)) for level in epsilons]
    return [Design(size, level) for size, level in itertools.product(sizes, levels)]


def _nodes(drift: np.ndarray, count: int = 101, grading: float = 6.5) -> np.ndarray:
    """Points at which to run the dynamic programme for a long grid of drifts.

    A test of drift mu stops around clock (G / mu)^2, where z changes with mu on the scale of mu itself: nodes
    spread geometrically are right everywhere. Next to 0 the clock of the last look, at most n - 1, sets the
    scale.
    """
    if len(drift) <= count:
        return drift
    result: np.ndarray = drift[-1] * np.sinh(grading * np.linspace(0, 1, count)) / np.sinh(grading)
    return result


def _interpolate(points: np.ndarray, nodes: np.ndarray, values: np.ndarray) -> np.ndarray:
    return values if points is nodes else CubicSpline(nodes, values)(points)


def _finite(mu_std: ArrayLike) -> np.ndarray:
    values = np.asarray(mu_std, dtype=float)
    if not np.isfinite(values).all():
        raise ValueError(f"mu_std must be finite, got {values}")
    return values
