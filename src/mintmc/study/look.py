"""A look at a posterior before it is sampled: its mode, whether there are others, and what a pass over the data costs.

Hot chains at two temperatures, a few dozen descents: a mode to which a share s of the descents would lead is
overlooked with probability (1 - s)^descents. Who must find them all asks ``find_modes``, or takes ``Leaps``, which
does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from mintmc.control import laplace
from mintmc.energy import Tempered
from mintmc.flat import FlatTarget
from mintmc.modes.find import Mode, mode_of
from mintmc.modes.many import Found, gather
from mintmc.modes.search import NoModeError
from mintmc.modes.tails import slowest_fall
from mintmc.result.law import MIN_FALL
from mintmc.run.interrupt import Interrupt
from mintmc.run.progress import Display
from mintmc.run.protocol import Session
from mintmc.run.task import Task
from mintmc.run.workers import cores, workers
from mintmc.samplers.base import check_differentiable
from mintmc.samplers.explore import explore, hot_samplers

_WORTH = (30, 3)
"""Observations that the hot posteriors are worth: few, where chains cross between modes, and more, where modes stay."""
_DESCENTS = 64
_PASSES = 3


@dataclass(frozen=True)
class Look:
    """What was seen."""

    target: FlatTarget
    is_smooth: bool  # whether there are gradients to go by; nothing else is known if not
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
    if not _is_smooth(task):
        nothing = np.zeros((0, target.dim))
        return Look(target, False, False, nothing, 0, 0, _pass(target, task.thetas[0]), time.perf_counter() - begun)
    mode = _mode(task)
    is_regular, rows_beside = (False, 0) if mode is None else _is_regular(task, mode)
    found, rows_read = _modes(task)
    lowest = min(found.energy.min(initial=np.inf), np.inf if mode is None else mode.energy)
    ends = found.theta[found.matters(lowest)]
    return Look(
        target,
        is_smooth=True,
        is_regular=is_regular,
        ends=ends,
        descents=int(found.starts.sum()) + found.lost,
        rows_read=rows_read + rows_beside + (0 if mode is None else mode.rows_read),
        pass_seconds=_pass(target, task.thetas[0]),
        seconds=time.perf_counter() - begun,
    )


def _is_smooth(task: Task) -> bool:
    try:
        check_differentiable("plan", task.target.posterior, task.example)
    except ValueError:
        return False
    return True


def _mode(task: Task) -> Mode | None:
    """The one from where the first chain starts, if there is one that is finite and no ridge."""
    try:
        return mode_of(task.target, task.thetas[0], seed=task.seed, is_patient=False)
    except NoModeError:
        return None


def _is_regular(task: Task, mode: Mode) -> tuple[bool, int]:
    """Whether the curvature at a mode describes it, as far as three standard deviations away; and rows read."""
    if mode.covariance is None or mode.expansion is None:
        return False, 0
    target = Tempered(task.target.model, 1.0)
    normal = laplace(target, mode.expansion)
    if normal is None:
        return False, 0
    fall, rows_read = slowest_fall(task.target, target, normal, task.seed)
    return fall >= MIN_FALL, rows_read


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
