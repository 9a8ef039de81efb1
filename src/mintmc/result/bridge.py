"""The evidence from a run with leaps: a bridge between its draws and the modes as they were fitted.

The fits together are a density q = sum_j w_j Q_j with a known integral. With l = log pi - log q,

    log Z =  log mean over draws from q  of exp(l)        (importance sampling)
          = -log mean over draws of the run of exp(-l)    (the other way round)

and best by both at once, bridge sampling (Meng & Wong 1996). A mode's own evidence is its weight times Z.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mintmc.result.mbar import bridge, log_mean, responsibilities
from mintmc.result.modes import batch_means, mode_weights

PROPOSED = ("proposal_energy", "proposal_log_fit")
"""In group ``modes``: of states that were drawn from the fits."""


def of_leaps(tree: Any) -> dict[str, Any]:
    """The log evidence, its error, both directions, and that of each mode."""
    modes, stats = tree["modes"], tree["sample_stats"]
    if not all(name in modes for name in PROPOSED):
        raise ValueError("tree must be of a run on all data: with control= energies are not known, got batches")
    proposed = _log_ratio(*(modes[name].values for name in PROPOSED))
    drawn = _log_ratio(stats["energy"].values, stats["log_fit"].values)
    if not np.isfinite(drawn).all() or np.isnan(proposed).any():
        raise ValueError("tree must be of a run that is past its warm-up, got energies that are not known")
    value = bridge(proposed, drawn.ravel())
    with np.errstate(divide="ignore"):
        weights = mode_weights(tree)
        by_mode = value + np.log(weights["weight"].values)
    return {
        "log_evidence": value,
        "error": _error(proposed, drawn, value),
        "down": log_mean(proposed),
        "up": -log_mean(-drawn.ravel()),
        "by_mode": by_mode,
    }


def _log_ratio(energy: np.ndarray, log_fit: np.ndarray) -> np.ndarray:
    return np.asarray(-energy.astype(float) - log_fit.astype(float))


def _error(proposed: np.ndarray, drawn: np.ndarray, value: float) -> float:
    """By the spread of what either side says of Z, of the run's draws over stretches: they depend on each other."""
    # Near the solution, log Z = const + log mean over q of s - log mean over pi of 1 - s.
    of_fits, of_draws = responsibilities(proposed, drawn, value)
    spread = of_fits.std() / of_fits.mean() / np.sqrt(len(proposed))
    means = batch_means(of_draws).ravel()
    between = means.std(ddof=1) / means.mean() / np.sqrt(len(means)) if len(means) > 1 else np.nan
    return float(np.hypot(spread, between))
