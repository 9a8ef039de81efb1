"""Draws of all rungs as draws of the posterior: each weighted by how likely it is at T = 1.

All draws together come from the mixture of the rungs' densities, whose constants MBAR finds (``result/mbar.py``). A
draw's weight is the density at T = 1 over that of the mixture: never more than that of a draw of rung 0 alone would be,
so hot rungs add what they know and spoil nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc.result.mbar import mixed
from mintmc.result.rung_energies import kept_rungs
from mintmc.result.stepping_stones import free_energies

if TYPE_CHECKING:
    import xarray

_ALL = ("rung", "chain", "draw")


@dataclass(frozen=True)
class WeightedDraws:
    """Draws of all rungs with their weights at T = 1; it prints as a short report.

    ``draws`` is a dataset (rung, chain, draw, ...), ``weight`` an array (rung, chain, draw) that sums to 1.
    """

    draws: xarray.Dataset
    weight: xarray.DataArray
    temperature: np.ndarray

    @property
    def effective_size(self) -> float:
        """How many independent draws of equal weight would be worth as much, if these were independent."""
        return float(1 / (self.weight**2).sum())

    @property
    def rung_share(self) -> np.ndarray:
        """How much of the weight is on every rung."""
        return np.asarray(self.weight.sum(("chain", "draw")))

    def mean(self, function: Any = None) -> xarray.Dataset:
        """Means at T = 1 of all parameters, or of ``function`` of the dataset of draws."""
        values = self.draws if function is None else function(self.draws)
        result: xarray.Dataset = values.weighted(self.weight).mean(_ALL)
        return result

    def __str__(self) -> str:
        rungs, alone = len(self.temperature), self.weight.isel(rung=0).size
        parts = zip(self.rung_share, self.temperature, strict=True)
        shares = ", ".join(f"{share:.2f} at T = {temperature:.4g}" for share, temperature in parts)
        return (
            f"{self.weight.size:,} draws of {rungs} rungs, worth {self.effective_size:,.0f} at T = 1 if they were "
            f"independent (rung 0 alone has {alone:,})\n  weight by rung: {shares}"
        )


def weighted_draws(tree: xarray.DataTree) -> WeightedDraws:
    """The draws of all rungs that read all data, with weights at T = 1.

    The weights know nothing of how draws depend on each other. For a standard error, compute what you want chain by
    chain (``weighted_draws(tree.isel(chain=[0], missing_dims="ignore"))``) and look at the spread.

    Parameters
    ----------
    tree
        Of ``ParallelTempering``, ``EquiEnergy`` or ``MINTEE`` with ``keep_rungs=True`` and at least two rungs on all
        data. Rungs on batches are left out: their energies are not known.

    Examples
    --------
    >>> import jax.numpy as jnp, mintmc
    >>> density = mintmc.Posterior.from_density(lambda x: -0.5 * jnp.sum(x**2))
    >>> sampler = mintmc.ParallelTempering(mintmc.Ladder([1, 2, 4]), keep_rungs=True)
    >>> tree = mintmc.sample(density, sampler, init=jnp.zeros(2), draws=2000, chains=2, progress=False)
    >>> found = mintmc.weighted_draws(tree)
    >>> found.effective_size > 4000
    True
    >>> bool(abs(found.mean(lambda draws: draws**2)["theta"] - 1).max() < 0.2)
    True
    """
    import xarray

    rungs, draws = kept_rungs(tree)
    spaced = rungs.spaced.reshape(len(rungs.b), -1)
    f, counts = free_energies(rungs.b, spaced), np.full(len(rungs.b), spaced.shape[1])
    # A rung at a time: all densities at all draws at once would take as many times the memory as there are rungs.
    mixtures = np.stack([mixed(rungs.b[:, None] * energy.ravel(), counts, f) for energy in rungs.energy])
    log_weight = -rungs.b[0] * rungs.energy - mixtures.reshape(rungs.energy.shape)
    weight = np.exp(log_weight - log_weight.max())
    coords = {dim: draws.coords[dim] for dim in _ALL}
    return WeightedDraws(draws, xarray.DataArray(weight / weight.sum(), coords, _ALL, "weight"), 1 / rungs.b)
