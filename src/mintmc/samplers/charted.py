"""Where the batches of a ladder expand their log-likelihoods: around every mode that its chains start from.

Rungs go from mode to mode, so all chains share one atlas (``control/atlas.py``): a chain that swaps into a mode that
another started in finds it expanded. Where no chain started, there is no centre: the noise says so, moves there are
hardly ever accepted, and the verdict warns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mintmc.control import Atlas, Expansion, atlas, laplace
from mintmc.energy import Tempered
from mintmc.flat import FlatTarget
from mintmc.run.beside import Centres
from mintmc.run.task import Task
from mintmc.samplers.centre_search import Centre, CentreSearch
from mintmc.samplers.centred import Plan

_SAME_MODE = 1.0
"""Standard deviations between two centres that are one mode."""


class Charted(Centres):
    """The centres of all chains as one atlas."""

    def __init__(self, task: Task, plan: Plan):
        self.task, self.target = task, plan.target
        self.search = CentreSearch(task, plan.target, plan.control, plan.proposal)
        self.modes = self._distinct(self.search.find())
        charts: Any = self._joined()  # which serves wherever one expansion does
        self.of_chain = [Centre(charts, None)] * task.chains
        self.kernel = plan.kernel(plan.batch_size)

    @property
    def rows_read(self) -> int:
        """To find them."""
        return self.search.rows_read

    def supplied(self, chain: int) -> dict[str, Any]:
        """The atlas."""
        return {"control": self.of_chain[chain].expansion}

    def checkpoint(self) -> Any:
        """What a run must find again."""
        return np.array([self.search.rows_read]), self.of_chain

    def restore(self, checkpoint: Any) -> None:
        """Go on with the atlas of a checkpoint."""
        numbers, self.of_chain = checkpoint
        self.search.rows_read = int(numbers[-1])

    def reconsider(self, states: list[Any], tunings: list[Any]) -> list[int]:
        """Nothing is reconsidered: rungs are meant to wander."""
        return []

    def facts(self) -> dict[str, Any]:
        """What the tree should know."""
        centres = [np.asarray(centre.expansion.centre, float).tolist() for centre in self.modes]
        return {"centres": centres, "centre_passes": self.search.passes, "modes_not_found": self.search.not_found}

    def said(self) -> str:
        """One line about the centres."""
        found, passes = f"{len(self.modes)} {'mode' if len(self.modes) == 1 else 'modes'}", self.search.passes
        return f"{found} to expand around, found in {passes:.3g} passes" if passes else "centre given"

    def _distinct(self, centres: list[Centre]) -> list[Centre]:
        kept: list[Centre] = []
        for centre in centres:
            at = np.asarray(centre.expansion.centre)
            if not any(one.laplace is not None and one.laplace.distance(at) < _SAME_MODE for one in kept):
                kept.append(centre)
        return kept

    def _joined(self) -> Atlas:
        self.search.rows_read += self.task.target.n * len(self.modes)
        return joined(self.task.target, self.target, [centre.expansion for centre in self.modes])


def joined(flat: FlatTarget, target: Tempered, expansions: list[Expansion], places: int | None = None) -> Atlas:
    """One atlas of expansions; what is no peak gets the shape of one, to tell what is near."""
    shapes = [laplace(target, expansion, is_peak=False) for expansion in expansions]
    if any(shape is None for shape in shapes):
        raise ValueError("control needs a log_likelihood with finite second derivatives at its modes, got others")
    densities = [flat.posterior.density(flat.unravel(expansion.centre)) for expansion in expansions]
    return atlas(expansions, densities, [shape for shape in shapes if shape is not None], places)
