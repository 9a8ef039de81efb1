"""One run on several processes, on one machine or many: chains are shared out, or the rows of every full pass.

JAX's own runtime joins the processes (``jax.distributed``). A chain's draws depend on the seed and its number alone, so
it does not matter which process runs it. Each process writes a part, a run store of its own, which survives like any
other; when all are finished the first process joins them into one.

A run on all data with fewer chains than processes is made by all of them together: each reads its share of the rows,
the sums are joined in an order that does not depend on their number, and everything else is done by each alike. The
first process writes.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mintmc import check
from mintmc.energy import PARTS
from mintmc.run.guard import TIMEOUT, guard
from mintmc.store.provenance import differences, summary
from mintmc.store.run_store import RunStore, open_run, read_record

_DRAWS_AT_A_TIME = 10_000
_MAY_DIFFER = ("draws", "warmed", "machines", "audited")
_PER_CHAIN = ("step_size", "data_touched_setup")
_HOW_TO_GO_ON = "what was saved is safe: start the same again, in all processes, to go on"
_joined = {"timeout": TIMEOUT}


def join(coordinator: str | None, processes: int | None, process_id: int | None, timeout: int = TIMEOUT) -> None:
    """Become one of several processes; what is None is found out from Slurm, Kubernetes or MPI, as JAX does.

    From then on this is a child of the process that was started (``run/guard.py``), which ends with one line if another
    process has not come, or has not been heard of, for ``timeout`` seconds.
    """
    timeout = check.integer("timeout", timeout, 1, 10**6)
    if coordinator is not None and not re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:/\s]+):\d{1,5}", coordinator):
        raise ValueError(f"coordinator must be HOST:PORT of the first process, got {coordinator!r}")
    if processes is not None:
        check.integer("processes", processes, 1)
    if process_id is not None:
        check.integer("process_id", process_id, 0, None if processes is None else processes - 1)
    _joined["timeout"] = timeout
    guard(lambda text: _who_is_gone(text, timeout, process_id))
    # JAX would wait for a good moment to be told of the end, and not end.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            coordinator,
            processes,
            process_id,
            initialization_timeout=timeout,
            heartbeat_timeout_seconds=timeout,
            shutdown_timeout_seconds=timeout,
        )
    except ValueError as error:
        raise ValueError(
            f"coordinator, processes and process_id must be given where no cluster tells them, got {coordinator}, "
            f"{processes} and {process_id}: {error}"
        ) from error


def leave(code: int) -> None:
    """End at once if others are waiting: they are not waited for in turn, and find out by themselves."""
    if jax.distributed.is_initialized():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _who_is_gone(text: str, timeout: int, process_id: int | None) -> str:
    """One line from what JAX's runtime writes when it gives up."""
    names = re.search(r"(?:stopped sending heartbeats\)|timed out task names):\s*((?:\d+\s+)+)", text)
    if "RegisterTask" in text:
        who = f"another process did not come within {timeout} s"
    elif names or process_id != 0:  # who does not hear of the first hears of nobody
        who = f"process {', '.join(names[1].split()) if names else 0} is gone (not heard of for up to {timeout} s)"
    else:
        who = f"another process is gone (not heard of for {timeout} s)"
    return f"{who}, see --timeout; {_HOW_TO_GO_ON}"


@contextmanager
def others_heard() -> Iterator[None]:
    """Within it, an exchange that fails because another process is gone ends as any other loss of one does.

    Who shares a pass notices at once that a connection is closed, but not who is gone. JAX's runtime finds out within
    the time-out and then ends this process with one line (``run/guard.py``), so that is waited for.
    """
    try:
        yield
    except Exception as error:
        if "Gloo" not in str(error):
            raise
        time.sleep(2 * _joined["timeout"])
        raise ConnectionError(f"another process is gone; {_HOW_TO_GO_ON}") from error


