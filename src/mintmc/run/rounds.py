"""A ladder of rungs in rounds: rings are frozen while the rungs run side by side, and extended between rounds.

Rungs start one after the other, the hottest first: each warms up, then fills its rings with ``feed`` draws before the
next begins. The draws that count begin when the coldest has warmed up; from then on all rungs go on. What happens in
a round depends on its number alone, so a run does not depend on the machine.
"""

from __future__ import annotations

import json
import math
from concurrent.futures import as_completed
from typing import Any

import jax
import numpy as np

from mintmc.acceptance.minibatch import Common
from mintmc.data import Supplied
from mintmc.energy import Model, Referenced, Tempered
from mintmc.kernels.metropolis import Settings
from mintmc.ladder.rings import States, Store, fixed_edges
from mintmc.result.ladder import LadderFacts
from mintmc.result.tree import Draws
from mintmc.run import adapt, count, program, tally
from mintmc.run.audit_run import Standing
from mintmc.run.landmarks import Landmarks
from mintmc.run.lane import (
    PASSES_PER_SHUFFLE,
    LaneState,
    Purpose,
    Session,
    Task,
    check_countable,
    compile_program,
    ints,
    key_of,
)
from mintmc.run.rungs import empty_rings, fixed_subset, places, shelf
from mintmc.run.schedule import Round, draw_round, warmup_rounds
from mintmc.samplers import EquiEnergy

_OVERHEAD = 200
"""Of a step that reads next to nothing, in rows."""
_PROGRAMS = 10
"""How much longer it takes to compile the programs of a rung than to start it."""


