"""Where a run is written: what its store says of it, who may write there, and what several processes made of it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax

from mintmc.run.initial import starts_apart
from mintmc.run.processes import join_parts, part_path, wait_for_all
from mintmc.run.protocol import Sampler
from mintmc.run.task import Task
from mintmc.store.keeper import Follower, Keeper, Memory, Saver
from mintmc.store.lock import locked
from mintmc.store.provenance import differences, provenance
from mintmc.store.run_store import is_new, read_record


def record_of_run(path: Path) -> dict[str, Any]:
    """What a store says of its run, or the part of it that this process made if they have not been joined."""
    part = part_path(path, jax.process_index())
    for place in (path, part):
        if place.exists() and not is_new(place):
            if not (place / "zarr.json").is_file():
                raise ValueError(f"path must be a run of mintmc, got {path}: no {place / 'zarr.json'} there")
            return read_record(place)
    found = "nothing there" if not path.exists() and not part.exists() else "one that was stopped before its first save"
    raise ValueError(f"path must be a run of mintmc, got {path}: {found}")


def record_of(task: Task, sampler: Sampler, init: Any, chains: int) -> dict[str, Any]:
    """What made the run, all chains of it."""
    settings = {"chains": chains, "warmup": task.warmup, "thin": task.thin, "seed": task.seed, "processes": task.parts}
    starts = [task.target.unravel(theta) for theta in task.thetas]
    return provenance(task.target.posterior, sampler, starts, **settings, apart=starts_apart(init))


def stored_record(out: Path, record: dict[str, Any]) -> dict[str, Any] | None:
    """What a store says of its run, None if it is new; refuses another run."""
    done = None if is_new(out) else read_record(out)
    if done is not None and (found := differences(done, record)):
        raise ValueError(f"out must be a new path or the same run, got {out}, which differs: {'; '.join(found)}")
    return done


def keeper_of(held: ExitStack, task: Task, out: Path | None, record: dict[str, Any]) -> Keeper:
    """Where draws go; ``held`` lets go of the locks at the end."""
    if out is None:
        return Memory()
    here = out if task.parts == 1 else part_path(out, jax.process_index())
    if task.crew.writes:
        for place in {here, out} if jax.process_index() == 0 else {here}:
            held.enter_context(locked(place))
    stored_record(here, record)  # once more: nobody else writes to it any longer
    task.crew.meet("checked")  # or one would look while another makes it
    saver = Saver(here) if task.crew.writes else None
    task.crew.meet("opened")
    return Follower(here) if saver is None else saver


def joined(task: Task, out: Path, record: dict[str, Any], audit: bool) -> bool:
    """Join what several processes have made; whether there is something whole."""
    if jax.process_count() == 1:
        return True
    wait_for_all("all are finished")
    if task.parts > 1 and jax.process_index() == 0:
        join_parts(out, {**record, "warmed": task.warmup, "audited": audit})
    wait_for_all("parts are joined")
    return task.parts == 1 or not is_new(out)
