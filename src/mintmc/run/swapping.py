"""What there is to see of a ladder whose rungs all move in one step and swap: group ``ladder`` of the tree."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from mintmc.kernels.parallel_tempering import State
from mintmc.ladder.ladder import Ladder
from mintmc.ladder.reference import Reference
from mintmc.result.ladder import LadderFacts, ladder_group, rungs_group
from mintmc.run.beside import Watcher
from mintmc.run.draws import Draws
from mintmc.run.landmarks import Landmarks
from mintmc.run.task import Task
from mintmc.statistics import Info


class SwappingRungs(Watcher):
    """Rates of moves and swaps, energies and replicas of every rung, round trips, and landmarks."""

    def __init__(self, task: Task, ladder: Ladder, reference: Reference):
        self.ladder, self.reference, self.n, self.target = ladder, reference, task.target.n, task.target
        self.landmarks = Landmarks(task, len(ladder), reference)
        self.round_trips = np.zeros(task.chains)

    def begin(self, states: list[State]) -> list[int]:
        """Note where the chains start."""
        return [self.landmarks.begin(chain, _of_rung_0(state)) for chain, state in enumerate(states)]

    def note(self, chain: int, state: State, values: Info | None) -> None:
        """Note a stretch: its lowest state, and draws of the hottest rung."""
        self.landmarks.lower(0, chain, np.asarray(state.lowest.energy)[None], np.asarray(state.lowest.theta)[None])
        if values is not None:
            self.round_trips[chain] += values["round_trips"].sum()
            self.landmarks.wander(chain, values["hot_theta"])

    def checkpoint(self) -> Any:
        """What it knows."""
        return self.round_trips, self.landmarks.checkpoint()

    def restore(self, checkpoint: Any) -> None:
        """Go on from a checkpoint."""
        self.round_trips, landmarks = checkpoint
        self.landmarks.restore(landmarks)

    def facts(self, totals: dict[str, np.ndarray]) -> dict[str, Any]:
        """Undefined moves of all rungs, each counted."""
        return {"undefined_moves": int(totals["undefined"].sum())}

    def groups(self, draws: Draws, totals: dict[str, np.ndarray], steps: int) -> dict[str, Any]:
        """Group ``ladder``, and ``rungs`` if their states are kept."""
        # A pair is named by its colder rung; above the hottest there is none.
        by_rung = {name: np.zeros((len(self.ladder), len(self.round_trips))) for name in totals if name != "is_defined"}
        for name, rows in by_rung.items():
            rows[: totals[name].shape[1]] = totals[name].T
        with np.errstate(invalid="ignore", divide="ignore"):
            rates = {
                "acceptance_rate": by_rung["rung_acceptance"] / steps,
                "log_ratio_noise": by_rung["rung_noise"] / steps,
                "swap_rate": by_rung["swap_rate"] / by_rung["swaps"],
                "swap_noise": by_rung["swap_noise"] / by_rung["swaps"],
                "undefined_moves": by_rung["undefined"],
            }
        facts = LadderFacts(
            attributes={"reference_energy": self.reference.energy, "energy_of": self.reference.energy_of},
            landmarks=self.landmarks.facts(),
            temperatures=self.ladder.temperatures,
            batch_sizes=self.ladder.rows(self.n),
            energy=np.moveaxis(draws.statistics["rung_energy"].astype(float), -1, 0),
            rates=rates,
            round_trips=self.round_trips,
            replica=np.moveaxis(draws.statistics["replica"], -1, 0),
        )
        kept = draws.statistics.get("rung_theta")
        states = {} if kept is None else {"rungs": rungs_group(self.target, np.moveaxis(kept, 2, 0))}
        return {"ladder": ladder_group(facts), **states}


def _of_rung_0(state: State) -> Any:
    """The density of rung 0; None if it reads batches."""
    return jax.tree.map(lambda leaf: leaf[0], state.density) if state.density.prior.size else None
