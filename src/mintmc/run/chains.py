"""Independent chains side by side, in stretches.

A chain is one program; as many run at once as the machine has cores, each on a thread of its own (XLA releases the
interpreter while it computes). The data are shared by all of them, not copied. Where several processes make every full
pass together (``Task.sharers``), they run the same chain at the same time, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array

from mintmc import count
from mintmc.data import RowReader, Supplied
from mintmc.kernels.base import Kernel
from mintmc.run import adapt, stretches
from mintmc.run.beside import Centres, Watcher
from mintmc.run.chain_programs import ChainPrograms, LaneState
from mintmc.run.chain_record import ChainRecord
from mintmc.run.draws import Part
from mintmc.run.keys import Purpose, ints
from mintmc.run.protocol import Run, Session, Standing
from mintmc.run.task import Task
from mintmc.run.workers import workers
from mintmc.statistics import unpacked


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
        self.task, self.crew, self.centres = task, task.crew, centres
        self.record = ChainRecord(task, watcher)
        self.about = about or f"T = {float(kernel.temperatures):.4g}"
        self.name, self.width = name, width or task.target.dim
        self.most_draws = stretches.most_draws_of(self.width)
        posterior = task.target.posterior
        self.reader = RowReader(posterior.data, batching, task.seed, posterior.beside)
        self._prepare(kernel)
        self.warmed = self.drawn = 0
        self.to_warm = task.warmup
        self.warmup_totals = np.zeros((task.chains, 2))  # acceptance rates, data touched
        self.setup_touched = [setup_touched + task.settled_rows] + [0] * (task.chains - 1)

    def _prepare(self, kernel: Kernel) -> None:
        """The programs of a kernel, and the rows that its batches are drawn from."""
        self.kernel = kernel
        # No stretch is longer than a shuffle lasts, and to make room takes time in each.
        most_draws = min(self.most_draws, -(-self.reader.steps_per_shuffle(kernel.batches) // self.task.thin))
        self.stretches = stretches.Stretches(self.task, self.reader, kernel.batches, most_draws)
        self.programs = ChainPrograms(self.task, kernel, self.reader, most_draws)

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
        return self.drawn == self.record.end

    def compile(self, session: Session, room: int) -> None:
        """Start the chains and compile the programs that run them, unless that was done before."""
        self.states = [self._begun(chain, theta) for chain, theta in enumerate(self.task.thetas)]
        read = self.record.begin([state.state for state in self.states])
        self.setup_touched = [a + b for a, b in zip(self.setup_touched, read, strict=True)]
        self._compile(session.pool)
        self.record.make_room(room, self.kernel, self.draw_program.out_info[1])

    def _begun(self, chain: int, theta: Array) -> LaneState:
        key = self.task.key(Purpose.start, chain)
        return self.programs.begin(key, theta, self._supplied(chain), self._laplace(chain))

    def _compile(self, pool: ThreadPoolExecutor) -> None:
        """The programs of warm-up and of draws."""
        compiled = self.programs.compile(pool, self.states[0], self._supplied(0))
        self.warm_program, self.draw_program = compiled

    def warm_up(self, session: Session) -> Iterator[None]:
        """Adapt every chain's step size and preconditioner, then freeze them."""
        warmup = self.task.warmup

        def run(chain: int, first: int, last: int) -> float:
            state, adaptation, tuning = self.states[chain]
            given = self.crew.given((state, adaptation, self.task.key(Purpose.warmup, chain), *ints(first, last)))
            state, adaptation, totals = self.crew.taken(self.warm_program(*given, self._supplied(chain)))
            accepted = count.rate_total(totals.acceptance)
            # Batches may grow half-way: every step counts by the kernel that made it.
            touched = count.total(totals.touched) + (self.kernel.touched or 0) * (last - first)
            self.warmup_totals[chain] += accepted, touched
            self.states[chain] = LaneState(state, adaptation, tuning)
            self.record.note(chain, state)
            return float(accepted) / (last - first)

        phase = self._phase(session, "warm-up", self.warmed, warmup, (self.task.draws - self.drawn) * self.task.thin)
        # Chains that have wandered off by then get another centre.
        halves = [warmup] if self.centres is None else [warmup // 2, warmup]
        for end in halves:
            if self.warmed > end or (self.warmed == end and end == warmup):
                continue
            for last in self.stretches.run(session, phase, self.warmed, end, partial(int, end), 1, 0, run):
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
            self.record.count_rows(self.kernel)

    @property
    def waiting(self) -> np.ndarray:
        """Draws that were made and not yet taken."""
        return self.record.kept.theta[:, : self.drawn - self.record.first]

    @property
    def acceptance(self) -> np.ndarray:
        """Of each chain, in the last stretch."""
        return self.stretches.acceptance

    def collect(self, session: Session, end: int) -> Iterator[None]:
        """Make draws until there are ``end``."""
        task, declared = self.task, self.kernel.statistics

        def run(chain: int, first: int, last: int) -> float:
            state, adaptation, tuning = self.states[chain]
            given = self.crew.given((state, tuning, task.key(Purpose.draw, chain), *ints(first, last)))
            state, record = self.crew.taken(self.draw_program(*given, self._supplied(chain)))
            theta, values = unpacked(declared, jax.tree.map(lambda leaf: np.asarray(leaf)[: last - first], record))
            self.states[chain] = LaneState(state, adaptation, tuning)
            self.record.write(chain, first, state, theta, values)
            return float(np.mean(values["acceptance_rate"]))

        def room() -> int:
            return self.record.end

        phase = self._phase(session, "draws", self.drawn, task.draws)
        for last in self.stretches.run(session, phase, self.drawn, end, room, task.thin, task.warmup, run):
            self.drawn = last
            yield

    def take(self) -> Part:
        """The draws made since it was last asked."""
        return self.record.take(self.drawn)

    def checkpoint(self) -> Any:
        """Everything that the rest of the run depends on, as a pytree of arrays."""
        centres = None if self.centres is None else self.centres.checkpoint()
        at = np.array([self.warmed, self.drawn])
        return at, self.states, self.warmup_totals, *self.record.checkpoint(), centres

    def restore(self, checkpoint: Any) -> None:
        """Go on from a checkpoint."""
        at, self.states, self.warmup_totals, totals, watched, centres = checkpoint
        if self.centres is not None:
            self.centres.restore(centres)
            with workers(1) as pool:
                self._follow_centres(pool)
        self.warmed, self.drawn = (int(number) for number in at)
        self.record.restore(totals, watched, self.drawn)

    def committed(self) -> None:
        """Nothing of a chain is outside of its checkpoint."""

    def facts(self) -> dict[str, Any]:
        """What else the tree should know."""
        tunings = [s.tuning for s in self.states]
        setup = self.kernel.init_touched + np.array(self.setup_touched) + self.warmup_totals[:, 1]
        setup[0] += 0 if self.centres is None else self.centres.rows_read
        return {
            "step_size": [np.asarray(t.step_size).tolist() for t in tunings if t is not None],
            "data_touched_setup": setup.astype(int).tolist(),
            "warmup_acceptance_rate": float(self.warmup_totals[:, 0].mean() / max(self.task.warmup, 1)),
            **({} if self.centres is None else self.centres.facts()),
            **self.record.facts(self.drawn),
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
        return Supplied(self.stretches.rows, others) if others else self.stretches.rows

    def _phase(self, session: Session, name: str, done: int, of: int, later: int = 0) -> Any:
        """A line of progress, counted in steps or draws of all chains."""
        chains = self.task.chains
        return session.display.phase(name, of * chains, done * chains, later=later * chains)
