"""The programs that run independent chains, and where each chain stands between two of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import jax
from jax import Array

from mintmc.compiled import shapes_and_types
from mintmc.control import Laplace
from mintmc.data import RowReader
from mintmc.kernels.base import Kernel
from mintmc.proposals import Tuning
from mintmc.run import adapt
from mintmc.run.keys import Purpose, ints
from mintmc.run.program import Programs
from mintmc.run.task import Task, compile_program


class LaneState(NamedTuple):
    """Where one chain, or one rung of it, stands."""

    state: Any
    adaptation: adapt.Adaptation | None
    tuning: Tuning | None


class ChainPrograms:
    """How chains start, warm up and draw.

    Parameters
    ----------
    task, kernel
        What was asked for, and one step.
    reader, most_draws
        Where batches come from, and the draws that one call records at most.
    """

    def __init__(self, task: Task, kernel: Kernel, reader: RowReader, most_draws: int):
        self.task, self.kernel = task, kernel
        batches = reader.batching(kernel.batches)
        self.programs = Programs(kernel, batches, task.thin, most_draws, task.warmup, task.target.dim)

    def begin(self, key: Array, theta: Array, supplied: Any, laplace: Laplace | None = None) -> LaneState:
        """A chain at its first state; ``supplied`` is what its steps read."""
        task, crew, proposal = self.task, self.task.crew, self.kernel.proposal
        start = task.target.compiled(self._kind("init", supplied), lambda: jax.jit(crew.program(self.programs.init)))
        state = crew.taken(start(*crew.given((key, theta)), supplied))
        adaptation = None
        if proposal is not None:
            adaptation = adapt.start(proposal, theta, task.first_step(self.kernel.temperatures), laplace)
        return LaneState(state, adaptation, adapt.tuning(adaptation, final=True))

    def compile(self, pool: ThreadPoolExecutor, lane: LaneState, supplied: Any) -> tuple[Any, Any]:
        """The programs of warm-up (of draws, where there is none) and of draws, for chains like one."""
        state, adaptation, tuning = lane
        crew, others = self.task.crew, self._others(supplied)
        kinds: list[tuple[Any, Any]] = [(self.programs.warm, adaptation)] if self.task.warmup else []
        kinds.append((self.programs.draw, tuning))
        shapes = shapes_and_types((state, adaptation, others))

        def build(function: Any, step: Any) -> Any:
            program, given = crew.program(function), crew.given((state, step))
            kind = (self._kind(function.__name__, supplied), shapes)
            how = {"is_brief": self.task.is_brief, "may_reorder": self.kernel.may_reorder}
            return self.task.target.compiled(kind, lambda: compile_program(program, *given, *others, **how))

        compiling = [pool.submit(build, function, step) for function, step in kinds]
        return compiling[0].result(), compiling[-1].result()

    def of_single_steps(self, lane: LaneState, supplied: Any) -> Any:
        """The program whose draws are one step each, however many those of the run are."""
        one = replace(self.programs, thin=1)
        given = (lane.state, lane.tuning, *self._others(supplied))
        kind = (one.identity_of("draw"), shapes_and_types((lane.state, lane.adaptation, given)))
        how = {"may_reorder": self.kernel.may_reorder}
        return self.task.target.compiled(kind, lambda: compile_program(one.draw, *given, **how))

    def _others(self, supplied: Any) -> tuple[Any, ...]:
        """What any program is given beside the state of a chain, in its form."""
        return (*self.task.crew.given((self.task.key(Purpose.draw, 0), *ints(0, 0))), supplied)

    def _kind(self, program: str, supplied: Any) -> Any:
        """What tells a program of this run from those of others."""
        task = self.task
        return self.programs.identity_of(program), task.sharers, task.is_brief, jax.tree.structure(supplied)
