"""Run a sampler on a posterior, into a tree of draws."""

from __future__ import annotations

import math
import warnings
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from mintmc import check
from mintmc.posterior import Posterior
from mintmc.proposals import Custom
from mintmc.result.tree import RunFacts, build_tree
from mintmc.run.audit_run import audit_run
from mintmc.run.chains import ChainRun
from mintmc.run.clock import Clock
from mintmc.run.initial import PerChain, Start, initial_states, is_one_point, starts_apart
from mintmc.run.interrupt import Interrupt
from mintmc.run.lane import Purpose, Session, Task, cores, key_of, workers
from mintmc.run.outline import outline
from mintmc.run.processes import agree, check_sharers, join_parts, others_heard, own_chains, part_path, wait_for_all
from mintmc.run.progress import Display
from mintmc.run.rounds import LadderRun
from mintmc.samplers import MINTEE, EquiEnergy, MetropolisHastings, Sampler
from mintmc.samplers.base import check_has_data, check_sampler
from mintmc.store.encode import decode, is_readable
from mintmc.store.lock import locked
from mintmc.store.provenance import differences, machines_of, provenance
from mintmc.store.run_store import RunStore, is_new, open_run, read_record, verify
from mintmc.store.saver import Saver

if TYPE_CHECKING:
    import xarray

_MOST_CHAINS = 2**16
"""Far more than anyone could run."""


def sample(
    posterior: Posterior,
    sampler: Sampler | EquiEnergy | MINTEE,
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
) -> xarray.DataTree:
    """Draw from a posterior.

    Parameters
    ----------
    posterior
        What to sample.
    sampler
        How: ``MINT``, ``MetropolisHastings``, ``EquiEnergy``, any other (see docs/samplers.md).
    init
        One params pytree, a function ``key -> params`` (called once a chain), or ``PerChain(params)`` with a leading
        axis of chains. One point is where the first chain starts; the others start around it, at distances of
        sqrt(T/n) in every parameter (T that of the hottest rung on a ladder; sqrt(T) for a density), or closer where
        the density would be zero. Such chains do not disagree about modes that are farther apart: give each a start
        of its own (``PerChain``, or draws from the prior) if there may be any. With a ``Custom`` proposal all start
        at that point.
    draws, warmup
        Recorded draws of each chain, and steps before them in which step size and preconditioner are adapted.
    chains
        Independent chains; they run side by side on the machine's cores.
    thin
        Steps from one recorded draw to the next.
    seed
        The same seed gives the same draws, on any number of cores.
    out
        Path of a run store (Zarr): draws and statistics are streamed to it, in memory that does not grow with
        their number. The same call again goes on with an unfinished run, or with a larger ``draws``. None keeps
        everything in memory.
    progress
        Show a progress bar.
    audit
        Compare some moves of a run on batches with all data when it is finished, for ``diagnose``: a few dozen passes
        over all data (fewer where n is large), counted as ``data_touched_audit``.

    Returns
    -------
    xarray.DataTree
        Draws in group ``posterior`` (T = 1) or ``tempered_posterior`` (any other temperature), statistics of each draw
        in ``sample_stats``. Ready for ArviZ.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(3.0, 1.0, size=10_000)
    >>> posterior = mintmc.Posterior(lambda p, x: -0.5 * (x - p["mean"]) ** 2, x)
    >>> tree = mintmc.sample(posterior, mintmc.MINT(batch_size=100, alpha=0.5), init={"mean": 3.0}, progress=False)
    >>> bool(abs(tree.tempered_posterior["mean"].mean() - 3.0) < 0.1)
    True
    """
    draws = check.integer("draws", draws, 1)
    warmup = check.integer("warmup", warmup, 0, most=check.LARGEST_COUNT)
    chains = check.integer("chains", chains, 1, most=_MOST_CHAINS)
    thin = check.integer("thin", thin, 1)
    seed = check.integer("seed", seed, 0, 2**32 - 1)
    check.integer("draws * thin", draws * thin, 1, most=check.LARGEST_COUNT)
    out = None if out is None else check.folder("out", out)
    progress = check.flag("progress", progress)
    audit = check.flag("audit", audit)
    check.instance("posterior", posterior, Posterior, "a mintmc.Posterior")
    check_sampler(sampler)
    with ExitStack() as held, others_heard():
        return _sample(held, posterior, sampler, init, draws, warmup, chains, thin, seed, out, progress, audit)


