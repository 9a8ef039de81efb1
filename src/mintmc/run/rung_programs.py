"""The programs that run the rungs of a ladder. Rungs that differ in temperature only share them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from functools import partial
from typing import Any

import jax

from mintmc.compiled import shapes_and_types
from mintmc.data import RowReader, Supplied
from mintmc.flat import FlatTarget
from mintmc.kernels.equi_energy import EquiEnergyKernel
from mintmc.ladder.ladder import Ladder
from mintmc.run import adapt
from mintmc.run.chain_programs import LaneState
from mintmc.run.keys import Purpose, ints
from mintmc.run.program import Programs
from mintmc.run.protocol import Session
from mintmc.run.task import Task, compile_program

_PROGRAMS = 10
"""How much longer it takes to compile the programs of a rung than to start it."""


class RungPrograms:
    """How every rung starts, warms up and draws.

    Parameters
    ----------
    task, ladder, target
        What was asked for, and what energies are computed by.
    kernels, steps
        One step of every rung, and how many make a draw.
    round_length
        Draws at a time.
    reader, supplies
        Where batches come from, and what the steps of a rung of a chain read.
    """

    def __init__(
        self,
        task: Task,
        ladder: Ladder,
        target: FlatTarget,
        kernels: Sequence[EquiEnergyKernel],
        steps: Sequence[int],
        round_length: int,
        reader: RowReader,
        supplies: Callable[[int, int], Supplied],
    ):
        self.task, self.ladder, self.target, self.kernels = task, ladder, target, kernels
        self.steps, self.round_length, self.reader, self.supplies = steps, round_length, reader, supplies
        sizes, last = ladder.rows(task.target.n), len(ladder) - 1
        self.kinds = [(sizes[k], sizes[min(k + 1, last)], steps[k]) for k in range(len(ladder))]
        self.first = {kind: self.kinds.index(kind) for kind in self.kinds}

    def phase(self, session: Session) -> Any:
        """A line of progress for starting and compiling."""
        return session.display.phase("compiling", 2 * len(self.first), cost=(1 + _PROGRAMS) * len(self.first))

    def start(self, session: Session, phase: Any) -> list[list[LaneState]]:
        """Where every rung of every chain begins."""
        built = {kind: self._of(k) for kind, k in self.first.items()}
        compiled = self.target.compiled
        starts = {kind: compiled(each.identity_of("init"), partial(jax.jit, each.init)) for kind, each in built.items()}
        states = []
        for k, kind in enumerate(self.kinds):
            states.append([self._start(k, chain, starts[kind]) for chain in range(self.task.chains)])
            session.display.advance(phase, int(self.first[kind] == k))
        return states

    def compile(self, session: Session, phase: Any, states: list[list[LaneState]]) -> list[tuple[Any, Any]]:
        """The programs of warm-up and of draws, of every rung."""
        compiling = {kind: session.pool.submit(self._compile, k, states[k][0]) for kind, k in self.first.items()}
        for _ in as_completed(compiling.values()):
            session.display.advance(phase, 1, cost=_PROGRAMS)
        return [compiling[kind].result() for kind in self.kinds]

    def _of(self, k: int) -> Programs:
        kernel, task = self.kernels[k], self.task
        batching = self.reader.batching(kernel.batches)
        return Programs(kernel, batching, task.thin * self.steps[k], self.round_length, task.warmup, task.target.dim)

    def _start(self, k: int, chain: int, init: Any) -> LaneState:
        theta, task = self.task.thetas[chain], self.task
        state = init(task.key(Purpose.start, chain, k), theta, self.supplies(k, chain))
        adaptation = adapt.start(self.kernels[k].proposal, theta, task.first_step(self.ladder.temperatures[k]))
        return LaneState(state, adaptation, adapt.tuning(adaptation, final=True))

    def _compile(self, k: int, begun: LaneState) -> tuple[Any, Any]:
        programs, (state, adaptation, tuning) = self._of(k), begun
        shared = (self.task.key(Purpose.draw, 0, k), *ints(0, 0), self.supplies(k, 0))
        compiled, shapes, warm = self.target.compiled, shapes_and_types((state, adaptation, shared)), None
        if self.task.warmup:
            kind = (programs.identity_of("warm"), shapes)
            warm = compiled(kind, lambda: compile_program(programs.warm, state, adaptation, *shared))
        kind = (programs.identity_of("draw"), shapes)
        return warm, compiled(kind, lambda: compile_program(programs.draw, state, tuning, *shared))
