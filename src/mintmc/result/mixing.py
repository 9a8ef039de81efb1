"""ESS and R-hat of many parameters at once (Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021).

What ArviZ computes, number by number, but for all parameters together: with a thousand of them that is the difference
between a second and half a minute. Arrays have axes (chain, draw, parameter). What cannot be known (fewer than four
draws, a value that is not a number, for R-hat one chain or a parameter that never changed) is NaN.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_FEWEST = 4
_TAIL = (0.05, 0.95)
_AT_A_TIME = 2**22
"""Numbers that are worked on at once: transforms of them must fit into memory."""


def ess_bulk(draws: np.ndarray) -> np.ndarray:
    """Effective draws for the middle of each parameter's distribution, (parameter,).

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000, 2))
    >>> bool((abs(ess_bulk(draws) - 4000) < 400).all()), bool((rhat(draws) < 1.01).all())
    (True, True)
    """
    return _in_parts(draws, 1, lambda part: _ess(_scores(_split(part))))


def ess_tail(draws: np.ndarray) -> np.ndarray:
    """Effective draws for its 5% and 95% quantiles, the smaller of both."""

    def smaller(part: np.ndarray) -> np.ndarray:
        bounds = np.quantile(part, _TAIL, axis=(0, 1))
        result: np.ndarray = np.minimum(*(_ess(_split((part <= bound).astype(float))) for bound in bounds))
        return result

    return _in_parts(draws, 1, smaller)


def rhat(draws: np.ndarray) -> np.ndarray:
    """How much chains disagree, in the middle or in the spread: rank-normalised and folded split-R-hat."""

    def larger(part: np.ndarray) -> np.ndarray:
        halves = _split(part)
        folded = np.abs(halves - np.median(halves, axis=(0, 1)))
        result: np.ndarray = np.maximum(_rhat(_scores(halves)), _rhat(_scores(folded)))
        return result

    return _in_parts(draws, 2, larger)


def _in_parts(draws: np.ndarray, chains: int, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A function of some parameters at a time, of those that are numbers throughout."""
    found = np.full(draws.shape[2], np.nan)
    if draws.shape[0] < chains or draws.shape[1] < _FEWEST:
        return found
    known = np.flatnonzero(~np.isnan(draws).any(axis=(0, 1)))
    step = max(1, _AT_A_TIME // (draws.shape[0] * draws.shape[1]))
    with np.errstate(all="ignore"):
        for first in range(0, len(known), step):
            part = known[first : first + step]
            found[part] = function(np.asarray(draws[:, :, part], float))
    return found


def _split(draws: np.ndarray) -> np.ndarray:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _scores(draws: np.ndarray) -> np.ndarray:
    """Ranks over all chains as quantiles of the normal distribution; equal values share their mean rank."""
    from scipy.special import ndtri

    flat = draws.reshape(-1, draws.shape[2])
    size = len(flat)
    order = np.argsort(flat, axis=0, kind="stable")
    ordered = np.take_along_axis(flat, order, axis=0)
    is_new = np.concatenate([np.ones((1, flat.shape[1]), bool), ordered[1:] != ordered[:-1]])
    place = np.arange(size)[:, None]
    first = np.maximum.accumulate(np.where(is_new, place, 0), axis=0)
    ends = np.concatenate([is_new[1:], np.ones((1, flat.shape[1]), bool)])
    last = np.minimum.accumulate(np.where(ends, place, size)[::-1], axis=0)[::-1]
    ranks = np.empty_like(flat)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=0)
    result: np.ndarray = ndtri((ranks - 3 / 8) / (size + 1 / 4)).reshape(draws.shape)
    return result


def _rhat(draws: np.ndarray) -> np.ndarray:
    count = draws.shape[1]
    between = count * draws.mean(axis=1).var(axis=0, ddof=1)
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    result: np.ndarray = np.sqrt((between / within + count - 1) / count)
    return result


def _ess(draws: np.ndarray) -> np.ndarray:
    """Draws over their correlation time, by Geyer's initial monotone sequence."""
    chains, count = draws.shape[:2]
    covariance = _autocovariance(draws).mean(axis=0)  # (lag, parameter)
    within = covariance[0] * count / (count - 1)
    total = covariance[0] + (draws.mean(axis=1).var(axis=0, ddof=1) if chains > 1 else 0)
    rho = 1 - (within - covariance) / total
    rho[0] = 1.0
    time = np.maximum(_time(rho), 1 / np.log10(chains * count))
    result: np.ndarray = np.where(np.ptp(draws, axis=(0, 1)) < np.finfo(float).resolution, 1, 1 / time) * chains * count
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


def _autocovariance(draws: np.ndarray) -> np.ndarray:
    from scipy.fft import irfft, next_fast_len, rfft

    count = draws.shape[1]
    length = next_fast_len(2 * count)
    spectrum = rfft(draws - draws.mean(axis=1, keepdims=True), n=length, axis=1)
    result: np.ndarray = irfft(np.abs(spectrum) ** 2, n=length, axis=1)[:, :count] / count
    return result
