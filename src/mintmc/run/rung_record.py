"""What is recorded of the rungs of an equi-energy run: draws of the coldest, energies, sums and landmarks of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mintmc import count
from mintmc.kernels.equi_energy import EquiEnergyKernel
from mintmc.ladder.ladder import Ladder
from mintmc.ladder.reference import Reference
from mintmc.result.ladder import LadderFacts, ladder_group, rungs_group
from mintmc.run.draws import Draws, Part
from mintmc.run.landmarks import Landmarks
from mintmc.run.rung_rings import RungRings
from mintmc.run.rung_totals import RungTotals
from mintmc.run.task import Task
from mintmc.statistics import Info


class RungRecord:
    """Draws that were not yet taken, and what is known of the whole run.

    Parameters
    ----------
    task, ladder, reference
        What was asked for, and what energies are counted from.
    kernels, steps
        One step of every rung, and how many make a draw.
    keeps_rungs
        Whether the states of all rungs are kept, not only those of rung 0.
    """

    def __init__(
        self,
        task: Task,
        ladder: Ladder,
        reference: Reference,
        kernels: Sequence[EquiEnergyKernel],
        steps: Sequence[int],
        keeps_rungs: bool = False,
    ):
        self.task, self.ladder, self.reference, self.kernels, self.steps = task, ladder, reference, kernels, steps
        rungs, chains, self.keeps_rungs = len(ladder), task.chains, keeps_rungs
        self.warmup_touched = np.zeros((rungs, chains))
        self.totals = RungTotals(rungs, chains, kernels[0].statistics)
        self.landmarks = Landmarks(task, rungs, reference)
        self.starts_touched = [0] * chains
        self.first = 0  # of the draws that were not yet taken

    def begin(self, starts: Sequence[Any]) -> None:
        """Note where rung 0 of each chain starts."""
        is_exact = self.kernels[0].is_exact
        self.starts_touched = [
            self.landmarks.begin(chain, state.point.density if is_exact else None) for chain, state in enumerate(starts)
        ]

    def make_room(self, room: int, record: Info) -> None:
        """For so many draws like ``record``, which a program returns."""
        shape = len(self.ladder), self.task.chains, room
        self.kept = Draws.empty(self.task.chains, room, self.kernels[0].statistics, record, None)
        self.energy = np.full(shape, np.nan)
        self.touched = np.zeros(shape, np.int64)
        if self.keeps_rungs:
            self.theta = np.zeros((len(self.ladder), *self.kept.theta.shape), self.kept.theta.dtype)

    @property
    def end(self) -> int:
        """The first draw that there is no room for."""
        return self.first + self.kept.room

    def note_warmup(self, k: int, chain: int, touched: count.Count, state: Any) -> None:
        """What a stretch of a rung's warm-up read, and where it ended."""
        self.warmup_touched[k, chain] += count.total(touched)
        if self.kernels[k].is_exact:
            self.landmarks.at(k, chain, state.point.density, state.point.theta)

    def note(self, k: int, chain: int, first: int | None, theta: np.ndarray, values: Info, touched: np.ndarray) -> None:
        """Draws of a rung, from ``first`` on; None if they do not count."""
        if first is None:
            self.warmup_touched[k, chain] += touched.sum()
        else:
            self._keep(k, chain, first - self.first, theta, values, touched)
        if self.kernels[k].is_exact:
            self.landmarks.lower(k, chain, values["energy_above"], theta)

    def _keep(self, k: int, chain: int, at: int, theta: np.ndarray, values: Info, touched: np.ndarray) -> None:
        here = k, chain, slice(at, at + len(theta))
        self.energy[here] = values["energy_above"]
        self.touched[here] = touched
        if self.keeps_rungs:
            self.theta[here] = theta
        if k == 0:
            self.kept.write(chain, at, theta, values, self.kernels[0].statistics)
        if k == len(self.ladder) - 1:
            self.landmarks.wander(chain, theta)
        self.totals.add(k, chain, values, touched, self.task.thin * self.steps[k])

    def close(self, first: int, last: int) -> None:
        """All rungs have made these draws: for a draw of the coldest all of them read data."""
        new = slice(first - self.first, last - self.first)
        self.kept.statistics["data_touched"][:, new] = self.touched[:, :, new].sum(axis=0)

    def take(self, drawn: int, rings: RungRings) -> Part:
        """The draws that were not yet taken, up to ``drawn``, and what happened on every rung."""
        first, self.first = self.first, drawn
        shown = tuple(each for each in self.kernels[0].statistics if each.kept == "draws")
        new = slice(drawn - first)
        groups = {"ladder": self._group(self.energy[:, :, new], rings)}
        if self.keeps_rungs:
            groups["rungs"] = rungs_group(self.task.target, self.theta[:, :, new])
        return Part(first, self.kept.between(0, drawn - first), shown, groups)

    def _group(self, energy: np.ndarray, rings: RungRings) -> Any:
        """What happened on every rung."""
        facts = LadderFacts(
            attributes={
                "reference_energy": self.reference.energy,
                "energy_of": self.reference.energy_of,
                "ring_groups": rings.groups,
            },
            landmarks=self.landmarks.facts(),
            temperatures=self.ladder.temperatures,
            batch_sizes=self.ladder.rows(self.task.target.n),
            energy=energy,
            rates=self.totals.rates(),
            ring_occupancy=rings.occupancy(),
            ring_edges=rings.known_edges(),
        )
        return ladder_group(facts)

    def checkpoint(self) -> tuple[Any, ...]:
        """What changes from draw to draw."""
        return self.warmup_touched, self.totals.sums, self.landmarks.checkpoint()

    def restore(self, checkpoint: Sequence[Any], drawn: int) -> None:
        """Go on from a checkpoint, of which all draws are safe."""
        self.warmup_touched, self.totals.sums, landmarks = checkpoint
        self.landmarks.restore(landmarks)
        self.first = drawn

    def facts(self) -> dict[str, Any]:
        """Moves that were not defined, and rows read before the draws."""
        setup = np.array([[kernel.init_touched] for kernel in self.kernels]) + self.warmup_touched
        setup[0, 0] += self.reference.touched + self.task.settled_rows
        setup[0] += self.starts_touched
        return {
            "undefined_moves": int(self.totals.undefined.sum()),
            "data_touched_setup": setup.sum(axis=0).astype(int).tolist(),
        }
