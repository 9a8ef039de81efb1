"""Independent chains side by side, in stretches.

A chain is one program; as many run at once as the machine has cores, each on a thread of its own (XLA releases the
interpreter while it computes). The data are shared by all of them, not copied. Where several processes make every full
pass together (``Task.sharers``), they run the same chain at the same time, one after the other.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array

from mintmc.data import Supplied
from mintmc.energy import Density
from mintmc.result.ladder import LadderFacts
from mintmc.result.tree import Draws
from mintmc.run import adapt, count, program
from mintmc.run.audit_run import Standing
from mintmc.run.centre import Centred, is_centred
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
    record_capacity,
)

_SECONDS_PER_STRETCH = 0.4
_FIRST_STRETCH = 16


class ChainRun:
    """Where a run stands: its chains, the current shuffle, and the draws not yet saved."""

    def __init__(self, task: Task):
        self.centres = Centred(task) if is_centred(task.sampler) else None
        self._prepare(task if self.centres is None else self.centres.task)
        chains = len(task.thetas)
        self.warmed = self.drawn = self.saved = 0
        self.warmup_totals = np.zeros((chains, 2))  # acceptance rates, data touched
        self.undefined = 0
        self.audit: list[dict[str, Any]] | None = None
        self.rung_sums = {name: np.zeros((len(task.sampler.ladder), chains)) for name in _SUMMED if task.reference}
        self.landmarks = Landmarks(task) if task.reference else None
        self.starts_touched = [0] * chains

    def _prepare(self, task: Task) -> None:
        """The kernel, and what its batches are drawn from."""
        self.task, self.crew = task, task.crew
        self.kernel = task.kernel() if task.reference is None else task.kernel(reference=task.reference)
        if self.kernel.touched is None:
            check_countable(task.posterior.n, len(task.sampler.ladder) if task.reference else 1, self.kernel.proposal)
        self.capacity = record_capacity(task.dim)
        self.batching = task.batching(self.kernel)
        sizes = [size for role, size in self.kernel.batches.items() if role != "all"]
        self.shuffles = task.shuffles(sizes)
        # Every so many steps the chains have read the data often enough to pay for a new shuffle.
        often = PASSES_PER_SHUFFLE * task.posterior.n
        self.steps_per_shuffle = math.ceil(often / sum(sizes)) if self.shuffles.wrap else 2**62
        self.epoch = -1
        self._shuffle(0)

    @property
    def lanes(self) -> int:
        """Programs that may run at once."""
        return self.crew.lanes(len(self.task.thetas))

    def compile(self, session: Session, room: int) -> None:
        """Start the chains and compile the programs that run them; ``room`` is for draws not yet saved."""
        kernel, task = self.kernel, self.task
        self._compile_anew = partial(self.compile, session, room)
        programs = program.build(kernel, self.batching, task.thin, self.capacity, task.warmup, task.dim)
        first_step = task.first_step(kernel.temperatures or task.sampler.target_temperature(task.posterior.n))
        self.states = []
        start = jax.jit(self.crew.program(programs.init))
        for chain, theta in enumerate(task.thetas):
            given = self.crew.given((self._key(Purpose.start, chain), theta))
            state = self.crew.taken(start(*given, self._supplied(chain)))
            around = None if self.centres is None else self.centres.of_chain[chain].laplace
            adaptation = None if kernel.proposal is None else adapt.start(kernel.proposal, theta, first_step, around)
            self.states.append(LaneState(state, adaptation, adapt.tuning(adaptation, final=True)))
        if self.landmarks is not None:
            self.starts_touched = [self.landmarks.begin(c, _of_rung_0(s.state)) for c, s in enumerate(self.states)]
        state, adaptation, tuning = self.states[0]
        others = (*self.crew.given((self._key(Purpose.draw, 0), *ints(0, 0))), self._supplied(0))
        kinds: list[tuple[Callable, Any]] = [(programs.warm, adaptation)] if task.warmup else []
        kinds.append((programs.draw, tuning))
        compiling = [
            session.pool.submit(compile_program, self.crew.program(function), *self.crew.given((state, step)), *others)
            for function, step in kinds
        ]
        self.warm_program, self.draw_program = compiling[0].result(), compiling[-1].result()
        touched = kernel.touched and kernel.touched * task.thin
        record, _ = _apart(self.draw_program.out_info[1])
        self.kept = Draws.empty(len(task.thetas), room, record, touched)

    def warm_up(self, session: Session) -> None:
        """Adapt every chain's step size and preconditioner, then freeze them."""

        def run(chain: int, first: int, last: int) -> float:
            state, adaptation, tuning = self.states[chain]
            given = self.crew.given((state, adaptation, self._key(Purpose.warmup, chain), *ints(first, last)))
            state, adaptation, totals = self.crew.taken(self.warm_program(*given, self._supplied(chain)))
            accepted = count.rate_total(totals.acceptance)
            self.warmup_totals[chain] += accepted, count.total(totals.touched)
            self.states[chain] = LaneState(state, adaptation, tuning)
            self._note(chain, state)
            return float(accepted) / (last - first)

        def done(last: int) -> None:
            self.warmed = last

        warmup = self.task.warmup
        if self.centres is not None and self.warmed <= (half := warmup // 2):
            self._stretches("warm-up", self.warmed, half, lambda: half, 1, 0, run, done, session)
            if self.warmed == half:
                self._reconsider()
        self._stretches("warm-up", self.warmed, warmup, lambda: warmup, 1, 0, run, done, session)
        if self.warmed == warmup and self.drawn == 0:
            self.states = [s._replace(tuning=adapt.tuning(s.adaptation, final=True)) for s in self.states]

    def _reconsider(self) -> None:
        """Give chains that have wandered off a new centre, and all of them a larger batch if they need one."""
        assert self.centres is not None
        states = [self.kernel.position(s.state) for s in self.states]
        tunings: Any = [adapt.tuning(s.adaptation, final=True) for s in self.states]
        for chain in self.centres.reconsider(states, tunings):
            around, lane = self.centres.of_chain[chain].laplace, self.states[chain]
            if lane.adaptation is not None:
                adaptation = adapt.start(self.kernel.proposal, states[chain], 1.0, around)
                self.states[chain] = lane._replace(adaptation=adaptation)
        if self.centres.task is not self.task:
            self._rebuild()

    def _rebuild(self) -> None:
        """The same chains, with batches of another size."""
        assert self.centres is not None
        states = self.states
        self._prepare(self.centres.task)
        self._compile_anew()
        self.states = states

    def collect(self, session: Session) -> None:
        """Make the draws."""

        def run(chain: int, first: int, last: int) -> float:
            state, adaptation, tuning = self.states[chain]
            given = self.crew.given((state, tuning, self._key(Purpose.draw, chain), *ints(first, last)))
            state, record = self.crew.taken(self.draw_program(*given, self._supplied(chain)))
            here = first - self.saved, last - self.saved
            record, hot = _apart(jax.tree.map(np.asarray, record))
            self.kept.write(chain, *here, record)
            self.states[chain] = LaneState(state, adaptation, tuning)
            self._note(chain, state, hot if hot is None else hot[: last - first])
            return float(self.kept.acceptance_rate[chain, slice(*here)].mean())

        def done(last: int) -> None:
            self._add_up(self.drawn - self.saved, last - self.saved)
            self.drawn = last

        task, room = self.task, self.kept.theta.shape[1]
        self._stretches(
            "draws", self.drawn, task.draws, lambda: self.saved + room, task.thin, task.warmup, run, done, session
        )

    def checkpoint(self) -> Any:
        """Everything that the rest of the run depends on, as a pytree of arrays."""
        at = np.array([self.warmed, self.drawn, self.undefined])
        landmarks = None if self.landmarks is None else self.landmarks.checkpoint()
        centres = None if self.centres is None else self.centres.checkpoint()
        return at, self.states, self.warmup_totals, self.rung_sums, landmarks, centres

    def restore(self, checkpoint: Any) -> None:
        """Go on from a checkpoint."""
        at, states, self.warmup_totals, self.rung_sums, landmarks, centres = checkpoint
        self.states = states
        if self.centres is not None and self.centres.restore(centres):
            self._rebuild()
        if self.landmarks is not None:
            self.landmarks.restore(landmarks)
        self.warmed, self.drawn, self.undefined = (int(count) for count in at)
        self.saved = self.drawn

    def committed(self) -> None:
        """The checkpoint is safe; nothing else of a chain is on disk."""

    def facts(self) -> dict[str, Any]:
        """What else the tree should know."""
        tunings = [s.tuning for s in self.states]
        setup = self.kernel.init_touched + np.array(self.starts_touched)
        setup[0] += self.task.reference_touched
        if self.centres is not None:
            setup[0] += self.centres.rows_read
        steps = (self.kernel.touched or 0) * self.task.warmup
        return {
            **({} if self.centres is None else self.centres.facts()),
            "undefined_moves": int(self.rung_sums["undefined"].sum()) if self.rung_sums else self.undefined,
            "audit": json.dumps(self.audit),
            "data_touched_audit": sum(entry["data_touched"] for entry in self.audit or ()),
            "step_size": [np.asarray(t.step_size).tolist() for t in tunings if t is not None],
            "data_touched_setup": (setup + steps + self.warmup_totals[:, 1]).astype(int).tolist(),
            "warmup_acceptance_rate": float(self.warmup_totals[:, 0].mean() / max(self.task.warmup, 1)),
        }

    def standings(self) -> dict[int, Standing]:
        """Where the chains stand on every rung that moves on batches."""
        is_ladder = self.task.reference is not None

        def theta(state: Any) -> Any:
            return state.theta if is_ladder else self.kernel.position(state)

        def of_rung(leaf: Any, rung: int) -> Any:
            return leaf[rung] if is_ladder else leaf

        return {
            rung: Standing(
                settings,
                [np.asarray(of_rung(theta(s.state), rung)) for s in self.states],
                [jax.tree.map(lambda leaf, k=rung: of_rung(leaf, k), s.tuning) for s in self.states],
                self.centres.of_chain if self.centres is not None and self.centres.is_controlled else None,
            )
            for rung, settings in self.kernel.moves.items()
        }

    def ladder_facts(self) -> LadderFacts | None:
        """What happened on every rung, where one step moves them all."""
        if self.landmarks is None:
            return None
        ladder, snapshot, steps = self.task.sampler.ladder, self.kept.snapshot, self.drawn * self.task.thin
        sums, kept = self.rung_sums, slice(0, self.drawn - self.saved)
        with np.errstate(invalid="ignore"):
            rates = {
                "acceptance_rate": sums["rung_acceptance"] / steps,
                "log_ratio_noise": sums["rung_noise"] / steps,
                "swap_rate": sums["swap_rate"] / sums["swaps"],
                "swap_noise": sums["swap_noise"] / sums["swaps"],
                "undefined_moves": sums["undefined"],
            }
        return LadderFacts(
            attributes={"reference_energy": self.task.reference_energy, "energy_of": self.task.energy_of},
            landmarks=self.landmarks.facts(),
            temperatures=ladder.temperatures,
            batch_sizes=ladder.rows(self.task.posterior.n),
            energy=np.moveaxis(snapshot["rung_energy"][:, kept].astype(float), -1, 0),
            rates=rates,
            round_trips=sums["round_trips"][0],
            replica=np.moveaxis(snapshot["replica"][:, kept], -1, 0),
        )

    def _add_up(self, first: int, last: int) -> None:
        """Keep count of what is reported of the whole run."""
        self.undefined += int((~self.kept.is_defined[:, first:last]).sum())
        for name, total in self.rung_sums.items():
            part = self.kept.extras[name][:, first:last].sum(axis=1, dtype=float)
            # A count adds up over the steps of a draw; a rate is their mean.
            part = part if name in _COUNTED else part * self.task.thin
            total[: 1 if part.ndim == 1 else part.shape[1]] += part if part.ndim == 1 else part.T

    def _stretches(
        self,
        name: str,
        first: int,
        total: int,
        room: Callable[[], int],
        thin: int,
        offset: int,
        run: Callable[[int, int, int], float],
        done: Callable[[int], None],
        session: Session,
    ) -> None:
        """Run all chains from ``first`` to ``total``, or until interrupted, in stretches of about the same time."""
        chains = len(self.task.thetas)
        later = (self.task.draws - self.drawn) * self.task.thin * chains if name == "warm-up" else 0
        phase = session.display.phase(name, total * chains, first * chains, later=later)
        size = _FIRST_STRETCH
        while first < total:
            at = offset + first * thin
            self._shuffle(at // self.steps_per_shuffle)
            to_next_shuffle = self.steps_per_shuffle - at % self.steps_per_shuffle
            last = min(total, first + size, room(), first + -(-to_next_shuffle // thin))
            last = self.crew.agreed(first if session.interrupt.requested else last)
            if last == first:
                return
            begun = time.perf_counter()
            rates = list(session.pool.map(lambda chain, a=first, b=last: run(chain, a, b), range(chains)))
            seconds = time.perf_counter() - begun
            self.task.check_reads()
            done(last)
            session.display.advance(phase, (last - first) * chains, float(np.mean(rates)))
            size = _next_size(last - first, seconds, self.capacity)
            session.saver.save_if_due(self, full=last == room())
            first = last

    def _note(self, chain: int, state: Any, hot: np.ndarray | None = None) -> None:
        """What to remember of a stretch on a ladder: its lowest state, and draws of the hottest rung."""
        if self.landmarks is None:
            return
        self.landmarks.lower(0, chain, np.asarray(state.lowest.energy)[None], np.asarray(state.lowest.theta)[None])
        if hot is not None:
            self.landmarks.wander(chain, hot)

    def _shuffle(self, epoch: int) -> None:
        """Have the rows of an epoch at hand."""
        if epoch != self.epoch:
            self.rows, self.epoch = self.crew.given(self.shuffles.at(epoch)), epoch

    def _supplied(self, chain: int) -> Any:
        """What the programs of a chain read: rows, and its expansion if there is one."""
        if self.centres is None or not self.centres.is_controlled:
            return self.rows
        return Supplied(self.rows, {"control": self.centres.of_chain[chain].expansion})

    def _key(self, purpose: int, chain: int) -> Array:
        return key_of(self.task.seed, purpose, self.task.first_chain + chain)


_COUNTED = ("swaps", "round_trips", "undefined")
_SUMMED = ("rung_acceptance", "rung_noise", "swap_rate", "swap_noise", *_COUNTED)


def _of_rung_0(state: Any) -> Density | None:
    """The density of rung 0 where one step moves all rungs; None if it reads batches."""
    return jax.tree.map(lambda leaf: leaf[0], state.density) if state.density.prior.size else None


def _apart(record: Any) -> tuple[Any, Any]:
    """The record that is kept, and the states of the hottest rung, of which a few moments are; None if no ladder."""
    snapshot = dict(record.snapshot)
    hot = snapshot.pop("hot_theta", None)
    return record._replace(snapshot=snapshot), hot


def _next_size(size: int, seconds: float, capacity: int) -> int:
    fitting = int(size * _SECONDS_PER_STRETCH / max(seconds, 1e-6))
    return max(1, min(capacity, 8 * size, fitting))
