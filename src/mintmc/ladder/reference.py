"""The state that the energies of a ladder are counted from.

Energy levels are noise, energy differences are signal: on the paper's 50-mode posterior the level of an energy
estimated on a batch is 13 to 300 times noisier than its difference from a reference state on the same batch. So the
reference is evaluated once in full, and where rungs read batches every row lies beside its log-likelihood there.
"""

from __future__ import annotations

from dataclasses import dataclass

from mintmc.energy import Density
from mintmc.flat import FlatTarget
from mintmc.ladder.ladder import Ladder
from mintmc.params import Params


@dataclass(frozen=True)
class Reference:
    """What is known of the reference state of a ladder."""

    density: Density
    target: FlatTarget  # of the posterior whose rows are Referenced, if a rung reads batches
    energy_of: str  # what is tempered, and so what energies are of: "posterior" or "likelihood"
    touched: int  # data read to know it

    @classmethod
    def of(
        cls, target: FlatTarget, ladder: Ladder, at: Params | None, example: Params, temper: str | None
    ) -> Reference:
        """The reference at some params; if they are None, where the first chain starts, or 0 without data."""
        posterior, n = target.posterior, target.n
        if posterior.data is None and at is None:
            density = target.model.no_density(target.dtype)
        else:
            density = posterior.density(example if at is None else at)
        energy_of, touched = target.model.tempered(temper), n
        if min(ladder.rows(n)) < n:
            # In memory once more, for every row by itself; on disk each batch finds out as it is read.
            touched = n if posterior.on_disk else 2 * n
            target = posterior.referenced(example if at is None else at).flat(example)
        return cls(density, target, energy_of, touched)

    @property
    def energy(self) -> float:
        """Its energy."""
        return float(self.density.energy(self.energy_of))
