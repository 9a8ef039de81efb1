"""Hot chains that cross between modes: where descents to all of them may start.

On data, MINT on small batches at several temperatures, T = n / n_eff with n_eff from 100 to 1,000 observations: one of
them crosses between modes and is not yet so hot that it leaves them. Without data, tempered Metropolis-Hastings. All of
it takes as long as a few passes over the data.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mintmc.posterior import FlatTarget
from mintmc.proposals import Langevin
from mintmc.run.protocol import Session
from mintmc.run.task import Task
from mintmc.samplers.metropolis import MINT, MetropolisHastings

_WORTH = (1000, 300, 100)
"""Observations that the hot posteriors are worth."""
_HOT = (10.0, 100.0, 1000.0)
"""Temperatures of a density without data."""
_DRAWS, _THIN, _WARMUP = 400, 10, 500
_ALPHA = 0.9


def explore(task: Task, session: Session, sampler: Any, states: int) -> np.ndarray | None:
    """States (number, d) of hot chains from the starts of a task; None if that was interrupted.

    ``sampler`` says how, None lets it choose.
    """
    samplers = [sampler] if sampler is not None else _hot_samplers(task.target)
    found = []
    for number, hot in enumerate(samplers):
        own = replace(task, draws=_DRAWS, warmup=_WARMUP, thin=_THIN, seed=(task.seed + number) % 2**32)
        run = hot.plan(own)
        session.display.say(f"exploring by {run.outline}")
        run.compile(session, _DRAWS)
        for stretch in (run.warm_up(session), run.collect(session)):
            for _ in stretch:
                pass
        if session.interrupt.requested:
            return None
        theta = run.take().draws.theta
        found.append(theta.reshape(-1, theta.shape[-1]))
    rng = np.random.default_rng(task.seed)
    each = -(-states // len(found))
    chosen = [draws[rng.choice(len(draws), min(each, len(draws)), replace=False)] for draws in found]
    # In turn, so that the first few are from all temperatures; and where the user would begin.
    order = [draws[i] for i in range(each) for draws in chosen if i < len(draws)]
    return np.concatenate([np.stack([np.asarray(theta) for theta in task.thetas]), np.stack(order)])[:states]


def flat_draws(tree: Any, target: FlatTarget) -> np.ndarray:
    """All draws of a tree as flat vectors (number, d)."""
    group = tree["posterior" if "posterior" in tree.children else "tempered_posterior"]
    shape = group.sizes["chain"] * group.sizes["draw"]
    parts = [values.transpose("chain", "draw", ...).values.reshape(shape, -1) for values in group.data_vars.values()]
    result: np.ndarray = np.concatenate(parts, axis=1)
    if result.shape[1] != target.dim:
        raise ValueError(f"explore must be a tree of draws of {target.dim} parameters, got {result.shape[1]}")
    return result


def _hot_samplers(target: FlatTarget) -> list[Any]:
    n = target.n
    if n == 0:
        return [MetropolisHastings(Langevin(), temperature=temperature) for temperature in _HOT]
    temper = target.model.tempered(None)
    hot: list[Any] = []
    for worth in _WORTH:
        size = int(np.ceil(worth ** (1 / _ALPHA)))
        if size < n / 2:
            hot.append(MINT(size, temperature=n / worth, proposal=Langevin(), temper=temper))
    few = [MetropolisHastings(Langevin(), temperature=t, temper=temper) for t in _HOT if t < n]
    return hot or few or [MetropolisHastings(Langevin(), temper=temper)]
