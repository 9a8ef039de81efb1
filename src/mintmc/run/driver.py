"""Drives a run: compile, restore, warm up, collect, audit; saves between stretches, and stops where it is asked to.

It knows the protocol of a run and no sampler.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc.result.law import audit_sentences
from mintmc.result.tree import RunFacts, build_tree
from mintmc.run.audit_run import audit_run
from mintmc.run.clock import Clock
from mintmc.run.draws import Part
from mintmc.run.glimpse import NEEDS, Glimpse
from mintmc.run.interrupt import Interrupt
from mintmc.run.phase import Chains
from mintmc.run.progress import Display
from mintmc.run.protocol import Run, Sampler, Session
from mintmc.run.sofar import SoFar, draws_so_far, stored_draws
from mintmc.run.stops import Stops
from mintmc.run.task import Task
from mintmc.run.workers import cores, workers
from mintmc.store.keeper import Keeper
from mintmc.store.run_store import open_run

if TYPE_CHECKING:
    from xarray import DataTree


class Driver:
    """One run from its beginning, or from where it was left, to its end.

    Parameters
    ----------
    task, sampler, run
        What was asked for, by what, and the run that the sampler made of it.
    keeper
        Where draws go.
    record
        What a store says of the run, beside where it stands.
    starts_apart
        Whether the user chose where each chain starts.
    clock, display, stops
        Those of the call.
    """

    def __init__(
        self,
        task: Task,
        sampler: Sampler,
        run: Run,
        keeper: Keeper,
        record: dict[str, Any],
        starts_apart: bool,
        clock: Clock,
        display: Display,
        stops: Stops | None = None,
    ):
        self.task, self.sampler, self.run, self.keeper = task, sampler, run, keeper
        self.record, self.starts_apart, self.clock, self.display = record, starts_apart, clock, display
        self.stops = stops or Stops()
        self.glimpse = Glimpse(lambda count, step: stored_draws(keeper.folder, task.target, count, step))
        self.audit: list[dict[str, Any]] | None = None
        self.audit_after_warmup: list[dict[str, Any]] = []

    def drive(self, audit: bool) -> None:
        """Go on until all draws are made, or until interrupted."""
        task, run, clock = self.task, self.run, self.clock
        with self.display, Interrupt() as interrupt, workers(cores(run.lanes)) as pool:
            session = Session(pool, self.display, interrupt)
            # What trees are made by, and what looks need: to import it takes as long as many a save.
            for name in ("arviz_base", *self.stops.needs, *(NEEDS if self.display.is_shown else ())):
                pool.submit(import_module, name)
            run.compile(session, self.keeper.room(task.draws, task.chains, run.width))
            self._restore()
            task.crew.meet("restored")
            clock.start("warmup")
            self._follow(run.warm_up(session), "warm-up", session)
            audits = audit and task.crew.writes
            if audits and run.drawn == 0 and not interrupt.requested:
                clock.stop()
                self._look_at_warm_up()
            clock.start("sampling")
            self._collect(session)
            is_made = run.drawn == task.draws or self.stops.is_reached
            if is_made and not interrupt.requested:
                self._follow(run.conclude(session), "draws", session)
            task.check_reads(surely=True)
            if self.keeper.folder is not None:
                self._save()
            clock.stop()
            if audits and is_made:
                self._audit_all()

    def tree(self) -> DataTree:
        """The tree of a run that nobody else keeps."""
        return self._tree(self.run.take()) if self._made is None else self._made

    _made: DataTree | None = None

    def _collect(self, session: Session) -> None:
        """Make the draws, in as many parts as there are looks at whether they are enough."""
        task, run = self.task, self.run
        while not (session.interrupt.requested or self.stops.reached(task, run.drawn, self._draws)):
            if run.drawn == task.draws:
                return
            self._follow(run.collect(session, self.stops.next_end(run.drawn, task.draws)), "draws", session)

    def _draws(self, least: float = 0.0) -> np.ndarray:
        return draws_so_far(self.run, self.task.target, self.keeper.folder, least)

    def _so_far(self, phase: str) -> SoFar:
        run, seconds = self.run, sum(self.clock.seconds().values())
        counts = (run.drawn, self.task.draws, run.warmed, run.to_warm)
        return SoFar(phase, *counts, np.array(run.acceptance), seconds, self._draws)

    def _follow(self, stretches: Iterator[None], phase: str, session: Session) -> None:
        """Let a run go on, save it whenever it is time to, and ask whether to stop."""
        for _ in stretches:
            self._show(phase)
            if self.stops.called(partial(self._so_far, phase)):
                session.interrupt.requested = True
            if self.keeper.is_due() or (self.keeper.folder is not None and self.run.is_full):
                self._save()

    def _show(self, phase: str) -> None:
        """How each chain does, for who looks on."""
        task, run = self.task, self.run
        if not self.display.is_shown:
            return
        done, of = (run.drawn, task.draws) if phase == "draws" else (run.warmed, run.to_warm)
        rhat = self.glimpse.rhat(run, is_last=run.drawn == task.draws)
        self.display.tell(phase, Chains(done, of, [float(rate) for rate in run.acceptance], rhat))

    def _save(self) -> None:
        """Save what was made since last time, and where the run stands."""
        part = self.run.take()
        tree = self._tree(part)
        stands = {"warmed": self.run.warmed, "drawn": self.run.drawn, "audited": self.audit is not None}
        stands |= {"to_warm": self.run.to_warm, **self.stops.record}
        record = {**self.record, **stands, "seconds": self.clock.seconds()}
        new = tree if part.draws.theta.shape[1] else None
        self.keeper.keep(new, dict(tree.attrs), record, self.run.checkpoint())
        self.run.committed()

    def _restore(self) -> None:
        """Bring the run to where its store left it."""
        checkpoint = self.keeper.restored(self.run.checkpoint())
        if checkpoint is None:
            return
        self.run.restore(checkpoint)
        done, run = self.keeper.done, self.run
        if (run.warmed, run.drawn) != (done["warmed"], done["drawn"]):
            raise ValueError(
                f"{self.keeper.folder / done['checkpoint']} is damaged: it is {run.warmed} into the warm-up and "
                f"{run.drawn} into the draws, but zarr.json says {done['warmed']} and {done['drawn']}"
            )

    def _look_at_warm_up(self) -> None:
        """Say before the draws begin if moves on batches are not what they should be."""
        standings = {rung: standing for rung, standing in self.run.standings().items() if standing.is_of_moves}
        if not standings:
            return
        self.audit_after_warmup = audit_run(self.task.target, standings, None, self.task.seed, lambda: None)
        for sentence in audit_sentences(self.audit_after_warmup):
            self.display.say(f"audit after warm-up: {sentence}")

    def _audit_all(self) -> None:
        """Compare moves with all data, now that all draws are made."""
        standings = self.run.standings()
        folder = self.keeper.folder
        made = self._tree(self.run.take()) if folder is None else open_run(folder)
        audited = partial(self.display.advance, self.display.phase("audit", len(standings)), 1) if standings else int
        self.audit = audit_run(self.task.target, standings, made, self.task.seed, audited)
        if folder is not None:
            self._save()
        else:
            made.attrs.update(self._audit_facts())
            self._made = made

    def _audit_facts(self) -> dict[str, Any]:
        touched = sum(entry["data_touched"] for entry in (*self.audit_after_warmup, *(self.audit or ())))
        audits = {"audit": self.audit, "audit_after_warmup": self.audit_after_warmup}
        return {name: json.dumps(found) for name, found in audits.items()} | {"data_touched_audit": touched}

    def _tree(self, part: Part) -> DataTree:
        task = self.task
        temperature = self.sampler.target_temperature(task.target.n)
        starts = np.stack([np.asarray(theta) for theta in task.thetas])
        others = {**self.run.facts(), **self._audit_facts(), "starts_apart": int(self.starts_apart)}
        others |= {"settled": task.settled} if task.settled else {}
        others |= {"stopped": self.stops.said} if self.stops.said else {}
        timings = self.clock.seconds()
        settings = (self.sampler, task.target.n, temperature, task.seed, task.warmup, task.thin)
        facts = RunFacts(*settings, timings, starts, others)
        shown = {name: part.draws.statistics[name] for name in _shown(part)}
        units = {each.name: each.unit for each in part.shown if each.unit}
        return build_tree(part.draws.theta, shown, units, part.groups, task.target, facts, part.first)


def _shown(part: Part) -> list[str]:
    """Statistics of draws, in the order in which they were declared; what is the same for all steps comes last."""
    names = [each.name for each in part.shown]
    return names if "data_touched" in names else [*names, "data_touched"]
