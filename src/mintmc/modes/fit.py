"""Mean and scale of every mode, from draws there: as much of a covariance as the draws can tell.

Errors of a fit add up over all directions, and leaps pay for them, so every number is shrunk as far as its own error
says (empirical Bayes):

- a direction of a mean towards what most modes share there, or towards where the descent ended, whichever draws
  confirm better: N_j draws against the 1/tau^2 that the guess is worth, tau^2 the mean square of mean - guess, less
  what chance adds. (A mixture's modes differ in the components that they exchange, and agree on all others.)
- log variances towards what most modes share in the same direction, too;
- what stands out from the others by more than chance explains, is not shrunk towards them (modes that differ, differ),
  but variances that stand out are shrunk towards each other, as far as they agree on how (two groups, by EM);
- correlations towards the mean over all modes, by the share 1 / (1 + N_j rho^2) with one rho^2 for all modes. With few
  draws all modes have the same, and leaps a diagonal scale: correlations that both ends share drop out of L_k L_i^-1.

How much chance explains is asked of the draws themselves, because they depend on each other: the first half of those in
a mode against the second, over all modes and directions. For means and log variances by how far the halves differ; for
correlations, of which there are so many that the least of their noise is too much, by how well those of one half
describe the other: the smallest rho^2 that does as well as the best, up to two standard errors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_STANDS_OUT = 4.0
"""Standard errors."""
_LEAST = 1e-12
_FEWEST = 4
"""Draws of a half that tells something."""
_EFFICIENCY, _COMPARISONS = 0.3, 10
"""Independent draws that one is worth, before halves were compared, and how many comparisons that is worth."""
_GROUPINGS = 20
"""Iterations of EM."""
_RHO2 = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, np.inf)
"""Mean squares of what correlations of a mode have of their own: those that are tried."""
_LEAST_SHARE = 1e-3
"""That is shrunk: a matrix of few draws has no square root."""


class Moments(NamedTuple):
    """Sums over both halves of the draws of every mode, about its end: enough to fit it, however many there are."""

    draws: np.ndarray  # (2, places)
    first: np.ndarray  # (2, places, d)
    second: np.ndarray  # (2, places, d, d)

    @classmethod
    def none(cls, places: int, dim: int) -> Moments:
        """Of no draws."""
        return cls(np.zeros((2, places)), np.zeros((2, places, dim)), np.zeros((2, places, dim, dim)))

    def add(self, mode: int, thetas: np.ndarray, end: np.ndarray) -> None:
        """Draws (number, d) of a mode, in the order in which they were made."""
        offsets = thetas.astype(float) - end
        for half, some in enumerate(np.array_split(offsets, 2)):
            self.draws[half, mode] += len(some)
            self.first[half, mode] += some.sum(axis=0)
            self.second[half, mode] += some.T @ some

    def faded(self, kept: float) -> Moments:
        """The same, counting less."""
        return Moments(*(kept * sums for sums in self))

    def of(self, modes: int, half: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Number of draws (modes,), means from the ends (modes, d) and covariances, of one half or of all draws."""
        draws, first, second = (sums[:, :modes].sum(axis=0) if half is None else sums[half, :modes] for sums in self)
        count = np.maximum(draws, 1)
        offset = first / count[:, None]
        covariance = second / count[:, None, None] - offset[:, :, None] * offset[:, None, :]
        return draws, offset, covariance * (count / np.maximum(count - 1, 1))[:, None, None]


class Fit(NamedTuple):
    """Means (modes, d) and scales (modes, d, d), lower triangular."""

    mean: np.ndarray
    factor: np.ndarray


def fit(moments: Moments, ends: np.ndarray) -> Fit:
    """The modes whose descents ended at ``ends`` (modes, d), which must have draws."""
    modes = len(ends)
    draws, offset, covariance = moments.of(modes)
    variance, correlation = _split(covariance)
    worth = _efficiencies(moments, modes, variance)
    likely = _shrunk_variances(variance, worth.variances * draws)
    mean = _shrunk_means(ends, offset, likely, worth.means * draws)
    scale, common = np.sqrt(likely), _common(draws, correlation)
    rho2 = _best_rho2(moments, mean - ends, scale, common)
    factor = [_factor(correlation[j], common, draws[j], rho2) * scale[j][:, None] for j in range(modes)]
    return Fit(mean, np.stack(factor))


