"""One run on several processes, on one machine or many: chains are shared out, or the rows of every full pass.

JAX's own runtime joins the processes (``jax.distributed``). A chain's draws depend on the seed and its number alone, so
it does not matter which process runs it. Each process writes a part, a run store of its own, which survives like any
other; when all are finished the first process joins them into one.

A run on all data with fewer chains than processes is made by all of them together: each reads its share of the rows,
the sums are joined in an order that does not depend on their number, and everything else is done by each alike. The
first process writes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from mintmc.energy import DATA_AXIS, PARTS
from mintmc.run.store import RunStore, open_run, read_record

_DRAWS_AT_A_TIME = 10_000
_PER_CHAIN = ("step_size", "data_touched_setup")


def join(coordinator: str | None, processes: int | None, process_id: int | None) -> None:
    """Become one of several processes; what is None is found out from Slurm, Kubernetes or MPI, as JAX does."""
    jax.distributed.initialize(coordinator, processes, process_id)


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


class Alone:
    """How a process runs programs that are its own."""

    @property
    def writes(self) -> bool:
        """Whether this process writes what was made."""
        return True

    def lanes(self, chains: int) -> int:
        """Programs that may run at once."""
        return chains

    def program(self, function: Callable) -> Callable:
        """``function`` as it is to be compiled."""
        return function

    def given(self, tree: Any) -> Any:
        """Arguments as a program takes them."""
        return tree

    def taken(self, tree: Any) -> Any:
        """Results as this process takes them."""
        return tree

    def agreed(self, value: int) -> int:
        """What all go by."""
        return value

    def meet(self, name: str) -> None:
        """Go on when all have come this far."""


class Together(Alone):
    """How processes run one program on all of them, each with the same arguments and results; the first writes."""

    @property
    def writes(self) -> bool:
        """Whether this process writes what all of them have made."""
        return jax.process_index() == 0

    def lanes(self, chains: int) -> int:
        """One, or processes would run different programs at the same time."""
        return 1

    def program(self, function: Callable) -> Callable:
        """``function`` on all devices."""
        mesh, everywhere = Mesh(jax.devices(), (DATA_AXIS,)), PartitionSpec()
        return jax.shard_map(function, mesh=mesh, in_specs=everywhere, out_specs=everywhere, check_vma=False)

    def given(self, tree: Any) -> Any:
        """Arrays that every process has, as one."""
        sharding = NamedSharding(Mesh(jax.devices(), (DATA_AXIS,)), PartitionSpec())

        def place(leaf: Any) -> Any:
            if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
                return jax.random.wrap_key_data(place(jax.random.key_data(leaf)))
            here = np.asarray(leaf)
            return jax.make_array_from_callback(here.shape, sharding, lambda index: here[index])

        return jax.tree.map(place, tree)

    def taken(self, tree: Any) -> Any:
        """Arrays of this process alone."""
        return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), tree)

    def agreed(self, value: int) -> int:
        """What the first process says."""
        from jax.experimental.multihost_utils import broadcast_one_to_all

        return int(broadcast_one_to_all(np.int64(value)))

    def meet(self, name: str) -> None:
        """Go on when all processes have come this far."""
        wait_for_all(name)


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
    if min(read_record(path)["drawn"] for path in paths) == 0:
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
            these = [part[name].to_dataset().isel(draw=piece) for part in parts]
            whole = xarray.concat(
                these, "chain", data_vars="minimal", coords="minimal", compat="override", join="override"
            )
            groups[name] = whole.assign_coords(chain=np.arange(whole.sizes["chain"])).load()
            groups[name].attrs |= attributes if name != "ladder" else _ring_groups(parts)
        store.append(xarray.DataTree.from_dict(groups))
        done = piece.stop
        store.commit(attributes, {**record, "drawn": done}, [])
    for part in parts:
        part.close()
