"""The evidence from a ladder: log Z(T = 1) - log Z(prior), from the energies of all rungs.

With b_k = 1/T_k and h the negative log-likelihood, rung k samples prior * exp(-b_k h), whose integral is Z_k.

*Stepping stones* (Neal 1993; Xie et al. 2011), D = b_k - b_(k+1) > 0:

    log Z_k - log Z_(k+1) =  log mean over rung k+1 of exp(-D h)        (downwards)
                          = -log mean over rung k   of exp(+D h)        (upwards)

Either way is right; where they differ, neighbours do not overlap enough. *MBAR* (Shirts & Chodera 2008) uses all draws
of all rungs at once,

    f_k = -log sum_n exp(-b_k h_n) / sum_j N_j exp(f_j - b_j h_n),        Z_k = exp(-f_k),

and so tells Z at any other b, too: the prior itself, b = 0, is reweighted from the hottest rungs. All of it in float64
on the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc import check

if TYPE_CHECKING:
    import xarray

MAX_GAP = 0.5
"""Nats between downwards and upwards that chance alone does not explain."""
FAR_FROM_PRIOR = 0.5
"""Of h / T on the hottest rung: where the likelihood still decides it is sqrt(d / 2), whatever the temperature."""
_ITERATIONS, _TOLERANCE = 10_000, 1e-9
_BATCHES = 10
_MOST_DRAWS = 20_000
"""Of a rung; of longer runs every so many are used."""


@dataclass(frozen=True)
class Evidence:
    """An estimate of the log evidence; it prints as a short report.

    ``down`` and ``up`` are the stepping stones in both directions, ``gap`` how far they differ, ``from_prior`` how far
    the hottest rung is from the prior: the standard deviation of h / T there, in nats.
    """

    log_evidence: float
    error: float
    down: float
    up: float
    from_prior: float
    warnings: tuple[str, ...] = ()

    @property
    def gap(self) -> float:
        """Between the two directions."""
        return abs(self.down - self.up)

    def __str__(self) -> str:
        lines = [
            f"log evidence {self.log_evidence:.3f} ± {self.error:.3f}",
            f"  stepping stones {self.down:.3f} downwards, {self.up:.3f} upwards (gap {self.gap:.3f})",
            *(f"  - {warning}" for warning in self.warnings),
        ]
        return "\n".join(lines)


def log_evidence(tree: xarray.DataTree) -> Evidence:
    """The log evidence of a model from a run on a ladder.

    Parameters
    ----------
    tree
        Of ``ParallelTempering`` or ``EquiEnergy`` with all data on every rung and ``temper="likelihood"``. The
        log-likelihood and the log prior must be normalised: what they leave out, the evidence leaves out. The hottest
        rung must come near the prior.

    Examples
    --------
    >>> import numpy as np, jax.numpy as jnp, mintmc
    >>> x = np.random.default_rng(0).normal(1.0, 1.0, size=20)
    >>> posterior = mintmc.Posterior(
    ...     lambda mean, x: -0.5 * (x - mean) ** 2 - 0.5 * jnp.log(2 * jnp.pi),
    ...     x,
    ...     lambda mean: -0.5 * mean**2 - 0.5 * jnp.log(2 * jnp.pi),
    ... )
    >>> ladder = mintmc.Ladder([1, 3, 10, 30, 100, 1000])
    >>> sampler = mintmc.ParallelTempering(ladder, temper="likelihood")
    >>> tree = mintmc.sample(posterior, sampler, init=0.0, draws=5000, chains=2, progress=False)
    >>> s, n = x.sum(), len(x)
    >>> exact = -0.5 * (n * np.log(2 * np.pi) + np.log(1 + n) + (x**2).sum() - s**2 / (1 + n))
    >>> bool(abs(mintmc.log_evidence(tree).log_evidence - exact) < 0.2)
    True
    """
    ladder = check.tree(tree, "ladder")["ladder"]
    if ladder.attrs.get("energy_of") != "likelihood":
        raise ValueError(
            "tree must be of a run with temper='likelihood' (the prior must stay as it is on every rung), got energies "
            f"of the {ladder.attrs.get('energy_of', 'posterior')}"
        )
    n = int(tree.attrs["n"])
    sizes = ladder["batch_size"].values
    if (sizes < n).any():
        raise ValueError(
            "tree must have all data on every rung: energies that batches estimate are noisy, got batches of "
            f"{', '.join(str(size) for size in sizes[sizes < n])}"
        )
    b = 1 / ladder["temperature"].values.astype(float)
    energy = ladder["energy"].transpose("rung", "chain", "draw").values.astype(float)
    usable = np.isfinite(energy).all(axis=(0, 1))
    energy = energy[:, :, usable]
    energy = energy[:, :, :: -(-energy[0].size // _MOST_DRAWS)]
    reference = float(ladder.attrs["reference_energy"])
    value = _from_all(b, energy.reshape(len(b), -1))
    down, up = _stones(b, energy.reshape(len(b), -1))
    # Stepping stones end at the hottest rung: from there to the prior by what all rungs say.
    rest = value - _from_all(b, energy.reshape(len(b), -1), at=b[-1])
    from_prior = float(b[-1] * energy[-1].std())
    found = (value - reference, _error(b, energy), down + rest - reference, up + rest - reference, from_prior)
    return Evidence(*found, tuple(_warnings(found)))


def _warnings(found: tuple[float, ...]) -> list[str]:
    _, error, down, up, from_prior = found
    warnings = []
    if abs(down - up) > max(MAX_GAP, 4 * error):
        warnings.append(
            f"stepping stones differ by {abs(down - up):.2f} between the two directions: neighbouring rungs do not "
            "overlap; use more rungs"
        )
    if from_prior > FAR_FROM_PRIOR:
        warnings.append(
            f"the hottest rung does not reach the prior (its energies over T vary by {from_prior:.2f} nats, "
            "the prior would leave nearly none), so the evidence is not known: use a hotter ladder"
        )
    return warnings


def _stones(b: np.ndarray, energy: np.ndarray) -> tuple[float, float]:
    """Log Z of rung 0 less that of the hottest, downwards and upwards; ``energy`` is (rung, draws)."""
    steps = b[:-1] - b[1:]
    down = sum(_log_mean(-step * h) for step, h in zip(steps, energy[1:], strict=True))
    up = -sum(_log_mean(step * h) for step, h in zip(steps, energy[:-1], strict=True))
    return down, up


def mbar(b: np.ndarray, energy: np.ndarray) -> np.ndarray:
    """F of every rung, f_0 = 0; ``energy`` is (rung, draws), as many draws on each."""
    from scipy.special import logsumexp

    rungs, draws = energy.shape
    h = energy.ravel()
    work = b[:, None] * h  # (rung, all draws)
    # Stepping stones are near enough to begin with.
    start = [_log_mean(-(b[k] - b[k + 1]) * energy[k + 1]) for k in range(rungs - 1)]
    f = np.concatenate([[0.0], np.cumsum(start)])
    for _ in range(_ITERATIONS):
        mixed = logsumexp(f[:, None] - work, axis=0) + np.log(draws)
        new: np.ndarray = -np.asarray(logsumexp(-work - mixed, axis=1))
        new = new - new[0]
        if np.abs(new - f).max() < _TOLERANCE * (1 + np.abs(new).max()):
            return new
        f = new
    return f


def _from_all(b: np.ndarray, energy: np.ndarray, at: float = 0.0) -> float:
    """Log Z of rung 0 less that at another b."""
    from scipy.special import logsumexp

    f = mbar(b, energy)
    mixed = logsumexp(f[:, None] - b[:, None] * energy.ravel(), axis=0) + np.log(energy.shape[1])
    return -float(logsumexp(-at * energy.ravel() - mixed))


def _error(b: np.ndarray, energy: np.ndarray) -> float:
    """From the spread over stretches of all chains, each taken by itself; ``energy`` is (rung, chain, draw)."""
    rungs, chains, draws = energy.shape
    stretches = _BATCHES if draws >= 20 * _BATCHES else 2
    length = draws // stretches
    parts = energy[:, :, : stretches * length].reshape(rungs, chains, stretches, length)
    values = [_from_all(b, parts[:, c, s]) for c in range(chains) for s in range(stretches)]
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def _log_mean(logs: Any) -> float:
    from scipy.special import logsumexp

    return float(logsumexp(logs) - np.log(len(logs)))
