"""A look at a posterior before it is sampled: its mode, whether there are others, and what a pass over the data costs.

Hot chains at two temperatures, a few dozen descents: a mode to which a share s of the descents would lead is overlooked
with probability (1 - s)^descents. Who must find them all asks ``find_modes``, or takes ``Leaps``, which does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from mintmc.flat import FlatTarget
from mintmc.modes.find import mode_of
from mintmc.modes.many import Found, gather
from mintmc.run.interrupt import Interrupt
from mintmc.run.progress import Display
from mintmc.run.protocol import Session
from mintmc.run.task import Task
from mintmc.run.workers import cores, workers
from mintmc.samplers.explore import explore, hot_samplers

_WORTH = (100, 10)
_DESCENTS = 64
_PASSES = 3


@dataclass(frozen=True)
class Look:
    """What was seen."""

    target: FlatTarget
    is_regular: bool  # whether the density has a mode from ``init`` that its curvature describes
    ends: np.ndarray  # (modes, d): modes that may have weight
    descents: int
    rows_read: int
    pass_seconds: float  # of the log density on all data
    seconds: float  # that it took

    @property
    def modes(self) -> int:
        """How many they are: at least the one from ``init``."""
        return max(len(self.ends), 1)


def look(task: Task) -> Look:
    """Look at the posterior of a task."""
    begun, target = time.perf_counter(), task.target
    mode = mode_of(target, task.thetas[0], seed=task.seed, is_patient=False)
    found, rows_read = _modes(task)
    ends = found.theta[found.matters(min(found.energy.min(initial=np.inf), mode.energy))]
    return Look(
        target,
        is_regular=mode.covariance is not None,
        ends=ends,
        descents=int(found.starts.sum()) + found.lost,
        rows_read=mode.rows_read + rows_read,
        pass_seconds=_pass(target, task.thetas[0]),
        seconds=time.perf_counter() - begun,
    )


def _modes(task: Task) -> tuple[Found, int]:
    with Interrupt() as interrupt, workers(cores(_DESCENTS)) as pool, Display(False) as display:
        hot = explore(task, Session(pool, display, interrupt), hot_samplers(task.target, _WORTH), _DESCENTS)
        if hot is None:
            raise KeyboardInterrupt("interrupted: nothing is known of the posterior yet")
        found = gather(task.target, hot.states, chains=hot.chains, seed=task.seed, pool=pool)
    return found, found.rows_read + hot.rows_read


def _pass(target: FlatTarget, theta: Any) -> float:
    """Seconds of a pass over all data, on one core: the shortest of a few."""
    density = target.compiled(("density",), lambda: jax.jit(target.model.density))
    rows, taken = target.posterior.rows, []
    for _ in range(_PASSES + 1):
        begun = time.perf_counter()
        jax.block_until_ready(density(theta, rows))
        taken.append(time.perf_counter() - begun)
    return min(taken[1:])
