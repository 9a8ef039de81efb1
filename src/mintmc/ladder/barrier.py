"""How hard it is to climb a ladder, and the temperatures that make every swap equally likely.

With r_i the mean rejection rate of swaps between rungs i and i+1, the *barrier* of the ladder is the sum of the r_i: it
hardly depends on the rungs in between. With E = sum of r_i / (1 - r_i) over the N pairs, replicas that mix well within
a rung complete

    1 / (2 + 2E)  (deo),        1 / (2N + 2E)  (seo)

round trips a scan, all together. Both are largest where all r_i are equal, which is where the barrier, as a function of
temperature, is cut into equal parts (Syed, Bouchard-Côté, Deligiannidis & Doucet 2022).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.interpolate import PchipInterpolator

from mintmc import check

_LEAST = 1e-6


def barrier(rejections: Sequence[float] | np.ndarray) -> np.ndarray:
    """The barrier between rung 0 and every rung, rung 0 included.

    Parameters
    ----------
    rejections
        Mean rejection rates of the swaps between neighbours, rung 0 first.

    Examples
    --------
    >>> barrier([0.25, 0.5]).tolist()
    [0.0, 0.25, 0.75]
    """
    return np.concatenate([[0.0], np.cumsum(_checked(rejections))])


def even_temperatures(
    temperatures: Sequence[float] | np.ndarray, rejections: Sequence[float] | np.ndarray, rungs: int
) -> np.ndarray:
    """Temperatures from the first to the last of a ladder whose swaps would all be rejected equally often.

    The logarithm of the temperature is interpolated as a monotone function of the barrier (Fritsch & Carlson 1980),
    as in Pigeons.

    Parameters
    ----------
    temperatures, rejections
        The ladder that was run, and the mean rejection rates of the swaps between its neighbours.
    rungs
        Temperatures to return.

    Examples
    --------
    >>> even_temperatures([1, 4, 16], [0.3, 0.3], rungs=3).round(6).tolist()
    [1.0, 4.0, 16.0]
    """
    rates = _checked(rejections)
    rungs = check.integer("rungs", rungs, 2)
    if len(temperatures) != len(rates) + 1:
        raise ValueError(f"temperatures must be one more than {len(rates)} rejections, got {len(temperatures)}")
    given = np.asarray(temperatures, float)
    # A flat stretch of the barrier has no inverse.
    if (rates == 0).any():
        rates = rates + _LEAST
    climbed = barrier(np.minimum(rates, 1))
    even = np.exp(PchipInterpolator(climbed / climbed[-1], np.log(given))(np.linspace(0, 1, rungs)))
    even[[0, -1]] = given[[0, -1]]
    result: np.ndarray = even
    return result


def _checked(rejections: Sequence[float] | np.ndarray) -> np.ndarray:
    rates = np.asarray(rejections, float)
    if rates.ndim != 1 or rates.size == 0 or not ((rates >= 0) & (rates <= 1)).all():
        raise ValueError(f"rejections must be rates in [0, 1], one for each pair of rungs, got {rejections!r}")
    return rates
