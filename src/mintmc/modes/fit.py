"""Mean and scale of every mode, from draws there: as much of a covariance as the draws can tell.

Errors of a fit add up over all directions, and leaps pay for them, so every number is shrunk as far as its own error
says (empirical Bayes), with N_j the *effective* number of draws in mode j:

- the mean towards where the descent ended: N_j draws against the 1/tau^2 that this end is worth, tau^2 the mean square
  of (mean - end) / sd over all modes and directions, less what chance adds;
- log variances towards the median over modes of the same direction, unless they stand out from it by more than chance
  explains (modes that differ in width, differ);
- correlations towards 0 by Schäfer & Strimmer's share, sum var(r) / sum r^2: of few draws a diagonal is left, of many
  the dense covariance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_STANDS_OUT = 4.0
"""Standard errors of a log variance."""
_LEAST = 1e-12


class Moments(NamedTuple):
    """Sums over the draws of every mode, about its end: enough to fit it, however many draws there are."""

    draws: np.ndarray  # (places,)
    effective: np.ndarray  # (places,) independent draws that they are worth
    first: np.ndarray  # (places, d)
    second: np.ndarray  # (places, d, d)

    @classmethod
    def none(cls, places: int, dim: int) -> Moments:
        """Of no draws."""
        return cls(np.zeros(places), np.zeros(places), np.zeros((places, dim)), np.zeros((places, dim, dim)))

    def add(self, mode: int, thetas: np.ndarray, effective: float, end: np.ndarray) -> None:
        """Draws (number, d) of a mode, worth so many."""
        offsets = thetas.astype(float) - end
        self.draws[mode] += len(offsets)
        self.effective[mode] += effective
        self.first[mode] += offsets.sum(axis=0)
        self.second[mode] += offsets.T @ offsets


class Fit(NamedTuple):
    """Means (modes, d) and scales (modes, d, d), lower triangular."""

    mean: np.ndarray
    factor: np.ndarray


def fit(moments: Moments, ends: np.ndarray) -> Fit:
    """The modes whose descents ended at ``ends`` (modes, d), which must have draws."""
    modes, dim = ends.shape
    count, effective = moments.draws[:modes], np.maximum(moments.effective[:modes], 2.0)
    offset = moments.first[:modes] / count[:, None]
    covariance = moments.second[:modes] / count[:, None, None] - offset[:, :, None] * offset[:, None, :]
    covariance *= (effective / np.maximum(effective - 1, 1))[:, None, None]
    variance = np.maximum(np.diagonal(covariance, axis1=1, axis2=2), _LEAST)
    mean = ends + _shrunk_offsets(offset, variance, effective)
    scale = np.sqrt(_shrunk_variances(variance, effective))
    spread = np.sqrt(variance)
    correlation = covariance / (spread[:, :, None] * spread[:, None, :])
    factor = np.stack([_factor(correlation[j], effective[j]) * scale[j][:, None] for j in range(modes)])
    return Fit(mean, factor.reshape(modes, dim, dim))


def _shrunk_offsets(offset: np.ndarray, variance: np.ndarray, effective: np.ndarray) -> np.ndarray:
    """Of the means from the ends."""
    by_chance = (1 / effective)[:, None]
    tau2 = max(float(np.mean(offset**2 / variance - by_chance)), 1e-6)
    result: np.ndarray = offset * tau2 / (tau2 + by_chance)
    return result


def _shrunk_variances(variance: np.ndarray, effective: np.ndarray) -> np.ndarray:
    """Towards what modes share."""
    logs = np.log(variance)
    middle = np.median(logs, axis=0)
    chance = (2 / effective)[:, None]
    away = logs - middle
    usual = np.abs(away) < _STANDS_OUT * np.sqrt(chance)
    kept = np.where(usual, away, 0)
    tau2 = np.maximum(((kept**2 - chance) * usual).sum(axis=0) / np.maximum(usual.sum(axis=0), 1), 0)
    shrunk = away * tau2 / (tau2 + chance)
    result: np.ndarray = np.exp(middle + np.where(usual, shrunk, away))
    return result


def _factor(correlation: np.ndarray, effective: float) -> np.ndarray:
    """The square root of a correlation matrix of which only so much is kept as draws can tell."""
    dim = len(correlation)
    off = correlation[~np.eye(dim, dtype=bool)]
    share = 1.0
    if off.size:
        share = float(np.clip(((1 - off**2) ** 2).sum() / effective / max((off**2).sum(), _LEAST), 1e-3, 1))
    result: np.ndarray = np.linalg.cholesky((1 - share) * correlation + share * np.eye(dim))
    return result
