"""Independent chains side by side, in stretches.

Each chain is one program; as many run at once as the machine has cores, each on a thread of its own (XLA releases the
interpreter while it computes). The data are shared by all of them, not copied.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.result.ladder import LadderFacts
from mintmc.result.tree import Draws
from mintmc.run import adapt, program
from mintmc.run.interrupt import Interrupt
from mintmc.run.lane import (
    PASSES_PER_SHUFFLE,
    LaneState,
    Purpose,
    Shuffles,
    Task,
    compile_program,
    ints,
    key_of,
    record_capacity,
)
from mintmc.run.progress import Display

_SECONDS_PER_STRETCH = 0.4


class ChainRun:
    """The state of one run: chains, the current shuffle, and the draws kept so far."""

    def __init__(self, task: Task):
        self.task = task
        posterior, sampler = task.posterior, task.sampler
        self.kernel = task.kernel() if task.reference is None else task.kernel(reference=task.reference)
        self.capacity = record_capacity(task.dim)
        self.warmup_totals = np.zeros((len(task.thetas), 4))
        slices = {role: size for role, size in self.kernel.batches.items() if role != "all"}
        shuffles = bool(slices) and sampler.batching == "shuffled"
        # Every so many steps the chains have read the data often enough to pay for a new shuffle.
        per_step = sum(slices.values())
        self.steps_per_shuffle = math.ceil(PASSES_PER_SHUFFLE * posterior.n / per_step) if shuffles else 2**62
        self.shuffles = Shuffles(posterior, task.seed, max(slices.values()) if shuffles else 0)
        self.rows = self.shuffles.at(0)

    def compile(self, pool: ThreadPoolExecutor) -> None:
        """Start the chains and compile the programs that run them."""
        kernel, theta = self.kernel, self.task.thetas[0]
        task = self.task
        programs = program.build(kernel, task.batching, task.thin, self.capacity, task.warmup, theta.size)
        # A step of a posterior worth n/T observations is about this large.
        temperatures = kernel.temperatures or self.task.sampler.target_temperature(self.task.posterior.n)
        first_step = jnp.sqrt(jnp.asarray(temperatures) / max(self.task.posterior.n, 1))
        self.states = []
        start = jax.jit(programs.init)
        for chain, theta in enumerate(self.task.thetas):
            state = start(self._key(Purpose.start, chain), theta, self.rows)
            adaptation = None if kernel.proposal is None else adapt.start(kernel.proposal, theta, first_step)
            self.states.append(LaneState(state, adaptation, adapt.tuning(adaptation, final=True)))
        state, adaptation, tuning = self.states[0]
        key, zero = self._key(Purpose.draw, 0), jnp.zeros((), jnp.int32)
        compiling = []
        if self.task.warmup:
            compiling.append(pool.submit(compile_program, programs.warm, state, adaptation, key, zero, zero, self.rows))
        compiling.append(pool.submit(compile_program, programs.draw, state, tuning, key, zero, zero, self.rows))
        self.warm_program, self.draw_program = compiling[0].result(), compiling[-1].result()
        touched = kernel.touched and kernel.touched * task.thin
        self.kept = Draws.empty(len(task.thetas), task.draws, self.draw_program.out_info[1], touched)

    def warm_up(self, pool: ThreadPoolExecutor, display: Display, interrupt: Interrupt) -> None:
        """Adapt every chain's step size and preconditioner, then freeze them."""

        def run(chain: int, first: int, last: int) -> float:
            state, adaptation, tuning = self.states[chain]
            key = self._key(Purpose.warmup, chain)
            state, adaptation, totals = self.warm_program(state, adaptation, key, *ints(first, last), self.rows)
            totals = np.asarray(totals, dtype=float)
            self.warmup_totals[chain] += totals
            self.states[chain] = LaneState(state, adaptation, tuning)
            return totals[0] / (last - first)

        if self.task.warmup:
            finished = self._stretches("warm-up", self.task.warmup, 1, 0, run, pool, display, interrupt)
            if finished < self.task.warmup:
                raise KeyboardInterrupt
        self.states = [s._replace(tuning=adapt.tuning(s.adaptation, final=True)) for s in self.states]

    def collect(self, pool: ThreadPoolExecutor, display: Display, interrupt: Interrupt) -> int:
        """Make the draws; returns how many each chain made."""

        def run(chain: int, first: int, last: int) -> float:
            state, adaptation, tuning = self.states[chain]
            key = self._key(Purpose.draw, chain)
            state, record = self.draw_program(state, tuning, key, *ints(first, last), self.rows)
            self.kept.write(chain, first, last, record)
            self.states[chain] = LaneState(state, adaptation, tuning)
            return float(self.kept.acceptance_rate[chain, first:last].mean())

        task = self.task
        return self._stretches("draws", task.draws, task.thin, task.warmup, run, pool, display, interrupt)

    def facts(self) -> dict[str, Any]:
        """What else the tree should know."""
        tunings = [s.tuning for s in self.states]
        setup = self.kernel.init_touched
        steps = (self.kernel.touched or 0) * self.task.warmup
        return {
            "step_size": [np.asarray(t.step_size).tolist() for t in tunings if t is not None],
            "data_touched_setup": [int(setup + steps + totals[2]) for totals in self.warmup_totals],
            "warmup_acceptance_rate": float(self.warmup_totals[:, 0].mean() / max(self.task.warmup, 1)),
        }

    def ladder_facts(self, draws: int) -> LadderFacts:
        """What happened on every rung, where one step moves them all."""
        kept = self.kept.first(draws)
        ladder = self.task.sampler.ladder
        over = {
            name: np.moveaxis(values, -1, 0)
            for name, values in (kept.extras | kept.snapshot).items()
            if values.ndim == 3
        }
        swaps = over["swaps"].sum(axis=2)
        with np.errstate(invalid="ignore", divide="ignore"):
            # The hottest rung has no hotter one to swap with.
            padded = {
                name: np.pad(
                    self.task.thin * over[name].sum(axis=2, dtype=float) / swaps,
                    ((0, 1), (0, 0)),
                    constant_values=np.nan,
                )
                for name in ("swap_rate", "swap_noise")
            }
        return LadderFacts(
            temperatures=ladder.temperatures,
            batch_sizes=ladder.rows(self.task.posterior.n),
            energy=over["rung_energy"].astype(float),
            rates={
                "acceptance_rate": over["rung_acceptance"].mean(axis=2, dtype=float),
                "log_ratio_noise": over["rung_noise"].mean(axis=2, dtype=float),
                **padded,
            },
            round_trips=kept.extras["round_trips"].sum(axis=1),
            replica=over["replica"],
        )

    def _stretches(self, name, total, thin, offset, run, pool, display, interrupt) -> int:
        """Run all chains from 0 to ``total`` in stretches of about the same time; returns where they stopped."""
        phase = display.phase(name, total * len(self.task.thetas))
        first, size = 0, 16
        while first < total and not interrupt.requested:
            at = offset + first * thin
            self.rows = self.shuffles.at(at // self.steps_per_shuffle)
            to_next_shuffle = self.steps_per_shuffle - at % self.steps_per_shuffle
            last = min(total, first + size, first + -(-to_next_shuffle // thin))
            begun = time.perf_counter()
            rates = list(pool.map(lambda chain, a=first, b=last: run(chain, a, b), range(len(self.task.thetas))))
            seconds = time.perf_counter() - begun
            display.advance(phase, (last - first) * len(self.task.thetas), float(np.mean(rates)))
            size = _next_size(last - first, seconds, self.capacity)
            first = last
        return first

    def _key(self, purpose: int, chain: int) -> Array:
        return key_of(self.task.seed, purpose, chain)


def _next_size(size: int, seconds: float, capacity: int) -> int:
    fitting = int(size * _SECONDS_PER_STRETCH / max(seconds, 1e-6))
    return max(1, min(capacity, 8 * size, fitting))
