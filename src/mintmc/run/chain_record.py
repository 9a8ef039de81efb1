"""What is recorded of independent chains: draws that were not yet taken, and totals of the whole run."""

from __future__ import annotations

from typing import Any

import numpy as np

from mintmc.kernels.base import Kernel
from mintmc.run.beside import Watcher
from mintmc.run.draws import Draws, Part, shapes_of
from mintmc.run.task import Task
from mintmc.statistics import Info, total


class ChainRecord:
    """Where draws and totals are kept.

    Parameters
    ----------
    task
        What was asked for.
    watcher
        Looks on; None if nobody does.
    """

    def __init__(self, task: Task, watcher: Watcher | None):
        self.task, self.watcher = task, watcher
        self.totals: dict[str, np.ndarray] = {}
        self.first = 0  # of the draws that were not yet taken

    def make_room(self, room: int, kernel: Kernel, record: Info) -> None:
        """For so many draws of a kernel, like ``record``, which its program returns."""
        chains, touched = self.task.chains, kernel.touched and kernel.touched * self.task.thin
        self.statistics = kernel.statistics
        self.kept = Draws.empty(chains, room, self.statistics, record, touched)
        for each, shape in shapes_of(self.statistics, record).items():
            if each.kept == "total":
                self.totals[each.name] = np.zeros((chains, *shape))

    def count_rows(self, kernel: Kernel) -> None:
        """Draws are made by another kernel from now on, whose batches have another size."""
        if kernel.touched is not None:
            self.kept.statistics["data_touched"][:] = kernel.touched * self.task.thin

    @property
    def end(self) -> int:
        """The first draw that there is no room for."""
        return self.first + self.kept.room

    def begin(self, states: list[Any]) -> list[int]:
        """Note where the chains start; the rows read for it, by chain."""
        return [0] * self.task.chains if self.watcher is None else self.watcher.begin(states)

    def note(self, chain: int, state: Any) -> None:
        """A stretch of warm-up, which ended in this state."""
        if self.watcher is not None:
            self.watcher.note(chain, state, None)

    def write(self, chain: int, first: int, state: Any, theta: np.ndarray, values: Info) -> None:
        """A stretch of draws from ``first`` on, which ended in this state."""
        self.kept.write(chain, first - self.first, theta, values, self.statistics)
        for each in self.statistics:
            if each.kept == "total":
                self.totals[each.name][chain] += total(each, values[each.name], self.task.thin)
        if self.watcher is not None:
            self.watcher.note(chain, state, values)

    def take(self, drawn: int) -> Part:
        """The draws that were not yet taken, up to ``drawn``."""
        first, self.first = self.first, drawn
        draws = self.kept.between(0, drawn - first)
        shown = tuple(each for each in self.statistics if each.kept == "draws")
        steps = drawn * self.task.thin
        groups = {} if self.watcher is None else self.watcher.groups(draws, self.totals, steps)
        return Part(first, draws, shown, groups)

    def checkpoint(self) -> tuple[Any, Any]:
        """What changes from draw to draw."""
        return self.totals, None if self.watcher is None else self.watcher.checkpoint()

    def restore(self, totals: dict[str, np.ndarray], watched: Any, drawn: int) -> None:
        """Go on from a checkpoint, of which all draws are safe."""
        self.totals, self.first = totals, drawn
        if self.watcher is not None:
            self.watcher.restore(watched)

    def facts(self, drawn: int) -> dict[str, Any]:
        """Moves that were not defined, and what the watcher knows of the whole run."""
        undefined = int(drawn * self.task.chains - self.totals["is_defined"].sum())
        return {"undefined_moves": undefined, **({} if self.watcher is None else self.watcher.facts(self.totals))}
