"""ESS and R-hat of many parameters at once (Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021).

What ArviZ computes, number by number, but for all parameters together: with a thousand of them that is the difference
between a second and half a minute. Draws have axes (chain, draw, parameter). What cannot be known (fewer than four
draws, a value that is not a number, for R-hat one chain or a parameter that never changed) is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

_FEWEST = 4
_TAIL = (1 - 0.89, 0.89)
"""ArviZ's quantiles."""
_AT_A_TIME = 2**16
"""Numbers that are worked on at once: few enough for a cache."""


class Mixing(NamedTuple):
    """How well chains mix, each (parameter,)."""

    ess_bulk: np.ndarray  # effective draws for the middle of the distribution
    ess_tail: np.ndarray  # for its quantiles far out, the smaller of both ends
    rhat: np.ndarray  # how much chains disagree, in the middle or in the spread


def mixing(draws: np.ndarray) -> Mixing:
    """All three.

    Examples
    --------
    >>> import numpy as np
    >>> found = mixing(np.random.default_rng(0).normal(size=(4, 1000, 2)))
    >>> bool((abs(found.ess_bulk - 4000) < 1000).all()), bool((found.rhat < 1.01).all())
    (True, True)
    """

    def of(part: np.ndarray) -> list[np.ndarray]:
        halves = _split(part)
        scores = _scores(halves)
        return [_ess(scores), _ess_tail(part), _rhat_both(halves, scores)]

    return Mixing(*_in_parts(draws, 3, of))


def ess_bulk(draws: np.ndarray) -> np.ndarray:
    """Effective draws of each parameter, for the middle of its distribution."""
    found: np.ndarray = _in_parts(draws, 1, lambda part: [_ess(_scores(_split(part)))])[0]
    return found


def rhat(draws: np.ndarray) -> np.ndarray:
    """Rank-normalised and folded split-R-hat of each parameter."""

    def of(part: np.ndarray) -> list[np.ndarray]:
        halves = _split(part)
        return [_rhat_both(halves, _scores(halves))]

    found: np.ndarray = _in_parts(draws, 1, of)[0]
    return found