def _split(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances (modes, d) and correlations (modes, d, d)."""
    variance = np.maximum(np.diagonal(covariance, axis1=1, axis2=2), _LEAST)
    spread = np.sqrt(variance)
    return variance, covariance / (spread[:, :, None] * spread[:, None, :])


class _Worth(NamedTuple):
    """Independent draws that a draw is worth, to those who ask for means and for log variances."""

    means: float
    variances: float


def _efficiencies(moments: Moments, modes: int, variance: np.ndarray) -> _Worth:
    halves = [moments.of(modes, half) for half in (0, 1)]
    told = _told(moments, modes)
    if not told.any():
        return _Worth(_EFFICIENCY, _EFFICIENCY)
    chance = sum(1 / draws[told] for draws, _, _ in halves)
    means = (halves[0][1] - halves[1][1])[told] ** 2 / variance[told]
    (own, _), (other, _) = (_split(covariance[told]) for _, _, covariance in halves)
    return _Worth(_efficiency(chance, means), _efficiency(2 * chance, np.log(own / other) ** 2))


def _told(moments: Moments, modes: int, fewest: int = _FEWEST) -> np.ndarray:
    """Modes of which both halves tell something."""
    return np.asarray(moments.draws[:, :modes].min(axis=0) >= fewest)


def _efficiency(chance: np.ndarray, squares: np.ndarray) -> float:
    """From squared differences (modes, ...) between halves, and what they would be of independent draws (modes,)."""
    prior = _COMPARISONS * chance.mean()
    expected = chance.sum() * squares[0].size + prior
    return float(np.clip(expected / (squares.sum() + prior / _EFFICIENCY), 1e-3, 1))


class _Shared(NamedTuple):
    """What most modes have in common, by direction."""

    value: np.ndarray  # (d,)
    usual: np.ndarray  # (modes, d) who has it
    beyond: float  # the variance of these about it, beyond chance, in units of their own

    @classmethod
    def of(cls, values: np.ndarray, chance: np.ndarray, units: np.ndarray) -> _Shared:
        """Of values (modes, d) that are known up to a variance."""
        usual = np.abs(values - np.median(values, axis=0)) < _STANDS_OUT * np.sqrt(chance)
        weight = usual / chance
        value = (weight * values).sum(axis=0) / np.maximum(weight.sum(axis=0), _LEAST)
        return cls(value, usual, _excess((values - value) ** 2, chance, units, usual))


def _excess(squares: np.ndarray, chance: np.ndarray, units: np.ndarray, of: np.ndarray) -> float:
    """The mean of some squares beyond what chance adds, in units; never below 0."""
    return max(float(((squares - chance) / units)[of].mean()), 0.0) if of.any() else 0.0


def _shrunk_means(ends: np.ndarray, offset: np.ndarray, variance: np.ndarray, effective: np.ndarray) -> np.ndarray:
    """Towards what modes share, or towards the ends."""
    means, chance = ends + offset, variance / effective[:, None]
    shared = _Shared.of(means, chance, variance)
    common = shared.usual & (shared.usual.mean(axis=0) > 0.5)
    if shared.beyond > _excess(offset**2, chance, variance, common):  # the ends know better
        common = np.zeros_like(common)
    off_ends = max(_excess(offset**2, chance, variance, ~common), 1e-6)
    guess, tau2 = np.where(common, shared.value, ends), np.where(common, shared.beyond, off_ends) * variance
    return _towards(guess, means, tau2, chance)


def _shrunk_variances(variance: np.ndarray, effective: np.ndarray) -> np.ndarray:
    """Towards what modes share."""
    logs, chance = np.log(variance), np.broadcast_to((2 / effective)[:, None], variance.shape)
    shared = _Shared.of(logs, chance, np.ones_like(logs))
    result: np.ndarray = np.exp(shared.value + _of_two_groups(logs - shared.value, chance, ~shared.usual))
    return result


def _of_two_groups(away: np.ndarray, chance: np.ndarray, stands_out: np.ndarray) -> np.ndarray:
    """Differences that are known up to a variance: most are about 0, others about something else."""
    p = stands_out.astype(float)
    if not p.any():
        return _towards(np.zeros_like(away), away, _excess(away**2, chance, np.ones_like(away), ~stands_out), chance)
    for _ in range(_GROUPINGS):
        centre = (p * away / chance).sum() / (p / chance).sum()
        within = max(float(np.average(away**2 - chance, weights=1 - p + _LEAST)), 0.0)
        without = max(float(np.average((away - centre) ** 2 - chance, weights=p + _LEAST)), 0.0)
        odds = np.log(p.mean() / max(1 - p.mean(), _LEAST))
        odds = odds + _log_normal(away - centre, without + chance) - _log_normal(away, within + chance)
        p = 1 / (1 + np.exp(-np.clip(odds, -50, 50)))
    zero = np.zeros_like(away)
    return np.asarray((1 - p) * _towards(zero, away, within, chance) + p * _towards(centre, away, without, chance))


def _log_normal(x: np.ndarray, variance: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * (np.log(variance) + x**2 / variance))


def _towards(guess: np.ndarray | float, values: np.ndarray, tau2: float | np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Values that are known up to a variance, shrunk towards guesses that are."""
    return np.asarray(guess + (values - guess) * tau2 / (tau2 + chance))


def _common(draws: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """The mean correlations of all modes, a little nearer to 0."""
    dim = correlation.shape[1]
    share = max(dim / (dim + _EFFICIENCY * draws.sum()), _LEAST_SHARE)
    return np.asarray((1 - share) * np.average(correlation, axis=0, weights=draws) + share * np.eye(dim))


def _best_rho2(moments: Moments, offset: np.ndarray, scale: np.ndarray, common: np.ndarray) -> float:
    """By the likelihood of either half of the draws, by the correlations of the other."""
    modes, dim = offset.shape
    if dim == 1 or modes == 1:
        return _RHO2[-1]
    told = np.flatnonzero(_told(moments, modes, max(dim, _FEWEST)))
    if not told.size:
        return 0.0
    halves = [(draws, _split(covariance)[1]) for draws, _, covariance in (moments.of(modes, h) for h in (0, 1))]
    scores = np.zeros((len(_RHO2), modes))
    for (draws, correlation), other in zip(halves, (1, 0), strict=True):
        for j in told:
            count, first, second = (sums[other, j] for sums in moments)
            # Of the other half, about the mean and in units of the scales.
            squares = second - np.outer(first, offset[j]) - np.outer(offset[j], first)
            squares = (squares + count * np.outer(offset[j], offset[j])) / np.outer(scale[j], scale[j])
            for number, rho2 in enumerate(_RHO2):
                factor = _factor(correlation[j], common, draws[j], rho2)
                explained = np.trace(np.linalg.solve(factor @ factor.T, squares))
                scores[number, j] -= 0.5 * explained + count * np.log(np.diagonal(factor)).sum()
    best = int(scores.sum(axis=1).argmax())
    behind = scores[best, told] - scores[:, told]
    error = np.sqrt(len(told)) * behind.std(axis=1, ddof=1) if len(told) > 1 else np.zeros(len(_RHO2))
    return _RHO2[int(np.argmax(behind.sum(axis=1) <= 2 * error))]


def _factor(correlation: np.ndarray, common: np.ndarray, draws: float, rho2: float) -> np.ndarray:
    """The square root of a correlation matrix of which only so much is kept as draws can tell."""
    share = max(1 / (1 + draws * rho2), _LEAST_SHARE)
    result: np.ndarray = np.linalg.cholesky((1 - share) * correlation + share * common)
    return result
