"""Weights of modes from the energies of all rungs, without the noise of which states found their way down.

A mode is a fixed region R of the parameter space. With h what is tempered, b = 1/T, and Z_R(b) the integral over R of
what a rung samples, neighbouring rungs b > b' tell the ratio

    Z_R(b) / Z_R(b') = mean over the draws at b' that are in R of exp(-(b - b') h),

or one over the mean of exp(+(b - b') h) over those at b, or best by both, a bridge (Bennett 1976; ``result/mbar.py``).
The share of the hottest rung's draws in R, times all ratios down to T = 1, is proportional to the weight of R. How many
draws the colder rungs have in R does not matter. Every step is linearised, so that each draw's part in the answer, and
by batch means the standard error, is known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mintmc.result.mbar import bridge, log_mean, responsibilities
from mintmc.result.rung_energies import RungEnergies


class Shares(NamedTuple):
    """Weights of modes, of all chains and of each, and what every draw says of them."""

    weight: np.ndarray  # (mode,)
    chain_weight: np.ndarray  # (chain, mode)
    of_draws: np.ndarray  # (chain, draw, mode), with mean `weight`
    of_chains: np.ndarray  # (chain, draw, mode), of each chain with mean `chain_weight`


def regional(rungs: RungEnergies, labels: np.ndarray, modes: int) -> Shares:
    """The weights at T = 1, by the mode of every draw of every rung (rung, chain, draw)."""
    for mode in np.flatnonzero([(labels[0] == mode).any() for mode in range(modes)]):
        _check_is_led_to(labels == mode, int(mode))
    weight, of_draws = _weights(rungs.b, rungs.energy, labels, modes)
    chains = range(labels.shape[1])
    alone = [_weights(rungs.b, rungs.energy[:, c : c + 1], labels[:, c : c + 1], modes) for c in chains]
    return Shares(weight, np.stack([w for w, _ in alone]), of_draws, np.concatenate([values for _, values in alone]))


def _check_is_led_to(inside: np.ndarray, mode: int) -> None:
    """Refuse a mode that draws at T = 1 visit, and of which the ladder cannot tell the weight."""
    draws = inside.sum(axis=(1, 2))
    if draws[-1] == 0 or ((draws[1:] == 0) & (draws[:-1] == 0)).any():
        raise ValueError(
            "tree must have draws in every mode on the hottest rung that reads all data and, below it, on one of any "
            f"two neighbours, for method='regional', got mode {mode} with {', '.join(map(str, draws))} by rung"
        )


def _weights(b: np.ndarray, energy: np.ndarray, labels: np.ndarray, modes: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights (mode,), and what every draw says of them (chain, draw, mode)."""
    found = [_log_integral(b, energy, labels == mode) for mode in range(modes)]
    logs = np.array([log for log, _ in found])
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    parts = np.stack([part for _, part in found], axis=-1)
    return weight, weight * (1 + parts - (parts @ weight)[..., None])


def _log_integral(b: np.ndarray, energy: np.ndarray, inside: np.ndarray) -> tuple[float, np.ndarray]:
    """Log Z of a region at T = 1, up to what all regions share, and what every draw adds to it, on average 0."""
    share, parts = inside[-1].mean(), np.zeros(inside.shape[1:])
    if share == 0:
        return -np.inf, parts
    log_z, parts = float(np.log(share)), inside[-1] / share - 1
    for k in reversed(range(len(b) - 1)):
        cold, hot, step = inside[k], inside[k + 1], b[k] - b[k + 1]
        if not (cold.any() or hot.any()):
            return -np.inf, np.zeros_like(parts)
        ratio, of_cold, of_hot = _ratio(-step * energy[k][cold], -step * energy[k + 1][hot])
        log_z += ratio
        parts[cold] -= parts.size * of_cold
        parts[hot] += parts.size * of_hot
    return log_z, parts


def _ratio(cold: np.ndarray, hot: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Log of the ratio, and what every draw on either side adds to it: each side by what it has."""
    if not cold.size:
        value = log_mean(hot)
        return value, np.zeros(0), _around_mean(np.exp(hot - value))
    if not hot.size:
        value = -log_mean(-cold)
        return value, _around_mean(np.exp(value - cold)), np.zeros(0)
    value = bridge(hot, cold)
    of_hot, of_cold = responsibilities(hot, cold, value)
    return value, _around_mean(of_cold), _around_mean(of_hot)


def _around_mean(values: np.ndarray) -> np.ndarray:
    """What each value adds to the logarithm of their mean."""
    result: np.ndarray = (values / values.mean() - 1) / values.size
    return result