def errors(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Monte Carlo standard errors of mean and standard deviation of each parameter."""

    def of(part: np.ndarray) -> list[np.ndarray]:
        ess = _ess(_split(part))
        squares = (part - part.mean(axis=(1, 2), keepdims=True)) ** 2
        variance, fourth = squares.mean(axis=(1, 2)), (squares**2).mean(axis=(1, 2))
        of_mean = part.std(axis=(1, 2), ddof=1) / np.sqrt(ess)
        return [of_mean, np.sqrt((fourth - variance**2) / ess / variance / 4)]

    of_means, of_deviations = _in_parts(draws, 2, of)
    return of_means, of_deviations


def _in_parts(draws: np.ndarray, results: int, function: Callable[[np.ndarray], list[np.ndarray]]) -> np.ndarray:
    """A function of arrays (parameter, chain, draw), some at a time, of parameters that are numbers throughout."""
    chains, count, parameters = draws.shape
    found = np.full((results, parameters), np.nan)
    if count < _FEWEST:
        return found
    step = max(1, _AT_A_TIME // (chains * count))
    with np.errstate(all="ignore"):
        for first in range(0, parameters, step):
            part = np.ascontiguousarray(np.moveaxis(draws[:, :, first : first + step], 2, 0))
            known = ~np.isnan(part).any(axis=(1, 2))
            if known.any():
                found[:, first : first + step][:, known] = function(part[known])
    return found


def _split(draws: np.ndarray) -> np.ndarray:
    half = draws.shape[2] // 2
    return np.concatenate([draws[:, :, :half], draws[:, :, -half:]], axis=1)


def _scores(draws: np.ndarray) -> np.ndarray:
    """Ranks over all chains as quantiles of the normal distribution; equal values share their mean rank."""
    from scipy.special import ndtri

    flat = draws.reshape(len(draws), -1)
    size = flat.shape[1]
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    # Ranks are whole or half: a table of their quantiles serves all parameters.
    quantiles = ndtri((np.arange(2 * size - 1) / 2 + 1 - 3 / 8) / (size + 1 / 4))
    is_new = np.ones(flat.shape, bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    twice = np.broadcast_to(2 * np.arange(size), flat.shape) if is_new.all() else _shared_places(is_new)
    scores = np.empty(flat.shape)
    np.put_along_axis(scores, order, quantiles[twice], axis=1)
    return scores.reshape(draws.shape)


def _shared_places(is_new: np.ndarray) -> np.ndarray:
    """The first place of every run of equal values plus the last, where a run begins wherever ``is_new``."""
    size = is_new.shape[1]
    place = np.arange(size)
    first = np.maximum.accumulate(np.where(is_new, place, 0), axis=1)
    ends = np.ones(is_new.shape, bool)
    ends[:, :-1] = is_new[:, 1:]
    last = np.minimum.accumulate(np.where(ends, place, size)[:, ::-1], axis=1)[:, ::-1]
    result: np.ndarray = first + last
    return result


def _rhat_both(halves: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The larger of those in the middle and in the spread; NaN where one chain has nobody to disagree with."""
    if halves.shape[1] < 4:
        return np.full(len(halves), np.nan)
    folded = np.abs(halves - np.median(halves, axis=(1, 2), keepdims=True))
    result: np.ndarray = np.maximum(_rhat(scores), _rhat(_scores(folded)))
    return result


def _rhat(draws: np.ndarray) -> np.ndarray:
    count = draws.shape[2]
    between = count * draws.mean(axis=2).var(axis=1, ddof=1)
    within = draws.var(axis=2, ddof=1).mean(axis=1)
    result: np.ndarray = np.sqrt((between / within + count - 1) / count)
    return result


def _ess_tail(draws: np.ndarray) -> np.ndarray:
    bounds = np.quantile(draws, _TAIL, axis=(1, 2))[..., None, None]
    result: np.ndarray = np.minimum(*(_ess(_split((draws <= bound).astype(float))) for bound in bounds))
    return result


def _ess(draws: np.ndarray) -> np.ndarray:
    """Draws over their correlation time, by Geyer's initial monotone sequence."""
    _, chains, count = draws.shape
    covariance = _autocovariance(draws).T  # (lag, parameter)
    within = covariance[0] * count / (count - 1)
    total = covariance[0] + (draws.mean(axis=2).var(axis=1, ddof=1) if chains > 1 else 0)
    rho = 1 - (within - covariance) / total
    rho[0] = 1.0
    time = np.maximum(_time(rho), 1 / np.log10(chains * count))
    is_constant = np.ptp(draws, axis=(1, 2)) < np.finfo(float).resolution
    result: np.ndarray = np.where(is_constant, 1, 1 / time) * chains * count
    return result


def _autocovariance(draws: np.ndarray) -> np.ndarray:
    """Of each parameter, the mean over chains, by lag."""
    from scipy.fft import irfft, next_fast_len, rfft

    count = draws.shape[2]
    length = next_fast_len(2 * count)
    spectrum = rfft(draws - draws.mean(axis=2, keepdims=True), n=length, axis=2)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=1)
    result: np.ndarray = irfft(power, n=length, axis=1)[:, :count] / count
    return result


def _time(rho: np.ndarray) -> np.ndarray:
    """The correlation time from autocorrelations (lag, parameter)."""
    columns, most = np.arange(rho.shape[1]), max((len(rho) - 3) // 2, 0)
    pairs = rho[0 : 2 * most + 2 : 2] + rho[1 : 2 * most + 2 : 2]
    # Sums of neighbouring lags, as long as they are positive, none larger than the one before it.
    ends = np.concatenate([~(pairs[:most] > 0), np.ones((1, len(columns)), bool)])
    length = np.argmax(ends, axis=0)
    kept = np.where(np.arange(most)[:, None] < length, np.minimum.accumulate(pairs[:most], axis=0), 0.0)
    # The lag after them counts once, if it is positive or its pair is.
    after = rho[2 * length, columns]
    is_counted = (after > 0) | (pairs[length, columns] >= 0)
    result: np.ndarray = -1 + 2 * kept.sum(axis=0) + np.where(is_counted, after, 0.0)
    return result
