"""Independent chains side by side, in stretches.

A chain is one program; as many run at once as the machine has cores, each on a thread of its own (XLA releases the
interpreter while it computes). The data are shared by all of them, not copied. Where several processes make every full
pass together (``Task.sharers``), they run the same chain at the same time, one after the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from mintmc import count
from mintmc.compiled import shapes_and_types
from mintmc.data import RowReader, Supplied
from mintmc.kernels.base import Kernel
from mintmc.proposals import Tuning
from mintmc.run import adapt, stretches
from mintmc.run.beside import Centres, Watcher
from mintmc.run.draws import Draws, Part, shapes_of
from mintmc.run.keys import Purpose, ints
from mintmc.run.program import Programs
from mintmc.run.protocol import Run, Session, Standing
from mintmc.run.task import Task, compile_program
from mintmc.run.workers import workers
from mintmc.statistics import Info, total, unpacked


class LaneState(NamedTuple):
    """Where one chain, or one rung of it, stands."""

    state: Any
    adaptation: adapt.Adaptation | None
    tuning: Tuning | None


class ChainRun(Run):
    """Where a run stands: its chains, the current shuffle, and the draws not yet taken.

    Parameters
    ----------
    task, kernel
        What was asked for, and one step.
    name
        Of the sampler, for the outline.
    batching
        "shuffled", "uniform", or "none" if all data are read in their own order.
    watcher
        Looks on; None if nobody does.
    about
        What the outline says of the target.
    setup_touched
        Data that were read before the chains began.
    centres
        Around which each chain knows the target; None if nothing is known.
    width
        Numbers that a draw holds, about; None if they are those of the parameters.
    """

    def __init__(
        self,
        task: Task,
        kernel: Kernel,
        name: str,
        *,
        batching: str = "shuffled",
        watcher: Watcher | None = None,
        about: str | None = None,
        setup_touched: int = 0,
        centres: Centres | None = None,
        width: int | None = None,
    ):
        self.task, self.crew, self.watcher, self.centres = task, task.crew, watcher, centres
        self.about = about or f"T = {float(kernel.temperatures):.4g}"
        self.name, self.width = name, width or task.target.dim
        self.capacity = stretches.record_capacity(self.width)
        posterior = task.target.posterior
        self.reader = RowReader(posterior.data, batching, task.seed, posterior.beside)
        self._prepare(kernel)
        self.warmed = self.drawn = self.taken = 0
        self.warmup_totals = np.zeros((task.chains, 2))  # acceptance rates, data touched
        self.setup_touched = [setup_touched + task.settled_rows] + [0] * (task.chains - 1)
        self.totals: dict[str, np.ndarray] = {}

    def _prepare(self, kernel: Kernel) -> None:
        """The programs of a kernel, and the rows that its batches are drawn from."""
        task, self.kernel = self.task, kernel
        self.largest = max((size for role, size in kernel.batches.items() if role != "all"), default=0)
        self.steps_per_shuffle = self.reader.steps_per_shuffle(kernel.batches)
        batches = self.reader.batching(kernel.batches)
        self.programs = Programs(kernel, batches, task.thin, self.capacity, task.warmup, task.target.dim)
        self.epoch = -1
        self._shuffle(0)

    @property
    def lanes(self) -> int:
        """Programs that may run at once."""
        return self.crew.lanes(self.task.chains)

    @property
    def outline(self) -> str:
        """What it is going to do."""
        task = self.task
        steps = f" of {task.thin} steps" if task.thin > 1 else ""
        chains = f"{task.chains} {'chain' if task.chains == 1 else 'chains'}"
        work = f"{task.warmup:,} warm-up + {task.draws:,} draws{steps} each"
        found = "" if self.centres is None else f"\n{self.centres.said()}"
        return f"{self.name}: {self.about}, {chains}, {work}; compiling{found}"

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more draws."""
        return self.drawn == self.taken + self.kept.room

    def compile(self, session: Session, room: int) -> None:
        """Start the chains and compile the programs that run them, unless that was done before."""
        task, programs = self.task, self.programs
        start = task.target.compiled(self._kind("init"), lambda: jax.jit(self.crew.program(programs.init)))
        first_step = task.first_step(self.kernel.temperatures)
        self.states = []
        for chain, theta in enumerate(task.thetas):
            given = self.crew.given((task.key(Purpose.start, chain), theta))
            state = self.crew.taken(start(*given, self._supplied(chain)))
            adaptation = None
            if self.kernel.proposal is not None:
                adaptation = adapt.start(self.kernel.proposal, theta, first_step, self._laplace(chain))
            self.states.append(LaneState(state, adaptation, adapt.tuning(adaptation, final=True)))
        if self.watcher is not None:
            read = self.watcher.begin([state.state for state in self.states])
            self.setup_touched = [a + b for a, b in zip(self.setup_touched, read, strict=True)]
        self._compile(session.pool)
        touched = self.kernel.touched and self.kernel.touched * task.thin
        record = self.draw_program.out_info[1]
        self.kept = Draws.empty(task.chains, room, self.kernel.statistics, record, touched)
        for each, shape in shapes_of(self.kernel.statistics, record).items():
            if each.kept == "total":
                self.totals[each.name] = np.zeros((task.chains, *shape))

    def _kind(self, program: str) -> Any:
        """What tells a program of this run from those of others."""
        return self.programs.identity_of(program), self.task.sharers, jax.tree.structure(self._supplied(0))

    def _compile(self, pool: ThreadPoolExecutor) -> None:
        """The programs of warm-up and of draws."""
        task = self.task
        state, adaptation, tuning = self.states[0]
        others = (*self.crew.given((task.key(Purpose.draw, 0), *ints(0, 0))), self._supplied(0))
        kinds: list[tuple[Any, Any]] = [(self.programs.warm, adaptation)] if task.warmup else []
        kinds.append((self.programs.draw, tuning))
        shapes = shapes_and_types((state, adaptation, others))

        def build(function: Any, step: Any) -> Any:
            program, given = self.crew.program(function), self.crew.given((state, step))
            kind = (self._kind(function.__name__), shapes)
            return task.target.compiled(kind, lambda: compile_program(program, *given, *others))

        compiling = [pool.submit(build, function, step) for function, step in kinds]
        self.warm_program, self.draw_program = compiling[0].result(), compiling[-1].result()

    def warm_up(self, session: Session) -> Iterator[None]:
        """Adapt every chain's step size and preconditioner, then freeze them."""
        warmup = self.task.warmup

        def run(chain: int, first: int, last: int) -> float:
            state, adaptation, tuning = self.states[chain]
            given = self.crew.given((state, adaptation, self.task.key(Purpose.warmup, chain), *ints(first, last)))
            state, adaptation, totals = self.crew.taken(self.warm_program(*given, self._supplied(chain)))
            accepted = count.rate_total(totals.acceptance)
            self.warmup_totals[chain] += accepted, count.total(totals.touched)
            self.states[chain] = LaneState(state, adaptation, tuning)
            if self.watcher is not None:
                self.watcher.note(chain, state, None)
            return float(accepted) / (last - first)

        phase = self._phase(session, "warm-up", self.warmed, warmup, (self.task.draws - self.drawn) * self.task.thin)
        # Chains that have wandered off by then get another centre.
        halves = [warmup] if self.centres is None else [warmup // 2, warmup]
        for end in halves:
            if self.warmed > end or (self.warmed == end and end == warmup):
                continue
            for last in self._stretches(session, phase, self.warmed, end, partial(int, end), 1, 0, run):
                self.warmed = last
                yield
            if self.warmed < end:
                return
            if end < warmup:
                self._reconsider(session.pool)
        if self.warmed == warmup and self.drawn == 0:
            self.states = [s._replace(tuning=adapt.tuning(s.adaptation, final=True)) for s in self.states]

    def _reconsider(self, pool: ThreadPoolExecutor) -> None:
        """Give chains that have wandered off a new centre, and all of them a larger batch if they need one."""
        assert self.centres is not None
        states = [self.kernel.position(s.state) for s in self.states]
        tunings = [adapt.tuning(s.adaptation, final=True) for s in self.states]
        for chain in self.centres.reconsider(states, tunings):
            lane = self.states[chain]
            if lane.adaptation is not None:
                adaptation = adapt.start(self.kernel.proposal, states[chain], 1.0, self._laplace(chain))
                self.states[chain] = lane._replace(adaptation=adaptation)
        self._follow_centres(pool)

    def _follow_centres(self, pool: ThreadPoolExecutor) -> None:
        """The same chains, with batches of another size if their centres ask for it."""
        if self.centres is not None and self.centres.kernel is not self.kernel:
            self._prepare(self.centres.kernel)
            self._compile(pool)

    def collect(self, session: Session) -> Iterator[None]:
        """Make the draws."""
        task, declared = self.task, self.kernel.statistics

        def run(chain: int, first: int, last: int) -> float:
            state, adaptation, tuning = self.states[chain]
            given = self.crew.given((state, tuning, task.key(Purpose.draw, chain), *ints(first, last)))
            state, record = self.crew.taken(self.draw_program(*given, self._supplied(chain)))
            theta, values = unpacked(declared, jax.tree.map(lambda leaf: np.asarray(leaf)[: last - first], record))
            self.kept.write(chain, first - self.taken, theta, values, declared)
            self._add_up(chain, values)
            self.states[chain] = LaneState(state, adaptation, tuning)
            if self.watcher is not None:
                self.watcher.note(chain, state, values)
            return float(np.mean(values["acceptance_rate"]))

        def room() -> int:
            return self.taken + self.kept.room

        phase = self._phase(session, "draws", self.drawn, task.draws)
        for last in self._stretches(session, phase, self.drawn, task.draws, room, task.thin, task.warmup, run):
            self.drawn = last
            yield

    def take(self) -> Part:
        """The draws made since it was last asked."""
        first, self.taken = self.taken, self.drawn
        draws = self.kept.between(0, self.drawn - first)
        shown = tuple(each for each in self.kernel.statistics if each.kept == "draws")
        steps = self.drawn * self.task.thin
        groups = {} if self.watcher is None else self.watcher.groups(draws, self.totals, steps)
        return Part(first, draws, shown, groups)

    def checkpoint(self) -> Any:
        """Everything that the rest of the run depends on, as a pytree of arrays."""
        watched = None if self.watcher is None else self.watcher.checkpoint()
        centres = None if self.centres is None else self.centres.checkpoint()
        return np.array([self.warmed, self.drawn]), self.states, self.warmup_totals, self.totals, watched, centres

    def restore(self, checkpoint: Any) -> None:
        """Go on from a checkpoint."""
        at, self.states, self.warmup_totals, self.totals, watched, centres = checkpoint
        if self.watcher is not None:
            self.watcher.restore(watched)
        if self.centres is not None:
            self.centres.restore(centres)
            with workers(1) as pool:
                self._follow_centres(pool)
        self.warmed, self.drawn = (int(number) for number in at)
        self.taken = self.drawn

    def committed(self) -> None:
        """Nothing of a chain is outside of its checkpoint."""

    def facts(self) -> dict[str, Any]:
        """What else the tree should know."""
        tunings = [s.tuning for s in self.states]
        steps = (self.kernel.touched or 0) * self.task.warmup
        setup = self.kernel.init_touched + np.array(self.setup_touched) + steps + self.warmup_totals[:, 1]
        setup[0] += 0 if self.centres is None else self.centres.rows_read
        defined = self.totals["is_defined"].sum()
        return {
            "undefined_moves": int(self.drawn * self.task.chains - defined),
            "step_size": [np.asarray(t.step_size).tolist() for t in tunings if t is not None],
            "data_touched_setup": setup.astype(int).tolist(),
            "warmup_acceptance_rate": float(self.warmup_totals[:, 0].mean() / max(self.task.warmup, 1)),
            **({} if self.centres is None else self.centres.facts()),
            **({} if self.watcher is None else self.watcher.facts(self.totals)),
        }

    def standings(self) -> dict[int, Standing]:
        """Where the chains stand on every rung that moves on batches."""
        found = {}
        for rung, kernel in self.kernel.audited().items():
            stands = [self.kernel.of_rung(s.state, s.tuning, rung) for s in self.states]
            thetas, tunings = [np.asarray(theta) for theta, _ in stands], [tuning for _, tuning in stands]
            centres = self.centres.of_chain if self.centres is not None and self.centres.supplied(0) else None
            found[rung] = Standing(kernel, thetas, tunings, centres)
        return found

    def _laplace(self, chain: int) -> Any:
        return None if self.centres is None else self.centres.of_chain[chain].laplace

    def _supplied(self, chain: int) -> Any:
        """What the steps of a chain read."""
        others = {} if self.centres is None else self.centres.supplied(chain)
        return Supplied(self.rows, others) if others else self.rows

    def _add_up(self, chain: int, values: Info) -> None:
        """Keep count of what is reported of the whole run."""
        for each in self.kernel.statistics:
            if each.kept == "total":
                self.totals[each.name][chain] += total(each, values[each.name], self.task.thin)

    def _phase(self, session: Session, name: str, done: int, of: int, later: int = 0) -> Any:
        """A line of progress, counted in steps or draws of all chains."""
        chains = self.task.chains
        return session.display.phase(name, of * chains, done * chains, later=later * chains)

    def _stretches(
        self,
        session: Session,
        phase: Any,
        first: int,
        end: int,
        room: Callable[[], int],
        thin: int,
        offset: int,
        run: Callable[[int, int, int], float],
    ) -> Iterator[int]:
        """Run all chains from ``first`` to ``end``, or until interrupted, in stretches of about the same time."""
        chains, size = self.task.chains, stretches.FIRST
        while first < end:
            at = offset + first * thin
            self._shuffle(at // self.steps_per_shuffle)
            to_next_shuffle = self.steps_per_shuffle - at % self.steps_per_shuffle
            last = min(end, first + size, room(), first + -(-to_next_shuffle // thin))
            last = self.crew.agreed(first if session.interrupt.requested else last)
            if last == first:
                return
            begun = time.perf_counter()
            rates = list(session.pool.map(lambda chain, a=first, b=last: run(chain, a, b), range(chains)))
            seconds = time.perf_counter() - begun
            self.task.check_reads()
            session.display.advance(phase, (last - first) * chains, float(np.mean(rates)))
            size = stretches.next_size(last - first, seconds, self.capacity)
            first = last
            yield last

    def _shuffle(self, epoch: int) -> None:
        """Have the rows of an epoch at hand."""
        if epoch != self.epoch:
            self.rows, self.epoch = self.crew.given(self.reader.rows(epoch, self.largest)), epoch