class LadderRun:
    """Where a run of an equi-energy sampler stands."""

    def __init__(self, task: Task):
        self.task = task
        self.sampler: EquiEnergy = task.sampler
        self.ladder = self.sampler.ladder
        n, chains, rungs = task.posterior.n, len(task.thetas), len(self.ladder)
        check_countable(n, 1, self.sampler.proposal)  # each rung counts for itself
        self.sizes = self.ladder.rows(n)
        feed = task.warmup if self.sampler.feed is None else self.sampler.feed
        self.warmup_rounds = warmup_rounds(rungs, task.warmup, feed, self.sampler.round_length)
        self.steps = self.sampler.steps or (1,) * rungs
        self.kernels = [task.kernel(reference=task.reference, rung=k) for k in range(rungs)]
        batches = [size for size in self.sizes if size < n]
        self.shuffles = task.shuffles(batches)
        # The rung with the largest batches decides when the data have been read often enough to be shuffled anew.
        per_round = self.sampler.round_length * max(batches, default=1)
        self.rounds_per_shuffle = max(1, math.ceil(PASSES_PER_SHUFFLE * n / per_round))
        self.rows = self.shuffles.at(0)
        # Above the hottest rung there is nothing to jump to: rings like its own that stay empty, as do the coldest's.
        feeders = [*range(rungs), rungs - 1]
        self.subsets = [fixed_subset(task, self.sizes[k]) for k in feeders]
        edges = fixed_edges(self.sampler.rings, self.ladder)
        self.rings = [
            [
                empty_rings(task, edges, self.sizes[k] == n, f"{place}-{group}" if 0 < place < rungs else None)
                for group in range(self._groups)
            ]
            for place, k in enumerate(feeders)
        ]
        self.stores = [[self._store(k, group) for group in range(self._groups)] for k in range(rungs + 1)]
        self.rungs = places(task, edges)
        length = self.sampler.round_length
        self.fresh = [[shelf(self.rings[k][0], length) for _ in range(chains)] for k in range(rungs)]
        self.made = [0] * rungs
        self.rounds_done = self.drawn = self.saved = 0
        self.warmup_touched = np.zeros((rungs, chains))
        self.audit: list[dict[str, Any]] | None = None
        self.sums = tally.nothing(rungs, chains)
        self.landmarks = Landmarks(task)

    @property
    def lanes(self) -> int:
        """What can run at once."""
        return len(self.task.thetas) * len(self.ladder)

    @property
    def warmed(self) -> int:
        """Rounds of warm-up that are done."""
        return min(self.rounds_done, len(self.warmup_rounds))

    def compile(self, session: Session, room: int) -> None:
        """Start all rungs of all chains and compile their programs; ``room`` is for draws not yet saved."""
        rungs, chains = range(len(self.ladder)), range(len(self.task.thetas))
        # Rungs that differ in temperature only share their programs.
        kinds = [(self.sizes[k], self.sizes[min(k + 1, rungs[-1])], self.steps[k]) for k in rungs]
        first = {kind: kinds.index(kind) for kind in kinds}
        phase = session.display.phase("compiling", 2 * len(first), cost=(1 + _PROGRAMS) * len(first))
        programs = {kind: self._program(k) for kind, k in first.items()}
        starts = {kind: jax.jit(built.init) for kind, built in programs.items()}
        self.states = []
        for k in rungs:
            self.states.append([self._start(k, chain, starts[kinds[k]]) for chain in chains])
            session.display.advance(phase, int(first[kinds[k]] == k))
        self.starts_touched = [
            self.landmarks.begin(chain, self.states[0][chain].state.point.density if self.is_exact(0) else None)
            for chain in chains
        ]
        compiling = {kind: session.pool.submit(self._compile, programs[kind], k) for kind, k in first.items()}
        for _ in as_completed(compiling.values()):
            session.display.advance(phase, 1, cost=_PROGRAMS)
        self.programs = [compiling[kind].result() for kind in kinds]
        self.file_energy = jax.jit(self._subset_energies)
        self.kept = Draws.empty(len(chains), room, self.programs[0][1].out_info[1], None)
        self.energy = np.full((len(rungs), len(chains), room), np.nan)
        self.touched = np.zeros((len(rungs), len(chains), room), np.int64)

    def warm_up(self, session: Session) -> None:
        """Start the rungs one after the other; each adapts its step size, then feeds the next."""
        rounds, chains = self.warmup_rounds, len(self.task.thetas)
        done = sum(r.work for r in rounds[: self.rounds_done])
        costs = [self._round_cost(r) * chains for r in rounds]
        phase = session.display.phase(
            "warm-up",
            sum(r.work for r in rounds) * chains,
            done * chains,
            cost=sum(costs[self.rounds_done :]),
            later=self._draws_cost(self.task.draws - self.drawn),
        )
        for r in rounds[self.rounds_done :]:
            if session.interrupt.requested:
                return
            self._run(r, session, phase)
            if r.warming is not None and r.last == self.task.warmup:
                self._freeze(r.warming)
            session.saver.save_if_due(self)
        if not self.task.warmup:
            for k in range(len(self.ladder)):
                self._freeze(k)

    def collect(self, session: Session) -> None:
        """Make the draws."""
        cost = self._draws_cost(self.task.draws - self.drawn)
        phase = session.display.phase("draws", self.task.draws * self.lanes, self.drawn * self.lanes, cost=cost)
        room = self.kept.theta.shape[1]
        before, length = len(self.warmup_rounds), self.sampler.round_length
        while self.drawn < self.task.draws and not session.interrupt.requested:
            limit = min(self.task.draws, self.saved + room)
            r = draw_round(before, len(self.ladder), length, self.drawn, limit)
            self._run(r, session, phase)
            self.drawn = r.last
            # All rungs read data for a draw of the coldest.
            new = slice(r.first - self.saved, r.last - self.saved)
            self.kept.data_touched[:, new] = self.touched[:, :, new].sum(axis=0)
            session.saver.save_if_due(self, full=r.last == self.saved + room)

    def checkpoint(self) -> Any:
        """Everything that the rest of the run depends on, as a pytree of arrays."""
        at = np.array([self.rounds_done, self.drawn, *self.made])
        rings = [[ring.checkpoint() for ring in group] for group in self.rings[1:-1]]
        return at, self.states, rings, self.fresh, self.warmup_touched, self.sums, self.landmarks.checkpoint()

    def restore(self, checkpoint: Any) -> None:
        """Go on from a checkpoint."""
        at, self.states, rings, self.fresh, self.warmup_touched, self.sums, landmarks = checkpoint
        self.landmarks.restore(landmarks)
        self.rounds_done, self.drawn, *self.made = (int(count) for count in at)
        self.saved = self.drawn
        for k, group in enumerate(rings, start=1):
            for ring, saved in zip(self.rings[k], group, strict=True):
                ring.restore(saved)
            self.stores[k] = [self._store(k, g) for g in range(self._groups)]

    def committed(self) -> None:
        """The checkpoint is safe: the files of the rings may follow."""
        for k, group in enumerate(self.rings[1:-1], start=1):
            for ring in group:
                ring.kept.settle(*ring.kept.unsettled())
            self.stores[k] = [self._store(k, g) for g in range(self._groups)]

    def facts(self) -> dict[str, Any]:
        """What else the tree should know."""
        setup = np.array([[kernel.init_touched] for kernel in self.kernels]) + self.warmup_touched
        setup[0, 0] += self.task.reference_touched
        setup[0] += self.starts_touched
        tunings = [[float(state.tuning.step_size) for state in states if state.tuning] for states in self.states]
        return {
            "undefined_moves": int(self.sums["undefined"].sum()),
            "audit": json.dumps(self.audit),
            "data_touched_audit": sum(entry["data_touched"] for entry in self.audit or ()),
            "step_size": np.array(tunings).T.tolist(),
            "data_touched_setup": setup.sum(axis=0).astype(int).tolist(),
        }

    def standings(self) -> dict[int, Standing]:
        """Where the chains stand on every rung that moves on batches; energies that are cut off are not audited."""
        rungs = [k for k, size in enumerate(self.sizes) if size < self.task.posterior.n and not self.sampler.truncate]
        model, theta = self.task.posterior.model(self.task.unravel, self.task.dim), self.task.thetas[0]
        proposal, test = self.task.proposal, Common(self.sampler.penalty)
        return {
            k: Standing(
                Settings(self._tempered(model, k), proposal, test, self.sizes[k], theta.size, theta.dtype),
                [np.asarray(s.state.point.theta) for s in self.states[k]],
                [s.tuning for s in self.states[k]],
            )
            for k in rungs
        }

    def _tempered(self, model: Model, k: int) -> Tempered:
        return Tempered(model, self.ladder.temperatures[k], self.task.energy_of)

    def ladder_facts(self) -> LadderFacts:
        """What happened on every rung."""
        chains = range(len(self.task.thetas))
        seen = np.array([[self.rings[k][self._group(c)].seen for c in chains] for k in range(len(self.ladder))])
        edges = [[self.rings[k][self._group(c)].known_edges for c in chains] for k in range(1, len(self.ladder))]
        return LadderFacts(
            attributes={
                "reference_energy": self.task.reference_energy,
                "energy_of": self.task.energy_of,
                "ring_groups": self._groups,
            },
            landmarks=self.landmarks.facts(),
            temperatures=self.ladder.temperatures,
            batch_sizes=self.sizes,
            energy=self.energy[:, :, : self.drawn - self.saved],
            rates=tally.rates(self.sums),
            ring_occupancy=seen / np.maximum(seen.sum(axis=2, keepdims=True), 1),
            ring_edges=np.array([edges[0], *edges]),
        )

    def is_exact(self, k: int) -> bool:
        """Whether a rung reads all data."""
        return self.sizes[k] == self.task.posterior.n

    @property
    def _groups(self) -> int:
        return 1 if self.sampler.share_rings else len(self.task.thetas)

    def _group(self, chain: int) -> int:
        return 0 if self.sampler.share_rings else chain

    def _run(self, r: Round, session: Session, phase: Any) -> None:
        chains = range(len(self.task.thetas))
        self.rows = self.shuffles.at(r.number // self.rounds_per_shuffle)
        # Colder rungs take longer: they go first, so that no core waits long for another at the end.
        jobs = [session.pool.submit(self._warm, r.warming, chain, r) for chain in chains if r.warming is not None]
        jobs += [session.pool.submit(self._draw, k, chain, r) for k in r.drawing for chain in chains]
        for job in as_completed(jobs):
            session.display.advance(phase, r.last - r.first, *job.result())
        self.task.check_reads()
        for k in r.drawing:
            self.made[k] += r.last - r.first
        if r.ends:
            self._file(r)
            self.rounds_done += 1

    def _warm(self, k: int, chain: int, r: Round) -> tuple[float, float]:
        """A rung's part of a round; returns its acceptance rate and its cost."""
        state, adaptation, tuning = self.states[k][chain]
        key = key_of(self.task.seed, Purpose.warmup, self.task.first_chain + chain, k)
        warm = self.programs[k][0]
        state, adaptation, totals = warm(state, adaptation, key, *ints(r.first, r.last), self._supplies(k, chain))
        self.states[k][chain] = LaneState(state, adaptation, tuning)
        self.warmup_touched[k, chain] += count.total(totals.touched)
        if self.is_exact(k):
            self.landmarks.at(k, chain, state.point.density, state.point.theta)
        rate = float(count.rate_total(totals.acceptance)) / (r.last - r.first)
        return rate, (r.last - r.first) * self._cost(k, warming=True)

    def _draw(self, k: int, chain: int, r: Round) -> tuple[float, float]:
        """The same for draws."""
        state, adaptation, tuning = self.states[k][chain]
        key = key_of(self.task.seed, Purpose.draw, self.task.first_chain + chain, k)
        first, last = self.made[k], self.made[k] + r.last - r.first
        state, record = self.programs[k][1](state, tuning, key, *ints(first, last), self._supplies(k, chain))
        self.states[k][chain] = LaneState(state, adaptation, tuning)
        energy, subset = record.snapshot["energy"], self.subsets[k] if k > 0 else None
        if subset is not None:
            energy = self.file_energy(record.theta, subset)
        record, energy = jax.tree.map(lambda leaf: np.asarray(leaf)[: last - first], (record, energy))
        here = slice(r.offset, r.offset + last - first)
        energies, states = self.fresh[k][chain]
        energies[here] = energy
        states[here] = States(record.theta, record.snapshot.get("gradient"), record.density).packed()
        touched = record.touched
        if subset is not None:
            # To tell which ring a state belongs to took the rows of the subset.
            touched += len(subset.log_likelihood)
        self._keep(k, chain, r, record, touched)
        if self.is_exact(k):
            self.landmarks.lower(k, chain, record.snapshot["energy"], record.theta)
        return float(record.statistics[:, 1].mean()), (last - first) * self._cost(k)

    def _file(self, r: Round) -> None:
        """Extend the rings by the states of this round."""
        made = r.offset + r.last - r.first
        for k in (rung for rung in r.drawing if rung > 0):
            for chain, fresh in enumerate(self.fresh[k]):
                energy, states = jax.tree.map(lambda leaf: leaf[:made], fresh)
                rng = np.random.default_rng([self.task.seed, r.number, k, self.task.first_chain + chain])
                self.rings[k][self._group(chain)].file(energy, states, rng)
            self.stores[k] = [self._store(k, group) for group in range(self._groups)]

    def _keep(self, k: int, chain: int, r: Round, record: Any, touched: np.ndarray) -> None:
        """What is to be recorded of a rung's draws."""
        if not r.recorded:
            self.warmup_touched[k, chain] += touched.sum()
            return
        first, last = r.first - self.saved, r.last - self.saved
        self.energy[k, chain, first:last] = record.snapshot["energy"]
        self.touched[k, chain, first:last] = touched
        if k == 0:
            self.kept.write(chain, first, last, record)
        if k == len(self.ladder) - 1:
            self.landmarks.wander(chain, record.theta)
        tally.add(self.sums, k, chain, record, touched, self.task.thin * self.steps[k])

    def _freeze(self, k: int) -> None:
        self.states[k] = [s._replace(tuning=adapt.tuning(s.adaptation, final=True)) for s in self.states[k]]

    def _supplies(self, k: int, chain: int) -> Supplied:
        return Supplied(self.rows, {"rung": self.rungs[k], "rings": self.stores[k + 1][self._group(chain)]})

    def _program(self, k: int) -> program.Programs:
        thin, length = self.task.thin * self.steps[k], self.sampler.round_length
        kernel = self.kernels[k]
        return program.build(kernel, self.task.batching(kernel), thin, length, self.task.warmup, self.task.dim)

    def _start(self, k: int, chain: int, init: Any) -> LaneState:
        theta = self.task.thetas[chain]
        state = init(
            key_of(self.task.seed, Purpose.start, self.task.first_chain + chain, k), theta, self._supplies(k, chain)
        )
        adaptation = adapt.start(self.sampler.proposal, theta, self.task.first_step(self.ladder.temperatures[k]))
        return LaneState(state, adaptation, adapt.tuning(adaptation, final=True))

    def _compile(self, programs: program.Programs, k: int) -> tuple[Any, Any]:
        """The programs of warm-up and of draws."""
        state, adaptation, tuning = self.states[k][0]
        shared = (key_of(self.task.seed, Purpose.draw), *ints(0, 0), self._supplies(k, 0))
        warm = compile_program(programs.warm, state, adaptation, *shared) if self.task.warmup else None
        return warm, compile_program(programs.draw, state, tuning, *shared)

    def _subset_energies(self, thetas: Any, subset: Referenced) -> Any:
        model, reference = self.task.posterior.model(self.task.unravel, self.task.dim), self.task.reference
        assert reference is not None
        temper = self.task.energy_of
        return jax.lax.map(lambda theta: model.energies_above(theta, subset, reference, temper)[0], thetas)

    def _cost(self, k: int, warming: bool = False) -> float:
        """About how long a draw of a rung takes, or a step of its warm-up, in rows read."""
        proposal, n = self.sampler.proposal, self.task.posterior.n
        gradients = proposal.visits + 1 if proposal.uses_gradient else 0
        rows = proposal.visits * n if self.is_exact(k) else (2 + gradients) * self.sizes[k]
        return (_OVERHEAD + rows) * (1 if warming else self.task.thin * self.steps[k])

    def _round_cost(self, r: Round) -> float:
        rungs = [self._cost(k) for k in r.drawing] + (
            [] if r.warming is None else [self._cost(r.warming, warming=True)]
        )
        return (r.last - r.first) * sum(rungs)

    def _draws_cost(self, draws: int) -> float:
        return draws * len(self.task.thetas) * sum(self._cost(k) for k in range(len(self.ladder)))

    def _store(self, k: int, group: int) -> Store:
        return self.rings[k][group].store(self.subsets[k])
