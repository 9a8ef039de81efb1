"""Chains with leaps: modes are found and fitted, fits refined, then frozen; the draws that count come after.

1. *Explore and descend*: where the modes are (``modes/many.py``).
2. *Fit*: a local chain in every mode, whose draws tell its mean and scale (``modes/fit.py``).
3. *Warm up* the chains themselves, which start spread over the modes and leap by the first fits.
4. *Refine*: rounds of draws with leaps, after each of which every mode is fitted anew from all its draws.
5. After the draws, *look again*: other hot chains, and whether they lead to a mode that leaps did not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mintmc import count
from mintmc.run import adapt
from mintmc.run.chain_programs import LaneState
from mintmc.run.chains import ChainRun
from mintmc.run.keys import Purpose, ints
from mintmc.run.protocol import Session
from mintmc.run.survey import FITTED, FOUND, LOOKED, REFINED, Survey
from mintmc.statistics import unpacked

ROUNDS = 3
"""Of refinement, each as long as the warm-up."""


class LeapRun(ChainRun):
    """Where a run with leaps stands."""

    centres: Survey

    def _compile(self, pool: ThreadPoolExecutor) -> None:
        """The programs of warm-up, of draws, and of draws of one step each, by which modes are fitted."""
        super()._compile(pool)
        self.pilot_program = self.draw_program
        if self.task.thin > 1:
            self.pilot_program = self.programs.of_single_steps(self.states[0], self._supplied(0))

    def warm_up(self, session: Session) -> Iterator[None]:
        """Find and fit the modes, adapt the chains, refine the fits."""
        survey = self.centres
        if survey.stage < FOUND:
            survey.find(session)
            if survey.stage < FOUND:
                return
            yield
        if survey.stage < FITTED:
            self._fit(session)
            if survey.stage < FITTED:
                return
            yield
        yield from super().warm_up(session)
        if self.warmed == self.task.warmup and survey.stage < REFINED:
            yield from self._refine(session)

    def conclude(self, session: Session) -> Iterator[None]:
        """Look for modes that leaps did not know."""
        if self.centres.stage < LOOKED:
            self.centres.look_again(session)
            yield

    def _fit(self, session: Session) -> None:
        """A chain in every mode; the chains of the run go on from where these end."""
        survey, task = self.centres, self.task
        steps, draws = survey.pilot_steps(task.warmup, self.most_draws)
        phase = session.display.phase("fitting", survey.known * (steps + draws))

        def one(mode: int) -> tuple[LaneState, np.ndarray] | None:
            if session.interrupt.requested:
                return None
            lane = self._adapted(mode, steps)
            state, record = self.pilot_program(
                lane.state, lane.tuning, task.key(Purpose.pilot, mode, 1), *ints(0, draws), self._supplied(0)
            )
            record = jax.tree.map(lambda leaf: np.asarray(leaf)[:draws], record)
            theta, values = unpacked(self.kernel.statistics, record)
            survey.read(count.total(values["data_touched"]).sum())
            session.display.advance(phase, steps + draws)
            return lane._replace(state=state), theta

        found = list(session.pool.map(one, range(survey.known)))
        lanes = [lane for lane in found if lane is not None]
        if len(lanes) < survey.known:  # interrupted: it begins anew
            return
        for mode, (_, theta) in enumerate(lanes):
            survey.learn(mode, theta)
        survey.fit()
        self.states = [lanes[(task.first_chain + chain) % survey.known][0] for chain in range(task.chains)]

    def _adapted(self, mode: int, steps: int) -> LaneState:
        """A chain that has adapted to a mode."""
        task, supplied = self.task, self._supplied(0)
        theta = jnp.asarray(self.centres.ends[mode], task.target.dtype)
        state, adaptation, _ = self.programs.begin(task.key(Purpose.pilot, mode, 2), theta, supplied)
        given = (state, adaptation, task.key(Purpose.pilot, mode, 0), *ints(0, steps), supplied)
        state, adaptation, totals = self.warm_program(*given)
        self.centres.read(count.total(totals.touched))
        return LaneState(state, adaptation, adapt.tuning(adaptation, final=True))

    def _refine(self, session: Session) -> Iterator[None]:
        """Rounds of draws with leaps, each followed by better fits; then what the fits tell of the evidence."""
        survey, task = self.centres, self.task
        draws = min(task.warmup, self.most_draws)
        rounds = ROUNDS if survey.known > 1 else 0
        phase = session.display.phase("refining", rounds * draws * task.chains)
        while survey.rounds < rounds:

            def one(chain: int) -> Any:
                state, adaptation, tuning = self.states[chain]
                key = task.key(Purpose.refine, chain)
                at = ints(survey.rounds * draws, (survey.rounds + 1) * draws)
                state, record = self.pilot_program(state, tuning, key, *at, self._supplied(chain))
                record = jax.tree.map(lambda leaf: np.asarray(leaf)[:draws], record)
                self.states[chain] = LaneState(state, adaptation, tuning)
                theta, values = unpacked(self.kernel.statistics, record)
                survey.read(count.total(values["data_touched"]).sum())
                session.display.advance(phase, draws, float(np.mean(values["leap_rate"])))
                return theta, values

            survey.fade()
            for theta, values in list(session.pool.map(one, range(task.chains))):
                survey.learn_from_leaps(theta, values)
            survey.fit()
            survey.rounds += 1
            yield
            if session.interrupt.requested:
                return
        if survey.chart is None:
            survey.propose(session)
        survey.stage = REFINED
        yield
