"""The ladder of a sampler that was given none, by pilot runs of parallel tempering on all data.

The hottest rung is worth one observation (T = n), or T = 100 for a density without data. The first pilot climbs a
geometric ladder; its rejections tell the barrier, the sum of the r_i, which hardly depends on the rungs
(``ladder/barrier.py``). Twice as many pairs as the barrier is high, each as often rejected as any other, make most
round trips for their cost: about half of all swaps are accepted there. A second pilot on that ladder corrects it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mintmc.ladder.barrier import even_temperatures
from mintmc.ladder.ladder import Ladder
from mintmc.posterior import Posterior
from mintmc.run.initial import PerChain
from mintmc.run.sample import sample
from mintmc.run.settle import Setting

HOTTEST = 100.0
"""Of a density without data."""
_COOLEST = 10.0
"""The hottest rung, where data are few."""
_FIRST_RATIO = 2.0
_ROUNDS, _DRAWS, _CHAINS = 2, 500, 2
_FEWEST, _MOST = 3, 64


class Pilot(NamedTuple):
    """What a pilot run has told."""

    rejections: np.ndarray  # of swaps between neighbours
    tree: Any  # its group "ladder"
    rows_read: int

    @property
    def barrier(self) -> float:
        """How high it is from rung 0 to the hottest."""
        return float(self.rejections.sum())


def run_pilot(posterior: Posterior, sampler: Any, **settings: Any) -> Pilot:
    """Run parallel tempering for what its swaps tell."""
    tree = sample(posterior, sampler, **settings)
    rows = int(tree["sample_stats"]["data_touched"].sum()) + sum(tree.attrs["data_touched_setup"])
    swapped = np.asarray(tree["ladder"]["swap_rate"].mean("chain"))[:-1]
    return Pilot(np.clip(1 - swapped, 0, 1), tree["ladder"], rows)


def evened(ladder: Ladder, pilot: Pilot, rungs: int | None = None) -> Ladder:
    """The ladder from the same to the same temperature that cuts the barrier into equal parts.

    Of so many rungs, or (None) of as many as make most round trips for their cost.
    """
    if rungs is None:
        rungs = min(max(math.ceil(2 * pilot.barrier) + 1, _FEWEST), _MOST)
    return Ladder(even_temperatures(ladder.temperatures, pilot.rejections, rungs).tolist())


def tuned(setting: Setting, pilot_of: Callable[[Ladder], Any]) -> tuple[Ladder, int, str]:
    """A ladder for a posterior, the rows that pilots read, and a line about it."""
    n = setting.posterior.n
    hottest = max(float(n), _COOLEST) if n else HOTTEST
    ladder = Ladder.geometric(hottest, max(_FEWEST, math.ceil(math.log(hottest, _FIRST_RATIO)) + 1))
    chains = setting.chains if isinstance(setting.init, PerChain) else min(setting.chains, _CHAINS)
    settings: dict[str, Any] = {"init": setting.init, "draws": _DRAWS, "warmup": _DRAWS, "chains": chains}
    settings |= {"progress": False, "audit": False}
    rows = 0
    for number in range(_ROUNDS):
        # Seeds that no run of the user's is likely to have.
        seed = (setting.seed + 2**31 + number) % 2**32
        pilot = run_pilot(setting.posterior, pilot_of(ladder), seed=seed, **settings)
        ladder, rows = evened(ladder, pilot), rows + pilot.rows_read
    swapped = 1 - pilot.barrier / (len(ladder) - 1)
    said = f"ladder of {len(ladder)} rungs up to T = {hottest:g} tuned by pilot runs"
    return ladder, rows, f"{said}: about {swapped:.0%} of swaps accepted"