def agree(record: dict[str, Any]) -> None:
    """Refuse a run for which another process has been given other settings, other data or another model."""
    from jax.experimental.multihost_utils import process_allgather

    parts = summary(record)
    mine = np.array([list(hashlib.sha256(f"{name} {text}".encode()).digest()[:8]) for name, text in parts.items()])
    lengths = process_allgather(np.int32(len(mine))).ravel()
    if len(set(lengths.tolist())) > 1:
        raise ValueError("all processes must be given the same run, got samplers or params with different settings")
    for process, other in enumerate(np.asarray(process_allgather(mine.astype(np.uint8)))):
        if differing := [name for name, same in zip(parts, (other == mine).all(axis=1), strict=True) if not same]:
            here = "; ".join(f"{name} is {parts[name]} here" for name in differing)
            raise ValueError(f"all processes must be given the same run, got another in process {process}: {here}")


def own_chains(chains: int) -> range:
    """The chains that run in this process."""
    count, index = jax.process_count(), jax.process_index()
    if chains < count:
        raise ValueError(f"chains must be at least {count} for {count} processes, got {chains}")
    return range(chains * index // count, chains * (index + 1) // count)


def check_sharers() -> int:
    """The number of devices that are to share full passes; refuses one that the parts of a pass cannot be dealt to."""
    count = jax.device_count()
    if PARTS % count:
        raise ValueError(f"processes must be 2, 4, 8 or {PARTS} to share full passes over the data, got {count}")
    return count


def part_path(out: str | Path, index: int) -> Path:
    """Where a process writes."""
    return Path(f"{out}.part-{index}")


def _ring_groups(parts: list[Any]) -> dict[str, int]:
    """How many sets of rings all processes have; none shares them with another."""
    counts = [part["ladder"].attrs["ring_groups"] for part in parts if "ring_groups" in part["ladder"].attrs]
    return {"ring_groups": sum(int(count) for count in counts)} if counts else {}


def wait_for_all(name: str) -> None:
    """Go on only when every process has come this far."""
    from jax.experimental.multihost_utils import sync_global_devices

    sync_global_devices(name)


def join_parts(out: str | Path, record: dict[str, Any]) -> None:
    """One store from those of all processes, a piece at a time; run by the first of them."""
    import xarray

    paths = [part_path(out, index) for index in range(jax.process_count())]
    records = [read_record(path) for path in paths]
    for path, each in zip(paths, records, strict=True):
        if found := differences(each, {name: value for name, value in record.items() if name not in _MAY_DIFFER}):
            raise ValueError(f"all parts must be of the same run, got {path}, which differs: {'; '.join(found)}")
    if min(each["drawn"] for each in records) == 0:
        return  # interrupted so early that there is nothing to join
    parts = [open_run(path) for path in paths]
    store = RunStore(out)
    drawn = min(part["sample_stats"].sizes["draw"] for part in parts)
    done = 0 if store.done is None else store.done["drawn"]
    attributes = dict(parts[0].attrs)
    attributes |= {name: [value for part in parts for value in part.attrs[name]] for name in _PER_CHAIN}
    attributes["undefined_moves"] = sum(int(part.attrs["undefined_moves"]) for part in parts)
    while done < drawn:
        piece = slice(done, min(done + _DRAWS_AT_A_TIME, drawn))
        groups = {}
        for name in parts[0].children:
            these = [part[name].to_dataset().isel(draw=piece, missing_dims="ignore") for part in parts]
            whole = xarray.concat(
                these, "chain", data_vars="minimal", coords="minimal", compat="override", join="override"
            )
            groups[name] = whole.assign_coords(chain=np.arange(whole.sizes["chain"])).load()
            groups[name].attrs |= attributes if "draw" in whole.dims and name not in ("ladder", "rungs") else {}
            groups[name].attrs |= _ring_groups(parts) if name == "ladder" else {}
        store.append(xarray.DataTree.from_dict(groups))
        done = piece.stop
        store.commit(attributes, {**record, "drawn": done}, [])
    for part in parts:
        part.close()