def _sample(held, posterior, sampler, init, draws, warmup, chains, thin, seed, out, progress, audit) -> xarray.DataTree:
    """The same with arguments that were checked; ``held`` lets go of the locks at the end."""
    clock = Clock()
    task = _task(posterior, sampler, init, chains, seed, draws, warmup, thin)
    thetas, unravel = task.thetas, task.unravel
    processes = jax.process_count()
    if processes > chains and _passes_over_all(task):
        task, processes = task._replace(sharers=check_sharers()), 1  # all make the same run
    record: dict[str, Any] = {}
    if out is not None or jax.process_count() > 1:
        settings = {"chains": chains, "warmup": warmup, "thin": thin, "seed": seed, "processes": processes}
        settings["apart"] = starts_apart(init)
        record = provenance(posterior, sampler, [unravel(theta) for theta in thetas], **settings)
    if jax.process_count() > 1:
        agree({**record, "draws": draws, "out": out and Path(out).name})
    done = None if out is None else _stored(out, record)
    if done and done["drawn"] >= draws and (done.get("audited") or not audit):
        verify(out)
        return open_run(out)
    if processes > 1:
        own = _own_chains(task, chains, out)
        task = task._replace(thetas=[thetas[chain] for chain in own], first_chain=own.start)
    here = out if out is None or processes == 1 else part_path(out, jax.process_index())
    if here is not None and task.crew.writes:
        for place in {here, out} if jax.process_index() == 0 else {here}:
            held.enter_context(locked(Path(place)))
    if here is not None:
        _stored(here, record)  # once more: nobody else writes to it any longer
    task.crew.meet("checked")  # or one would look while another makes it
    store = RunStore(here) if here is not None and task.crew.writes else None
    task.crew.meet("opened")
    if here is not None and store is None:
        store = RunStore(here, writes=False)
    if store is not None and store.done is not None:
        clock.add(store.done["seconds"])

    before = None if store is None else store.done
    display = Display(progress)
    display.say(outline(task, type(sampler).__name__))
    task = task._replace(folder=None if store is None else store.path, is_new=before is None)
    run: ChainRun | LadderRun = (LadderRun if isinstance(task.sampler, EquiEnergy) else ChainRun)(task)

    def tree_of(run: ChainRun | LadderRun) -> xarray.DataTree:
        temperature = task.sampler.target_temperature(posterior.n)
        starts = np.stack([np.asarray(theta) for theta in task.thetas])
        settings = (sampler, posterior.n, temperature, seed, warmup, thin)
        others = {**run.facts(), "starts_apart": int(starts_apart(init))}
        facts = RunFacts(*settings, clock.seconds(), starts, others, run.ladder_facts())
        return build_tree(run.kept.first(run.drawn - run.saved), unravel, facts, run.saved)

    machines = machines_of(before)
    saver = Saver(store, tree_of, {**record, "draws": draws, "machines": machines}, clock, task.crew.writes)
    with display, Interrupt() as interrupt, workers(cores(run.lanes)) as pool:
        session = Session(pool, display, interrupt, saver)
        run.compile(session, saver.room(draws, len(task.thetas), task.dim))
        saver.restore(run)
        task.crew.meet("restored")
        clock.start("warmup")
        run.warm_up(session)
        clock.start("sampling")
        run.collect(session)
        saver.save(run)
        clock.stop()
        if audit and run.drawn == draws and task.crew.writes:
            standings = run.standings()
            phase = display.phase("audit", len(standings))
            made = tree_of(run) if here is None else open_run(here)
            audited = partial(display.advance, phase, 1)
            run.audit = audit_run(posterior, standings, made, unravel, seed, audited)
            saver.save(run)
    if out is not None and jax.process_count() > 1:
        wait_for_all("all are finished")
        if processes > 1 and jax.process_index() == 0:
            join_parts(out, {**record, "draws": draws, "warmed": warmup, "machines": machines, "audited": audit})
        wait_for_all("parts are joined")
    is_whole = out is None or processes == 1 or not is_new(Path(out))
    if run.drawn < draws or not is_whole:
        _say_interrupted(run.drawn if is_whole else 0, draws, out)
    return tree_of(run) if out is None else open_run(out)


