"""Moves on batches, compared with all data: what the noise of the batches does to the law of a run.

Take a state that was drawn and a move proposed from it. On all data the move has the log ratio D. Over the choice of
batch the chain accepts it with probability A, and the way back with A'. If it left the tempered posterior invariant,
log A - log A' would be D. What is left,

    eps = log A - log A' - D,

is what the chain's own law, pi_T exp(g), adds between the two ends: eps = g(theta') - g(theta). In coordinates u in
which the draws have mean 0 and covariance 1, g(u) = b'u + c |u|^2/2 is fitted to the pairs (``result/tilt.py``). The
draws are then off by about b standard deviations, and their spread by the factor sqrt(1 + c).

This needs no theory of the test: A and A' are counted by letting the chain's own acceptance test decide on random
batches, of log-likelihoods that are known for every row. It sees what a normal theory cannot: batches without a rare
event, skewed differences, heavy tails, a variance that is underestimated whenever the ratio is overestimated. It does
not see whether a chain has found all modes, and it is as good as its pairs: a few dozen.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial

import jax
import numpy as np

from mintmc.acceptance.minibatch import Recycled
from mintmc.flat import FlatTarget
from mintmc.result.audit_decisions import Counts, decider, repeats_of
from mintmc.result.audit_pairs import BLOCK, MOST_BLOCKS, Trial, propose
from mintmc.result.tilt import Tilt, fit_tilt

MOST_PAIRS, FEWEST_PAIRS = 64, 16
_LIKELIHOODS = 2**26
"""To evaluate at most, unless the fewest pairs take more."""


@dataclass(frozen=True)
class MoveAudit:
    """What the noise of batches does to the law of one chain, or of one rung."""

    temperature: float
    pairs: int
    bias: float  # the largest shift of a parameter's mean, in standard deviations
    bias_error: float
    parameter: int  # of the flat vector: the one that is shifted most
    spread: float  # relative error of the standard deviations
    spread_error: float
    log_ratio_noise: float  # variance of the log ratio over batches, on all data; weighted by acceptance, as all below
    noise_known: float  # the noise that batches estimate, over the true one
    without_variance: float  # share of the batches whose rows do not differ
    skewness: float  # of the log ratio over batches
    excess_kurtosis: float
    impossible: int  # states drawn whose likelihood on all data is zero
    impossible_moves: float  # moves to such states that batches would make
    undefined: int  # states drawn where it is not a number
    data_touched: int
    tails: float = 0.0  # what skewness and kurtosis leave of the penalty, in the logarithm of an acceptance

    def to_json(self) -> dict[str, float]:
        """As plain numbers."""
        return asdict(self)


def pair_count(n: int) -> int:
    """Moves to audit: a few dozen, fewer where a pass over all data is dear."""
    return int(np.clip(_LIKELIHOODS // (2 * n), FEWEST_PAIRS, MOST_PAIRS))


def audit_moves(target: FlatTarget, trial: Trial, seed: int) -> MoveAudit:
    """Compare moves from some states with all data."""
    kernel, n = trial.kernel, target.n
    key = jax.random.key(seed)
    pairs = propose(target, trial, key)
    rows = pairs.table.shape[1]
    repeats = repeats_of(kernel)
    n_eff = n / float(kernel.target.temperature)
    with np.errstate(invalid="ignore"):
        differences = pairs.table[..., 1].astype(float) - pairs.table[..., 0]
        exact = n_eff * differences.mean(axis=1) + pairs.others
        noise = n_eff**2 * pairs.variance / kernel.batch_size * (1 - kernel.batch_size / n)
    decide = decider(target, kernel, n_eff, rows, repeats, len(exact))
    # A variance that is a millionth of what it should be is rounding.
    forward = decide(pairs.table, pairs.others, 1e-6 * noise, 0)
    backward = decide(pairs.table[..., ::-1], -pairs.others, 1e-6 * noise, 1)
    tilt = _tilt(trial, pairs.there, exact, forward, backward, repeats)
    weight = np.where(np.isfinite(exact) & np.isfinite(noise), forward.rate, 0)
    mean = partial(_weighted_mean, weight=weight)
    unseen = 1 - kernel.batch_size / n
    skewness = np.abs(pairs.skewness) / kernel.batch_size**0.5 * unseen**0.5
    kurtosis = pairs.kurtosis / kernel.batch_size * unseen
    tails = skewness * noise**1.5 / 6 + np.maximum(kurtosis, 0) * noise**2 / 24
    return MoveAudit(
        temperature=float(kernel.target.temperature),
        pairs=len(exact),
        bias=tilt.bias,
        bias_error=tilt.bias_error,
        parameter=tilt.parameter,
        spread=tilt.spread,
        spread_error=tilt.spread_error,
        log_ratio_noise=mean(noise),
        noise_known=mean(forward.noise) / max(mean(noise), 1e-30),
        without_variance=mean(forward.without_variance),
        skewness=mean(skewness),
        excess_kurtosis=mean(kurtosis),
        impossible=int(pairs.impossible[:, 0].sum()),
        impossible_moves=float(forward.rate[pairs.impossible[:, 1]].sum()),
        undefined=pairs.undefined,
        data_touched=(2 + kernel.target.beside) * len(exact) * min(n, MOST_BLOCKS * BLOCK),
        tails=mean(tails),
    )


def _tilt(trial: Trial, there: np.ndarray, exact: np.ndarray, forward: Counts, backward: Counts, repeats: int) -> Tilt:
    """Fit g to what the decisions leave unexplained."""
    one, one_error = _log_mean(forward.rate, forward.square, repeats)
    other, other_error = _log_mean(backward.rate, backward.square, repeats)
    if isinstance(trial.kernel.test, Recycled):
        # A pseudo-marginal chain: its law is that of E exp(level), whatever it accepts.
        eps, variance = forward.level - backward.level, np.full(len(exact), 2 / repeats)
    else:
        eps, variance = one - other - exact, one_error + other_error
    # A move that is hopeless on all data, and that no batch would make, says nothing.
    useful = np.isfinite(eps) & ((np.abs(exact) < np.log(repeats)) | (np.minimum(one, other) > -np.log(repeats)))
    draws = trial.thetas if trial.draws is None else trial.draws
    # The flow between the ends, less where it is known badly.
    weights = np.exp(one) / (variance + np.average(eps[useful] ** 2, weights=np.exp(one)[useful]))
    given = (eps[useful], variance[useful], weights[useful])
    return fit_tilt(draws, trial.thetas[useful], there[useful], *given)


def _log_mean(mean: np.ndarray, square: np.ndarray, repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """The logarithm of a mean rate and its error variance; half a count more, so that a rate of 0 has them too."""
    rate = (repeats * mean + 0.5) / (repeats + 1)
    spread = np.maximum(square - mean**2, 0) + 0.25 / repeats
    return np.log(rate), spread / rate**2 / repeats


def _weighted_mean(values: np.ndarray, weight: np.ndarray) -> float:
    if weight.sum() == 0:
        return float("nan")
    return float(np.average(np.where(weight > 0, values, 0), weights=weight))
