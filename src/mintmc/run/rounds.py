"""A ladder of rungs in rounds: rings are frozen while the rungs run side by side, and extended between rounds.

Rungs start one after the other, the hottest first: each warms up, then fills its rings with ``feed`` draws before the
next begins. The draws that count begin when the coldest has warmed up; from then on all rungs go on. What happens in
a round depends on its number alone, so a run does not depend on the machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from typing import Any

import jax
import numpy as np

from mintmc import count
from mintmc.data import PASSES_PER_SHUFFLE, RowReader, Supplied
from mintmc.kernels.equi_energy import EquiEnergyKernel, Rung
from mintmc.ladder.ladder import Ladder
from mintmc.ladder.reference import Reference
from mintmc.run import adapt
from mintmc.run.chain_programs import LaneState
from mintmc.run.draws import Part
from mintmc.run.keys import Purpose, ints
from mintmc.run.protocol import Run, Session, Standing
from mintmc.run.rung_programs import RungPrograms
from mintmc.run.rung_record import RungRecord
from mintmc.run.rung_rings import RungRings
from mintmc.run.schedule import Costs, Round, draw_round, warmup_rounds
from mintmc.run.task import Task
from mintmc.statistics import unpacked


class RoundRun(Run):
    """Where a run of an equi-energy sampler stands.

    Parameters
    ----------
    task, ladder, reference
        What was asked for, and what energies are counted from.
    kernels, places
        One step of every rung, and where it stands.
    rings
        What rungs leave to each other.
    name, batching
        Of the sampler, and how it draws batches.
    feed, round_length, steps
        Draws that feed the next rung, draws between two extensions of the rings, and steps of every rung for one draw.
    is_audited
        Whether moves on batches are to be compared with all data.
    keeps_rungs
        Whether the states of all rungs are kept, not only those of rung 0.
    """

    def __init__(
        self,
        task: Task,
        ladder: Ladder,
        reference: Reference,
        kernels: Sequence[EquiEnergyKernel],
        places: Sequence[Rung],
        rings: RungRings,
        *,
        name: str,
        batching: str,
        feed: int,
        round_length: int,
        steps: Sequence[int],
        is_audited: bool,
        keeps_rungs: bool = False,
    ):
        self.task, self.ladder, self.reference, self.rings = task, ladder, reference, rings
        self.kernels, self.places, self.steps = kernels, places, steps
        self.name, self.feed, self.round_length, self.is_audited = name, feed, round_length, is_audited
        n, rungs = task.target.n, len(ladder)
        self.warmup_rounds = warmup_rounds(rungs, task.warmup, feed, round_length)
        posterior = reference.target.posterior
        self.reader = RowReader(posterior.data, batching, task.seed, posterior.beside)
        self.largest = max((size for size in ladder.rows(n) if size < n), default=0)
        # The rung with the largest batches decides when the data have been read often enough to be shuffled anew.
        per_round = round_length * (self.largest or 1)
        self.rounds_per_shuffle = max(1, math.ceil(PASSES_PER_SHUFFLE * n / per_round))
        self.rows = self.reader.rows(0, self.largest)
        self.made = [0] * rungs
        self.rounds_done = self.drawn = 0
        self.acceptance = np.full(task.chains, np.nan)
        self.width = task.target.dim * (rungs if keeps_rungs else 1)
        self.record = RungRecord(task, ladder, reference, kernels, steps, keeps_rungs)
        self.costs = Costs([kernel.local(None).most_touched or 0 for kernel in kernels], [task.thin * k for k in steps])

    @property
    def lanes(self) -> int:
        """What can run at once."""
        return self.task.chains * len(self.ladder)

    @property
    def to_warm(self) -> int:
        """How many there are."""
        return len(self.warmup_rounds)

    @property
    def waiting(self) -> np.ndarray:
        """Draws that were made and not yet taken."""
        return self.record.kept.theta[:, : self.drawn - self.record.first]

    @property
    def warmed(self) -> int:
        """Rounds of warm-up that are done."""
        return min(self.rounds_done, len(self.warmup_rounds))

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more draws."""
        return self.drawn == self.record.end

    @property
    def outline(self) -> str:
        """What it is going to do."""
        task, rungs = self.task, len(self.ladder)
        steps = f" of {task.thin} steps" if task.thin > 1 else ""
        chains = f"{task.chains} {'chain' if task.chains == 1 else 'chains'}"
        work = f"{rungs} x ({task.warmup:,} warm-up + {self.feed:,} feed) + {task.draws:,} draws{steps} each"
        return f"{self.name}: {self.ladder.outline(task.target.n)}, {chains}, {work}; compiling"

    def compile(self, session: Session, room: int) -> None:
        """Start all rungs of all chains and compile their programs, unless that was done before."""
        programs = RungPrograms(
            self.task,
            self.ladder,
            self.reference.target,
            self.kernels,
            self.steps,
            self.round_length,
            self.reader,
            self._supplies,
        )
        phase = programs.phase(session)
        self.states = programs.start(session, phase)
        self.record.begin([lane.state for lane in self.states[0]])
        self.programs = programs.compile(session, phase, self.states)
        self.record.make_room(room, self.programs[0][1].out_info[1])

    def warm_up(self, session: Session) -> Iterator[None]:
        """Start the rungs one after the other; each adapts its step size, then feeds the next."""
        rounds, chains = self.warmup_rounds, self.task.chains
        done = sum(r.work for r in rounds[: self.rounds_done])
        costs = [self.costs.of_round(r) * chains for r in rounds]
        phase = session.display.phase(
            "warm-up",
            sum(r.work for r in rounds) * chains,
            done * chains,
            cost=sum(costs[self.rounds_done :]),
            later=self.costs.of_draws(self.task.draws - self.drawn) * self.task.chains,
        )
        for r in rounds[self.rounds_done :]:
            if session.interrupt.requested:
                return
            self._run(r, session, phase)
            if r.warming is not None and r.last == self.task.warmup:
                self._settle(r.warming)
            yield
        if not self.task.warmup:
            for k in range(len(self.ladder)):
                self._settle(k)

    def collect(self, session: Session, end: int) -> Iterator[None]:
        """Make draws until there are ``end``."""
        cost = self.costs.of_draws(self.task.draws - self.drawn) * self.task.chains
        phase = session.display.phase("draws", self.task.draws * self.lanes, self.drawn * self.lanes, cost=cost)
        before = len(self.warmup_rounds)
        while self.drawn < end and not session.interrupt.requested:
            limit = min(end, self.record.end)
            r = draw_round(before, len(self.ladder), self.round_length, self.drawn, limit)
            self._run(r, session, phase)
            self.drawn = r.last
            self.record.close(r.first, r.last)
            yield

    def take(self) -> Part:
        """The draws made since it was last asked."""
        return self.record.take(self.drawn, self.rings)

    def checkpoint(self) -> Any:
        """Everything that the rest of the run depends on, as a pytree of arrays."""
        at = np.array([self.rounds_done, self.drawn, *self.made])
        return at, self.states, self.rings.checkpoint(), *self.record.checkpoint()

    def restore(self, checkpoint: Any) -> None:
        """Go on from a checkpoint."""
        at, self.states, rings, *record = checkpoint
        self.rounds_done, self.drawn, *self.made = (int(number) for number in at)
        self.record.restore(record, self.drawn)
        self.rings.restore(rings)

    def committed(self) -> None:
        """The checkpoint is safe: the files of the rings may follow."""
        self.rings.committed()

    def facts(self) -> dict[str, Any]:
        """What else the tree should know."""
        tunings = [[float(state.tuning.step_size) for state in states if state.tuning] for states in self.states]
        return {"step_size": np.array(tunings).T.tolist()} | self.record.facts()

    def standings(self) -> dict[int, Standing]:
        """Where the chains stand on every rung that moves on batches."""
        rungs = [k for k in range(len(self.ladder)) if self.is_audited and not self.kernels[k].is_exact]
        return {
            k: Standing(
                self.kernels[k].plain(self.ladder.temperatures[k]),
                [np.asarray(s.state.point.theta) for s in self.states[k]],
                [s.tuning for s in self.states[k]],
            )
            for k in rungs
        }

    def _run(self, r: Round, session: Session, phase: Any) -> None:
        chains = range(self.task.chains)
        self.rows = self.reader.rows(r.number // self.rounds_per_shuffle, self.largest)
        # Colder rungs take longer: they go first, so that no core waits long for another at the end.
        jobs = [session.pool.submit(self._warm, r.warming, chain, r) for chain in chains if r.warming is not None]
        jobs += [session.pool.submit(self._draw, k, chain, r) for k in r.drawing for chain in chains]
        for job in as_completed(jobs):
            session.display.advance(phase, r.last - r.first, *job.result())
        self.task.check_reads()
        for k in r.drawing:
            self.made[k] += r.last - r.first
        if r.ends:
            for k in (rung for rung in r.drawing if rung > 0):
                self.rings.file(k, r.offset + r.last - r.first, r.number)
            self.rounds_done += 1

    def _warm(self, k: int, chain: int, r: Round) -> tuple[float, float]:
        """A rung's part of a round; returns its acceptance rate and its cost."""
        state, adaptation, tuning = self.states[k][chain]
        given = (self.task.key(Purpose.warmup, chain, k), *ints(r.first, r.last), self._supplies(k, chain))
        state, adaptation, totals = self.programs[k][0](state, adaptation, *given)
        self.states[k][chain] = LaneState(state, adaptation, tuning)
        self.record.note_warmup(k, chain, totals.touched, state)
        self.acceptance[chain] = rate = float(count.rate_total(totals.acceptance)) / (r.last - r.first)
        return rate, (r.last - r.first) * self.costs.of_step(k)

    def _draw(self, k: int, chain: int, r: Round) -> tuple[float, float]:
        """The same for draws."""
        state, adaptation, tuning = self.states[k][chain]
        first, last = self.made[k], self.made[k] + r.last - r.first
        given = (self.task.key(Purpose.draw, chain, k), *ints(first, last), self._supplies(k, chain))
        state, record = self.programs[k][1](state, tuning, *given)
        self.states[k][chain] = LaneState(state, adaptation, tuning)
        declared, made = self.kernels[k].statistics, last - first
        theta, values = unpacked(declared, record)
        known = values["energy_above"], values.get("gradient"), values.get("energy")
        # To tell which ring a state belongs to takes rows, too.
        read = self.rings.shelve(k, chain, r.offset, theta, *known, made)
        theta, values = jax.tree.map(lambda leaf: np.asarray(leaf)[:made], (theta, values))
        touched = count.total(values["data_touched"]) + read
        self.record.note(k, chain, r.first if r.recorded else None, theta, values, touched)
        rate = float(np.mean(values["acceptance_rate"]))
        if k == r.drawing[0]:
            self.acceptance[chain] = rate
        return rate, made * self.costs.of_draw(k)

    def _settle(self, k: int) -> None:
        """From now on a rung's step size stays as it is."""
        self.states[k] = [s._replace(tuning=adapt.tuning(s.adaptation, final=True)) for s in self.states[k]]

    def _supplies(self, k: int, chain: int) -> Supplied:
        return Supplied(self.rows, {"rung": self.places[k], "rings": self.rings.above(k, chain)})
