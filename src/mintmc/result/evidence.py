"""The evidence of a model: from a ladder (``result/stepping_stones.py``) or from leaps (``result/bridge.py``).

Either has two directions, each right by itself; where they differ, draws do not overlap enough to tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mintmc import check
from mintmc.result.bridge import of_leaps
from mintmc.result.stepping_stones import of_ladder

if TYPE_CHECKING:
    import xarray

MAX_GAP = 0.5
"""Nats between the two directions that chance alone does not explain."""
_OVERLAP = {
    "ladder": "neighbouring rungs do not overlap; use more rungs",
    "modes": "draws and fitted modes do not overlap; use a longer warm-up, for better fits",
}


@dataclass(frozen=True)
class Evidence:
    """An estimate of the log evidence; it prints as a short report.

    ``down`` is what draws of the hotter rungs (or of the fitted modes) say alone, ``up`` what those of the colder rungs
    (or of the posterior) do, ``gap`` how far they differ. ``by_mode`` is the log evidence of every mode by itself, of a
    run with leaps.
    """

    log_evidence: float
    error: float
    down: float
    up: float
    warnings: tuple[str, ...] = ()
    by_mode: np.ndarray | None = None

    @property
    def gap(self) -> float:
        """Between the two directions."""
        return abs(self.down - self.up)

    def __str__(self) -> str:
        lines = [
            f"log evidence {self.log_evidence:.3f} ± {self.error:.3f}",
            f"  {self.down:.3f} downwards, {self.up:.3f} upwards (gap {self.gap:.3f})",
            *(f"  - {warning}" for warning in self.warnings),
        ]
        return "\n".join(lines)


def log_evidence(tree: xarray.DataTree) -> Evidence:
    """The log evidence of a model from a run on a ladder, or with leaps.

    The log-likelihood and the log prior must be normalised: what they leave out, the evidence leaves out.

    Parameters
    ----------
    tree
        Of ``ParallelTempering`` or ``EquiEnergy`` with all data on every rung and ``temper="likelihood"``, the hottest
        rung near the prior; or of ``Leaps`` on all data.

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
    source = "modes" if "modes" in check.tree(tree).children else "ladder"
    check.tree(tree, source)
    found = Evidence(**(of_leaps(tree) if source == "modes" else of_ladder(tree)))
    # An error so large that it would explain any gap explains nothing.
    if found.gap <= max(MAX_GAP, 4 * min(found.error, MAX_GAP)):
        return found
    gap = f"the two directions differ by {found.gap:.2f}: {_OVERLAP[source]}"
    return replace(found, warnings=(gap, *found.warnings))
