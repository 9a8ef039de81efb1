"""MBAR: normalising constants of several densities from draws of all of them (Shirts & Chodera 2008).

With u_k the negative log of density k, up to its constant Z_k = exp(-f_k), and N_k draws from it, n over all draws,

    f_k = -log sum_n exp(-u_k(n)) / sum_j N_j exp(f_j - u_j(n)),

which is bridge sampling (Meng & Wong 1996) if there are two. In float64 on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_ITERATIONS, _TOLERANCE = 10_000, 1e-9


def mbar(energies: np.ndarray, counts: np.ndarray, start: np.ndarray) -> np.ndarray:
    """F of every density, the first one's 0.

    Parameters
    ----------
    energies
        u of every density at all draws: (densities, draws).
    counts
        Draws from each.
    start
        A guess of f.
    """
    from scipy.special import logsumexp

    f = start
    for _ in range(_ITERATIONS):
        new: np.ndarray = -np.asarray(logsumexp(-energies - mixed(energies, counts, f), axis=1))
        new = new - new[0]
        if np.abs(new - f).max() < _TOLERANCE * (1 + np.abs(new).max()):
            return new
        f = new
    return f


def mixed(energies: np.ndarray, counts: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Log of the density that all draws together come from, times their number."""
    from scipy.special import logsumexp

    return np.asarray(logsumexp((f + np.log(counts))[:, None] - energies, axis=0))


def log_mean(logs: Any) -> float:
    """Log of the mean of exp(logs)."""
    from scipy.special import logsumexp

    return float(logsumexp(logs) - np.log(len(logs)))


def bridge(there: np.ndarray, here: np.ndarray) -> float:
    """Log Z of a density less that of another, from log ratios (this one over the other) at draws of both.

    ``there`` are ratios at draws of the other density, ``here`` at draws of this one.
    """
    # Energies of the two, less that of the other: only their difference counts.
    ratios = np.concatenate([there, here])
    energies, counts = np.stack([np.zeros_like(ratios), -ratios]), np.array([len(there), len(here)])
    return -float(mbar(energies, counts, np.array([0.0, -log_mean(there)]))[1])


def responsibilities(there: np.ndarray, here: np.ndarray, log_z: float) -> tuple[np.ndarray, np.ndarray]:
    """How far draws of the other density might be of this one, and the other way round, between 0 and 1."""
    from scipy.special import expit

    share = np.log(here.size / there.size)
    return expit(there - log_z + share), expit(log_z - share - here)
