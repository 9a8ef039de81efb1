"""Run a sampler on a posterior, into a tree of draws."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from mintmc import check
from mintmc.posterior import Posterior
from mintmc.run.clock import Clock
from mintmc.run.driver import Driver
from mintmc.run.initial import PerChain, Start, initial_states, is_one_point, starts_apart
from mintmc.run.keys import Purpose, key_of
from mintmc.run.places import joined, keeper_of, record_of, record_of_run, stored_record
from mintmc.run.processes import agree, check_sharers, others_heard, own_chains
from mintmc.run.progress import Display
from mintmc.run.protocol import Sampler
from mintmc.run.settle import settled
from mintmc.run.sofar import SoFar
from mintmc.run.stops import Stops, is_finished
from mintmc.run.task import Task
from mintmc.run.until import check_goal, check_names, restored_goal
from mintmc.store.encode import decode, is_readable
from mintmc.store.provenance import machines_of
from mintmc.store.run_store import open_run, verify

if TYPE_CHECKING:
    from xarray import DataTree

MOST_CHAINS = 2**16
"""Far more than anyone could run."""
_PARTS = ("check", "target_temperature", "start_temperature", "plan")


class Interrupted(UserWarning):
    """A run was stopped before all its draws were made."""


def sample(
    posterior: Posterior,
    sampler: Sampler,
    *,
    init: Any,
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    thin: int = 1,
    seed: int = 0,
    out: str | Path | None = None,
    progress: bool = True,
    audit: bool = True,
    until: Any = None,
    callback: Callable[[SoFar], Any] | None = None,
) -> DataTree:
    """``mintmc.sample`` with a sampler and a start: what it means is written there (``study/choose.py``)."""
    draws = check.integer("draws", draws, 1)
    warmup = check.integer("warmup", warmup, 0, most=check.LARGEST_COUNT)
    chains = check.integer("chains", chains, 1, most=MOST_CHAINS)
    thin = check.integer("thin", thin, 1)
    seed = check.integer("seed", seed, 0, 2**32 - 1)
    check.integer("draws * thin", draws * thin, 1, most=check.LARGEST_COUNT)
    out = None if out is None else Path(check.folder("out", out))
    progress = check.flag("progress", progress)
    audit = check.flag("audit", audit)
    check.instance("posterior", posterior, Posterior, "a mintmc.Posterior")
    check_sampler(sampler)
    check_stops(until, callback, chains)
    clock = Clock()
    found = settled(posterior, sampler, init, chains, warmup + draws * thin, seed, out)
    sampler = found.sampler
    task = _shared(_task(posterior, sampler, init, chains, seed, draws, warmup, thin), sampler, out)
    task = replace(task, settled_rows=found.rows_read, settled=found.said)
    if until is not None:
        check_names(until, jax.eval_shape(task.target.presented.values, task.example))
    record = {} if out is None and jax.process_count() == 1 else record_of(task, sampler, init, chains)
    if jax.process_count() > 1:
        agree({**record, "draws": draws, "out": out and out.name})
    done = None if out is None else stored_record(out, record)
    if out is not None and done is not None and is_finished(done, draws, audit, until):
        verify(out)
        return open_run(out).isel(draw=slice(draws), missing_dims="ignore")
    with ExitStack() as held, others_heard():
        keeper = keeper_of(held, task, out, record)
        if keeper.done is not None:
            clock.add(keeper.done["seconds"])
        task = replace(_own(task), folder=keeper.folder, is_new=keeper.done is None)
        display, run = Display(progress), sampler.plan(task)
        display.say("\n".join(filter(None, (run.outline, found.said))))
        record |= {"settled": {"rows_read": found.rows_read, "said": found.said}} if found.said else {}
        record |= {"draws": draws, "machines": machines_of(keeper.done)}
        stops = Stops(until, callback)
        driver = Driver(task, sampler, run, keeper, record, starts_apart(init), clock, display, stops)
        driver.drive(audit)
        is_whole = out is None or joined(task, out, record, audit)
        if (run.drawn < draws and not stops.said) or not is_whole:
            _say_interrupted(run.drawn if is_whole else 0, draws, out)
        if run.drawn == 0:
            kept = "" if out is None else f"; the warm-up is saved, mintmc.resume({str(out)!r}, posterior) goes on"
            raise ValueError(f"callback must not stop a run before its first draw, got False in warm-up{kept}")
        return driver.tree() if out is None else open_run(out)


def resume(
    path: str | Path,
    posterior: Posterior,
    *,
    sampler: Any = None,
    init: Any = None,
    draws: int | None = None,
    progress: bool = True,
    audit: bool = True,
    until: Any = None,
    callback: Callable[[SoFar], Any] | None = None,
) -> DataTree:
    """Go on with a stored run.

    Parameters
    ----------
    path
        Of the run store.
    posterior
        The same as before.
    sampler
        Only if it cannot be read back from the store, because a setting of it is a function or a large array.
    init
        Only if it cannot be read back, because params are of a class of your own.
    draws
        More draws than were asked for at first; None keeps that number.
    progress, audit, callback
        As in ``sample``.
    until
        As in ``sample``; None keeps what was asked for at first, unless more draws are asked for.

    Examples
    --------
    >>> import jax.numpy as jnp, mintmc, tempfile
    >>> density = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
    >>> path = tempfile.mkdtemp() + "/run.zarr"
    >>> sampler = mintmc.MetropolisHastings()
    >>> tree = mintmc.sample(density, sampler, init=0.0, draws=100, chains=1, out=path, progress=False)
    >>> mintmc.resume(path, density, draws=150, progress=False).posterior.sizes["draw"]
    150
    """
    path = check.path("path", path)
    progress = check.flag("progress", progress)
    check.instance("posterior", posterior, Posterior, "a mintmc.Posterior")
    if sampler is not None:
        check_sampler(sampler)
    record = record_of_run(path)
    for name, given in (("sampler", sampler), ("init", init)):
        if given is None and not is_readable(record[name]):
            raise ValueError(f"{name} must be given: not all of it could be written to {path}")
    if init is None:
        init = PerChain(jax.tree.map(lambda *leaves: np.stack(leaves), *decode(record["init"])), record["apart"])
    sampler = decode(record["sampler"]) if sampler is None else sampler
    shared = {name: record[name] for name in ("warmup", "thin", "seed", "chains")}
    if draws is None:
        draws, until = record["draws"], restored_goal(record.get("goal")) if until is None else until
    shared |= {"progress": progress, "audit": audit, "until": until, "callback": callback}
    return sample(posterior, sampler, init=init, draws=draws, out=path, **shared)


def check_stops(until: Any, callback: Any, chains: int) -> None:
    """Refuse goals and callbacks that are none, or where they cannot be asked."""
    check_goal(until, chains)
    if callback is not None:
        check.function("callback", callback)
    for name, given in (("until", until), ("callback", callback)):
        if given is not None and jax.process_count() > 1:
            raise ValueError(f"{name} must be None where several processes share a run, got {check.shown(given)}")


def check_sampler(sampler: Any, name: str = "sampler") -> None:
    """Refuse what is no sampler."""
    what = "a mintmc sampler such as MINT(...)"
    check.instance(name, sampler, object, what)
    if not all(callable(getattr(sampler, part, None)) for part in _PARTS):
        raise TypeError(f"{name} must be {what}, got {check.shown(sampler)}")


def _task(
    posterior: Posterior, sampler: Sampler, init: Any, chains: int, seed: int, draws: int, warmup: int, thin: int
) -> Task:
    """Check everything before anything compiles."""
    key = key_of(seed, Purpose.init)
    thetas, example = initial_states(posterior, init, chains, key)
    sampler.check(posterior, example)
    target = posterior.flat(example)
    start = Start(target)
    for theta in {theta.tobytes(): theta for theta in map(np.asarray, thetas)}.values():
        start.check(jnp.asarray(theta))
    temperature = sampler.start_temperature(posterior.n)
    if is_one_point(init) and temperature is not None:
        thetas = start.dispersed(thetas, math.sqrt(temperature / max(posterior.n, 1)), key)
    return Task(target, thetas, example, seed, draws, warmup, thin)


def _shared(task: Task, sampler: Sampler, out: Path | None) -> Task:
    """What this process makes of it, if there are several."""
    processes = jax.process_count()
    if processes == 1:
        return task
    if processes > task.chains and sampler.shares_passes and task.target.posterior.data is not None:
        sharers = check_sharers()  # all make the same run
        return replace(task, sharers=sharers, target=task.target.shared_by(sharers))
    if out is None:
        raise ValueError("out must be given where several processes share a run, got None")
    own_chains(task.chains)
    return replace(task, parts=processes)


def _own(task: Task) -> Task:
    """The chains that this process runs."""
    if task.parts == 1:
        return task
    own = own_chains(task.chains)
    return replace(task, thetas=[task.thetas[chain] for chain in own], first_chain=own.start)


def _say_interrupted(drawn: int, draws: int, out: Path | None) -> None:
    message = f"interrupted: {drawn} of {draws} draws were made"
    if out is not None:
        message += f" and saved; mintmc.resume({str(out)!r}, posterior) goes on"
    if drawn == 0:
        raise KeyboardInterrupt(message)
    warnings.warn(message, Interrupted, stacklevel=3)
