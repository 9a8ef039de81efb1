"""Hot chains that cross between modes: where descents to all of them may start.

On data, MINT on small batches at several temperatures, T = n / n_eff with n_eff from 3 to 1,000 observations: one of
them crosses between modes and is not yet so hot that it leaves them. Without data, tempered Metropolis-Hastings.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mintmc.flat import FlatTarget
from mintmc.proposals import Langevin
from mintmc.run.protocol import Session
from mintmc.run.task import Task
from mintmc.samplers.metropolis import MINT, MetropolisHastings

_WORTH = (1000, 300, 100, 30, 10, 3)
"""Observations that the hot posteriors are worth."""
_HOT = (10.0, 100.0, 1000.0)
"""Temperatures of a density without data."""
DRAWS, DRAWS_AGAIN = 400, 40
"""Of each hot chain, and when it is only to be seen whether others find anything else."""
_THIN, _WARMUP = 10, 500
_ALPHA = 0.9
_FEWEST_CHAINS = 8
"""At each temperature: what only one of them finds tells of what none has found."""


class Explored(NamedTuple):
    """States of hot chains."""

    states: np.ndarray  # (number, d)
    chains: np.ndarray  # (number,) which chain each is from
    rows_read: int


def explore(
    task: Task, session: Session, samplers: list[Any] | None, states: int, draws: int = DRAWS
) -> Explored | None:
    """So many states of hot chains from the starts of a task, and these starts; None if that was interrupted.

    ``samplers`` say how, None lets it choose; ``draws`` is how many each chain makes, of which some are taken.
    """
    samplers = samplers or hot_samplers(task.target)
    chains = max(_FEWEST_CHAINS, task.chains)
    thetas = [task.thetas[chain % task.chains] for chain in range(chains)]
    found, rows_read = [], 0
    settings: dict[str, Any] = {"draws": draws, "warmup": _WARMUP, "thin": _THIN, "folder": None}
    settings |= {"is_new": True, "is_brief": True}
    for number, hot in enumerate(samplers):
        own = replace(task, thetas=thetas, seed=(task.seed + number) % 2**32, **settings)
        run = hot.plan(own)
        session.display.say(f"exploring by {run.outline}")
        run.compile(session, draws)
        for stretch in (run.warm_up(session), run.collect(session, draws)):
            for _ in stretch:
                pass
        if session.interrupt.requested:
            return None
        made = run.take().draws
        rows_read += int(made.statistics["data_touched"].sum()) + sum(run.facts()["data_touched_setup"])
        found += list(made.theta)
    rng = np.random.default_rng(task.seed)
    order = np.stack([rng.permutation(draws) for _ in found])
    # A state of each chain in turn, so that the first few are from all temperatures; before them the starts themselves.
    turns = [(chain, found[chain][order[chain, turn]]) for turn in range(draws) for chain in range(len(found))]
    starts = [(-1 - chain, np.asarray(theta)) for chain, theta in enumerate(task.thetas)]
    chosen = [*starts, *turns][:states]
    states_chosen, origins = zip(*((state, chain) for chain, state in chosen), strict=True)
    return Explored(np.stack(states_chosen), np.array(origins), rows_read)


def hot_samplers(target: FlatTarget, worths: tuple[int, ...] = _WORTH) -> list[Any]:
    """Samplers of hot chains: on data, of posteriors that are worth so many observations."""
    n = target.n
    if n == 0:
        return [MetropolisHastings(Langevin(), temperature=temperature) for temperature in _HOT]
    temper = target.model.tempered(None)
    hot: list[Any] = []
    for worth in worths:
        size = int(np.ceil(worth ** (1 / _ALPHA)))
        if size < n / 2:
            hot.append(MINT(size, temperature=n / worth, proposal=Langevin(), temper=temper))
    few = [MetropolisHastings(Langevin(), temperature=t, temper=temper) for t in _HOT if t < n]
    return hot or few or [MetropolisHastings(Langevin(), temper=temper)]
