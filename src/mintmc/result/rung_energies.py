"""Energies of the rungs that read all data: what weights and evidence are computed from.

Rung k samples exp(B - b_k h), b_k = 1/T_k, with h what is tempered and B what is not. B cancels wherever rungs are
compared, so h of every draw is all that it takes, whatever ``temper`` was.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mintmc import check
from mintmc.result.reading import settings_of

MOST_DRAWS = 20_000
"""Of a rung, by which normalising constants are found; of longer runs every so many are used."""


class RungEnergies(NamedTuple):
    """h of every draw, above the reference."""

    b: np.ndarray  # (rung,)
    energy: np.ndarray  # (rung, chain, draw)
    is_known: np.ndarray  # (draw,) of the tree: those that `energy` has

    @property
    def spaced(self) -> np.ndarray:
        """Every so many of the draws."""
        return self.energy[:, :, :: -(-self.energy[0].size // MOST_DRAWS)]


def rung_energies(tree: Any, rungs: int) -> RungEnergies:
    """Those of the first ``rungs`` rungs, which must read all data."""
    ladder = tree["ladder"]
    if settings_of(tree).get("truncate"):
        raise ValueError("tree must be of a run with truncate=False: rungs that cut energies off have another law")
    energy = ladder["energy"].transpose("rung", "chain", "draw").values[:rungs].astype(float)
    is_known = np.isfinite(energy).all(axis=(0, 1))
    if not is_known.any():
        raise ValueError("tree must be of a run that is past its warm-up, got energies that are not known")
    return RungEnergies(1 / ladder["temperature"].values[:rungs].astype(float), energy[:, :, is_known], is_known)


def exact_rungs(tree: Any) -> int:
    """How many rungs, from the coldest on, read all data: on others energies are estimates of the states before."""
    return int((tree["ladder"]["batch_size"].values >= int(tree.attrs["n"])).sum())


def kept_rungs(tree: Any) -> tuple[RungEnergies, Any]:
    """Energies and states of all rungs that read all data; refuses a tree that has not kept them."""
    check.tree(tree, "ladder", attributes=("n", "sampler_settings"))
    if "rungs" not in tree.children:
        raise ValueError(
            "tree must have the draws of all rungs (keep_rungs=True of ParallelTempering, EquiEnergy or MINTEE), got "
            f"groups {', '.join(sorted(map(str, tree.children)))}"
        )
    exact = exact_rungs(tree)
    if exact < 2:
        sizes = ", ".join(str(size) for size in tree["ladder"]["batch_size"].values)
        raise ValueError(
            f"tree must have all data on two rungs or more: energies that batches estimate are noisy, got {sizes}"
        )
    found = rung_energies(tree, exact)
    return found, tree["rungs"].to_dataset().isel(rung=slice(exact), draw=np.flatnonzero(found.is_known))
