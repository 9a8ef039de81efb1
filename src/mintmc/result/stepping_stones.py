"""The evidence from a ladder: log Z(T = 1) - log Z(prior), from the energies of all rungs.

With b_k = 1/T_k and h the negative log-likelihood, rung k samples prior * exp(-b_k h), whose integral is Z_k.

*Stepping stones* (Neal 1993; Xie et al. 2011), D = b_k - b_(k+1) > 0:

    log Z_k - log Z_(k+1) =  log mean over rung k+1 of exp(-D h)        (downwards)
                          = -log mean over rung k   of exp(+D h)        (upwards)

Either way is right; where they differ, neighbours do not overlap enough. MBAR (``result/mbar.py``) uses all draws of
all rungs at once, and so tells Z at any other b, too: the prior itself, b = 0, is reweighted from the hottest rungs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mintmc.result.mbar import log_mean, mbar, mixed
from mintmc.result.mixing import errors
from mintmc.result.rung_energies import exact_rungs, rung_energies

FAR_FROM_PRIOR = 0.5
"""Of h / T on the hottest rung: where the likelihood still decides it is sqrt(d / 2), whatever the temperature."""
_SOLVED = 0.01
"""Nats that are left of a solution."""
_LEAST_OVERLAP = 1e-10
"""Of draws that might as well be of a neighbour, a draw: below it float64 has hardly a digit of them."""


def of_ladder(tree: Any) -> dict[str, Any]:
    """The log evidence, its error, both directions, and what speaks against them."""
    ladder = tree["ladder"]
    if ladder.attrs.get("energy_of") != "likelihood":
        raise ValueError(
            "tree must be of a run with temper='likelihood' (the prior must stay as it is on every rung), got energies "
            f"of the {ladder.attrs.get('energy_of', 'posterior')}"
        )
    exact, sizes = exact_rungs(tree), ladder["batch_size"].values
    if exact < len(sizes):
        raise ValueError(
            "tree must have all data on every rung: energies that batches estimate are noisy, got batches of "
            f"{', '.join(str(size) for size in sizes[exact:])}"
        )
    found = rung_energies(tree, exact)
    b, energy = found.b, found.spaced
    all_chains, reference = energy.reshape(len(b), -1), float(ladder.attrs["reference_energy"])
    value = from_all(b, all_chains)
    # Stepping stones end at the hottest rung: from there to the prior by what all rungs say.
    rest = value - from_all(b, all_chains, at=b[-1]) - reference
    down, up = (stones + rest for stones in stepping_stones(b, all_chains))
    warnings = _about_the_prior(float(b[-1] * energy[-1].std()))
    error = _error(b, energy)
    return {"log_evidence": value - reference, "error": error, "down": down, "up": up, "warnings": warnings}


def _about_the_prior(varies: float) -> tuple[str, ...]:
    if varies <= FAR_FROM_PRIOR:
        return ()
    return (
        f"the hottest rung does not reach the prior (its energies over T vary by {varies:.2f} nats, "
        "the prior would leave nearly none), so the evidence is not known: use a hotter ladder",
    )


def stepping_stones(b: np.ndarray, energy: np.ndarray) -> tuple[float, float]:
    """Log Z of rung 0 less that of the hottest, downwards and upwards; ``energy`` is (rung, draws)."""
    steps = b[:-1] - b[1:]
    down = sum(log_mean(-step * h) for step, h in zip(steps, energy[1:], strict=True))
    up = -sum(log_mean(step * h) for step, h in zip(steps, energy[:-1], strict=True))
    return down, up


def from_all(b: np.ndarray, energy: np.ndarray, at: float = 0.0) -> float:
    """Log Z of rung 0 less that at another b, from ``energy`` (rung, draws) of all rungs."""
    from scipy.special import logsumexp

    rungs, draws = energy.shape
    work, counts = b[:, None] * energy.ravel(), np.full(rungs, draws)
    return -float(logsumexp(-at * energy.ravel() - mixed(work, counts, free_energies(b, energy))))


def free_energies(b: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """-log Z of every rung by MBAR, that of rung 0 being 0; ``energy`` is (rung, draws)."""
    rungs, draws = energy.shape
    # Stepping stones are near enough to begin with.
    stones = [log_mean(-(b[k] - b[k + 1]) * energy[k + 1]) for k in range(rungs - 1)]
    start = np.concatenate([[0.0], np.cumsum(stones)])
    return mbar(b[:, None] * energy.ravel(), np.full(rungs, draws), start)


def _error(b: np.ndarray, energy: np.ndarray) -> float:
    """Of the value, from what every moment of the run says of it; ``energy`` is (rung, chain, draw)."""
    values = parts(b, energy)
    # Their mean is what another step of Newton would change: where it is not 0, MBAR has found no solution.
    is_solved = np.isfinite(values).all() and abs(values.mean()) < _SOLVED
    return float(errors(values[..., None])[0][0]) if is_solved else np.inf


def parts(b: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """What every moment, all rungs together, adds to ``from_all``: (chain, draw), with mean 0; its error is theirs.

    NaN where rungs do not overlap at all: nothing is known then.

    MBAR solves sum_n p_k(n) = N_k, p_k(n) the probability that draw n is of rung k. A change of the sums changes f by
    -J^-1 of it, J_kj = sum_n p_k(n) (1[j = k] - p_j(n)). Rungs that exchange states vary together, so their draws of
    one moment are added up before anything is said of their spread.
    """
    from scipy.special import logsumexp

    rungs, chains, draws = energy.shape
    count, flat = chains * draws, energy.ravel()
    work, f = b[:, None] * flat, free_energies(b, energy.reshape(rungs, -1))
    log_mixed = mixed(work, np.full(rungs, count), f)
    p = np.exp(f[:, None] + np.log(count) - work - log_mixed)
    of_prior = np.exp(-log_mixed - logsumexp(-log_mixed))
    jacobian = np.diag(p.sum(axis=1)) - p @ p.T
    excess = p.reshape(rungs, rungs, count).sum(axis=1) - 1
    if np.linalg.eigvalsh(jacobian[1:, 1:])[0] < _LEAST_OVERLAP * count:
        return np.full((chains, draws), np.nan)
    # f of rung 0 is 0 whatever the draws are.
    change = -np.linalg.solve(jacobian[1:, 1:], excess[1:])
    at_prior = 1 / count - of_prior.reshape(rungs, count).sum(axis=0) + (p @ of_prior)[1:] @ change
    result: np.ndarray = count * at_prior.reshape(chains, draws)
    return result