def resume(
    path: str | Path,
    posterior: Posterior,
    *,
    sampler: Any = None,
    init: Any = None,
    draws: int | None = None,
    progress: bool = True,
    audit: bool = True,
) -> xarray.DataTree:
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
    progress, audit
        As in ``sample``.

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
    wanted = record["draws"] if draws is None else draws
    return sample(posterior, sampler, init=init, draws=wanted, out=path, progress=progress, audit=audit, **shared)


def _task(posterior, sampler, init, chains, seed, draws, warmup, thin) -> Task:
    """Check everything before anything compiles."""
    key = key_of(seed, Purpose.init)
    thetas, unravel, example = initial_states(init, chains, key)
    if isinstance(sampler, MINTEE):
        check_has_data(posterior)
        sampler = sampler.for_data(posterior.n)
    sampler.check(posterior, example)
    start = Start(posterior, unravel, thetas[0])
    for theta in {theta.tobytes(): theta for theta in map(np.asarray, thetas)}.values():
        start.check(jnp.asarray(theta))
    if is_one_point(init) and not isinstance(getattr(sampler, "proposal", None), Custom):
        ladder = getattr(sampler, "ladder", None)
        temperature = sampler.target_temperature(posterior.n) if ladder is None else ladder.temperatures[-1]
        thetas = start.dispersed(thetas, math.sqrt(temperature / max(posterior.n, 1)), key)
    reference, read = None, 0
    if hasattr(sampler, "ladder"):
        at = example if sampler.reference is None else sampler.reference
        absolute = posterior.data is None and sampler.reference is None
        no_density = posterior.model(unravel, thetas[0].size).no_density(thetas[0].dtype)
        reference = no_density if absolute else posterior.density(at)
        read = posterior.n
        if min(sampler.ladder.rows(posterior.n)) < posterior.n:
            # In memory once more, for every row by itself; on disk each batch finds out as it is read.
            read = read if posterior.on_disk else 2 * read
            posterior = posterior.referenced(at)
    return Task(posterior, sampler, thetas, unravel, reference, seed, draws, warmup, thin, read)


def record_of_run(path: Path) -> dict[str, Any]:
    """What a store says of its run, or the part of it that this process made if they have not been joined."""
    part = part_path(path, jax.process_index())
    for place in (path, part):
        if place.exists() and not is_new(place):
            return read_record(place)
    found = "nothing there" if not path.exists() and not part.exists() else "one that was stopped before its first save"
    raise ValueError(f"path must be a run of mintmc, got {path}: {found}")


def _stored(out: str | Path, record: dict[str, Any]) -> dict[str, Any] | None:
    """What a store says of its run, None if it is new; refuses another run."""
    done = None if is_new(Path(out)) else read_record(out)
    if done is not None and (found := differences(done, record)):
        raise ValueError(f"out must be a new path or the same run, got {out}, which differs: {'; '.join(found)}")
    return done


def _passes_over_all(task: Task) -> bool:
    """Whether every step passes over all data, and there are data."""
    return isinstance(task.sampler, MetropolisHastings) and task.posterior.data is not None


def _own_chains(task: Task, chains: int, out: str | Path | None) -> range:
    if out is None:
        raise ValueError("out must be given where several processes share a run, got None")
    if getattr(task.sampler, "share_rings", False):
        raise ValueError("share_rings must be False where several processes share a run, got True")
    return own_chains(chains)


def _say_interrupted(drawn: int, draws: int, out: str | Path | None) -> None:
    message = f"interrupted: {drawn} of {draws} draws were made"
    if out is not None:
        message += f" and saved; mintmc.resume({str(out)!r}, posterior) goes on"
    if drawn == 0:
        raise KeyboardInterrupt(message)
    warnings.warn(message, stacklevel=4)
