"""Which sampler, and what it will cost: looks at a posterior, tries what may suit it, and says what it found.

Every option that can be tried in seconds is tried, on as many chains as are asked for: seconds, rows and effective
draws of the whole run follow from those of the trial, and moves on batches are compared with all data as after any
run. An option that the comparison speaks against is not chosen. The cheapest of the others, by the time to so many
effective draws of the worst parameter, comes first.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mintmc import check
from mintmc.control import Taylor
from mintmc.posterior import Posterior
from mintmc.proposals import Autoregressive, Hamiltonian
from mintmc.result.diagnose import diagnose
from mintmc.result.law import law_warnings
from mintmc.result.reading import moved_group, thinned
from mintmc.run.initial import Start, initial_states
from mintmc.run.keys import Purpose, key_of
from mintmc.run.sample import MOST_CHAINS, sample
from mintmc.run.task import Task
from mintmc.run.workers import cores
from mintmc.samplers import MINT, Leaps, MetropolisHastings
from mintmc.study.look import Look, look
from mintmc.study.planned import Option, Plan

_TRIAL = 5.0
"""Seconds of a trial, beside what compiling takes."""
_AGAIN, _LONGER = 0.15, 0.35
"""Of the time beside the steps of a trial, what the same run takes again, and what one of another length does."""
_SHORT = 1.0
"""Seconds of a run that is made once more to see how long it takes when nothing is left to compile."""
_SEARCH = 3.0
"""The time in which all modes are sought, over that of the look."""
_VISITS = 10
"""States of a trajectory: few make more, whatever the most is."""
_GRADIENT = 3.0
"""The time of a gradient over that of a value."""
_FEWEST, _MOST = 100, 2000
"""Draws of a trial, and as many steps of warm-up."""
_FEW_ROWS = 500
"""Too few for batches."""


def plan(
    posterior: Posterior,
    *,
    init: Any = None,
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    effective: float = 400,
    seed: int = 0,
) -> Plan:
    """Say which sampler suits a posterior, and what it will cost.

    It looks for modes (hot chains, a few dozen descents), then tries what may suit, a few seconds each.

    Parameters
    ----------
    posterior
        What is to be sampled.
    init
        As in ``sample``; None where the posterior knows one (``glm``, ``from_numpyro``, ``from_pymc``).
    draws, warmup, chains
        Of the run that is planned.
    effective
        Effective draws that are wanted of the worst parameter: options are compared by the time to so many.
    seed
        Of all randomness.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(3.0, 1.0, size=20_000)
    >>> posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    >>> found = mintmc.plan(posterior, init=0.0)
    >>> found.modes, found.best.against
    (1, ())
    """
    check.instance("posterior", posterior, Posterior, "a mintmc.Posterior")
    draws, warmup = check.integer("draws", draws, 1), check.integer("warmup", warmup, 0)
    chains = check.integer("chains", chains, 1, most=MOST_CHAINS)
    effective = check.number("effective", effective, 0)
    seed = check.integer("seed", seed, 0, 2**32 - 1)
    init = start_of(posterior, init)
    begun = time.perf_counter()
    thetas, example = initial_states(posterior, init, chains, key_of(seed, Purpose.init))
    posterior.check_functions(example, "init")
    task = Task(posterior.flat(example), thetas, example, seed, draws, warmup, thin=1)
    start = Start(task.target)
    for theta in thetas:
        start.check(theta)
    seen = look(task)
    options = _options(posterior, init, task, seen)
    options.sort(key=lambda option: (bool(option.against), option.seconds_to(effective)))
    return Plan(
        tuple(options),
        *(posterior.n, seen.target.dim, seen.modes, seen.descents, seen.is_regular, draws, warmup, chains, effective),
        seconds=time.perf_counter() - begun,
    )


def start_of(posterior: Posterior, init: Any) -> Any:
    """Where to start: what was given, or what the posterior knows."""
    if init is not None:
        return init
    known = getattr(posterior, "init", None)
    if known is None:
        raise ValueError("init must be given: this posterior knows no start of its own, got None")
    return known


def _options(posterior: Posterior, init: Any, task: Task, seen: Look) -> list[Option]:
    """What may suit, the likeliest first: tried until one is good, and beyond it what may take half its time."""
    options: list[Option] = []
    for sampler in _candidates(seen):
        each = _step_seconds(sampler, task, seen)
        good = [option for option in options if not option.against]
        if good and (task.draws + task.warmup) * each > good[0].seconds / 2:
            options.append(_by_passes(sampler, each, task, good[0].effective))
        else:
            options.append(_tried(posterior, sampler, init, each, task, seen))
    return options


def _candidates(seen: Look) -> list[Any]:
    """All of them sample T = 1."""
    if not seen.is_smooth:
        return [MetropolisHastings()]
    # Small and many steps: what curvature does not describe may be curved differently everywhere.
    everywhere = MetropolisHastings(Hamiltonian(steps=50, target_acceptance=0.8))
    if seen.modes > 1:
        return [Leaps()]
    if not seen.is_regular:
        return [everywhere]
    around = MetropolisHastings(Autoregressive())
    controlled = [MINT(temperature=1.0, control=Taylor())] if seen.target.n >= _FEW_ROWS else []
    return [*controlled, around, everywhere]


def _step_seconds(sampler: Any, task: Task, seen: Look) -> float:
    """Of one step of all chains on all data; 0 where a step does not read them all."""
    if not isinstance(sampler, MetropolisHastings):
        return 0.0
    proposal = sampler.proposal
    passes = min(proposal.visits, _VISITS) * (_GRADIENT if proposal.uses_gradient else 1)
    return passes * seen.pass_seconds * task.chains / cores(task.chains)


def _by_passes(sampler: Any, each: float, task: Task, effective: float) -> Option:
    """An option that is not tried: its cost is that of its passes, its draws are taken to be worth as much."""
    steps = task.draws + task.warmup
    rows = steps * task.chains * min(sampler.proposal.visits, _VISITS) * task.target.n
    return Option(sampler, steps * each, float(rows), effective)


def _tried(posterior: Posterior, sampler: Any, init: Any, each: float, task: Task, seen: Look) -> Option:
    """Try a sampler, for a few seconds beside what compiling takes."""
    most = int(np.clip(_TRIAL / each / 2, _FEWEST, _MOST)) if each else _MOST
    tried, beforehand = sampler, 0.0
    if isinstance(sampler, Leaps):
        # It would look for the modes again: the trial is given those that are known.
        modes = [jax.tree.map(np.asarray, seen.target.unravel(jnp.asarray(theta))) for theta in seen.ends]
        tried, beforehand, most = replace(sampler, modes=modes), _SEARCH * seen.seconds, _FEWEST
    settings: dict[str, Any] = {"draws": min(task.draws, most), "warmup": min(task.warmup, most)}
    settings |= {"chains": task.chains, "seed": task.seed, "progress": False}
    tree, taken = _timed(posterior, tried, init, settings)
    option, is_whole = _expected(sampler, tree, taken, task, settings)
    if is_whole and option.seconds < _SHORT:
        # What it takes beside its steps is most of it then, and known only by another run.
        option = replace(option, seconds=_timed(posterior, tried, init, settings)[1])
    return replace(option, seconds=option.seconds + beforehand)


def _timed(posterior: Posterior, sampler: Any, init: Any, settings: dict[str, Any]) -> tuple[Any, float]:
    begun = time.perf_counter()
    tree = sample(posterior, sampler, init=init, **settings)
    return tree, time.perf_counter() - begun


def _expected(sampler: Any, tree: Any, taken: float, task: Task, tried: dict[str, int]) -> tuple[Option, bool]:
    """What the whole run will be like, by its trial; and whether its trial was as long."""
    verdict, attrs = diagnose(tree), tree.attrs
    more, warm = task.draws / tried["draws"], task.warmup / max(tried["warmup"], 1)
    is_whole = more == 1 and warm == 1
    # Most of what is not steps is compiling, of which the same run needs little again, a longer one some.
    beside = (taken - attrs["warmup_time"] - attrs["sampling_time"]) * (_AGAIN if is_whole else _LONGER)
    touched = tree["sample_stats"]["data_touched"].values.sum()
    setup = float(np.sum(attrs["data_touched_setup"])) + attrs.get("data_touched_audit", 0)
    # Chains of a short trial need not agree yet; what speaks against their law would speak against the whole run.
    against = verdict.warnings if is_whole else law_warnings(tree, thinned(tree[moved_group(tree)]))
    option = Option(
        sampler,
        seconds=beside + warm * attrs["warmup_time"] + more * attrs["sampling_time"],
        rows=float(touched * more + setup * max(warm, 1)),
        effective=float(np.nan_to_num(verdict.numbers["ess_bulk"]) * more),
        against=tuple(against),
        trial=tree,
    )
    return option, is_whole
