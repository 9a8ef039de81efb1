"""Where draws go, and when: to a store, often enough to lose little and seldom enough not to be noticed, or nowhere.

A keeper is handed trees and checkpoints by the driver; it knows no run.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from mintmc.store.run_store import Committed, RunStore

if TYPE_CHECKING:
    from xarray import DataTree as Tree

_SECONDS_BETWEEN = 2.0
_SHARE = 0.03
"""Of the time, at most, that goes into saving."""
_BYTES_UNSAVED = 2**25


class Keeper(Protocol):
    """Keeps what a run makes."""

    folder: Any  # of the store; None if there is none
    done: Any  # the record of what was kept before, None if nothing was

    def room(self, draws: int, chains: int, dim: int) -> int:
        """Draws that may wait in memory until they are kept."""
        ...

    def is_due(self) -> bool:
        """Whether it is time to hand over what was made."""
        ...

    def keep(self, tree: Tree | None, attributes: dict[Any, Any], record: dict[str, Any], state: Any) -> None:
        """Keep new draws (if there are any), what is known of the run, and where it stands."""
        ...

    def restored(self, like: Any) -> Any:
        """The pytree that was kept last, in the form of another; None if there is none."""
        ...


class Memory(Keeper):
    """Everything stays with the run until it ends."""

    folder: Any = None
    done: Any = None

    def room(self, draws: int, chains: int, dim: int) -> int:
        """All of them."""
        return draws

    def is_due(self) -> bool:
        """Never."""
        return False

    def keep(self, tree: Tree | None, attributes: dict[Any, Any], record: dict[str, Any], state: Any) -> None:
        """Nothing to do."""

    def restored(self, like: Any) -> Any:
        """Nothing was kept."""
        return None


class Follower(Keeper):
    """Another process, which makes the same draws, writes them; this one only needs to know where the run stood."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.committed = Committed.at(folder)
        self.done = self.committed.record

    def room(self, draws: int, chains: int, dim: int) -> int:
        """As many as the one that writes has."""
        return _room(draws, chains, dim)

    def is_due(self) -> bool:
        """At every opportunity: to let go of draws costs nothing."""
        return True

    def keep(self, tree: Tree | None, attributes: dict[Any, Any], record: dict[str, Any], state: Any) -> None:
        """The other process does."""

    def restored(self, like: Any) -> Any:
        """Where the run stood."""
        return _restored(self.committed, like)


class Saver(Keeper):
    """Saves a run to its store."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.store = RunStore(folder)
        self.done = self.store.done
        self.last, self.seconds = time.perf_counter(), 0.0

    def room(self, draws: int, chains: int, dim: int) -> int:
        """So many that they fill little memory."""
        return _room(draws, chains, dim)

    def is_due(self) -> bool:
        """After a pause that is long beside what saving takes."""
        return time.perf_counter() - self.last > max(_SECONDS_BETWEEN, self.seconds / _SHARE)

    def keep(self, tree: Tree | None, attributes: dict[Any, Any], record: dict[str, Any], state: Any) -> None:
        """Write draws behind those that are there, then the checkpoint, then show both, in one rename."""
        begun = time.perf_counter()
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
        safe = 0 if self.store.done is None else self.store.done["drawn"]
        try:
            if tree is not None:
                self.store.append(tree)
            self.store.commit(attributes, record, leaves)
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}: the run could not be saved to {self.store.path}. "
                f"What was saved before ({safe} draws) is safe; run the same again to go on",
            ) from error
        self.last = time.perf_counter()
        self.seconds = self.last - begun

    def restored(self, like: Any) -> Any:
        """Where the run stood."""
        self.last = time.perf_counter()
        return _restored(Committed(self.folder, self.done), like)


def _room(draws: int, chains: int, dim: int) -> int:
    return min(draws, max(64, _BYTES_UNSAVED // (4 * chains * (dim + 8))))


def _restored(committed: Committed, like: Any) -> Any:
    if committed.record is None:
        return None
    leaves, structure = jax.tree.flatten(like)
    stored = committed.checkpoint()
    # The first axis may have any length: rings hand over as many states as they have.
    if [(np.shape(leaf)[1:], leaf.dtype) for leaf in leaves] != [(leaf.shape[1:], leaf.dtype) for leaf in stored]:
        raise ValueError(f"{committed.checkpoint_path} is damaged: it does not fit the run")
    # What lives on the host stays there: counts in float64 would be rounded on the device.
    back = [new if isinstance(old, np.ndarray) else jnp.asarray(new) for old, new in zip(leaves, stored, strict=True)]
    return jax.tree.unflatten(structure, back)
