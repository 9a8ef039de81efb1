"""When to save a run, and what: often enough to lose little, seldom enough not to be noticed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from mintmc.run.clock import Clock
from mintmc.store.run_store import RunStore

if TYPE_CHECKING:
    import xarray

_SECONDS_BETWEEN = 2.0
_SHARE = 0.03
"""Of the time, at most, that goes into saving."""
_BYTES_UNSAVED = 2**25


class Saver:
    """Saves a run to its store; does nothing if there is none.

    Parameters
    ----------
    store
        Where to; None keeps everything in memory.
    tree_of
        The tree of what a run made since it was last saved.
    record
        What the store says of the run, beside where it stands.
    clock
        That of the run.
    writes
        False if another process, which makes the same draws, writes them.
    """

    def __init__(
        self,
        store: RunStore | None,
        tree_of: Callable[[Any], xarray.DataTree],
        record: dict[str, Any],
        clock: Clock,
        writes: bool = True,
    ):
        self.store, self.tree_of, self.record, self.clock, self.writes = store, tree_of, record, clock, writes
        self.last, self.seconds = time.perf_counter(), 0.0

    def room(self, draws: int, chains: int, dim: int) -> int:
        """Draws that may wait in memory to be saved."""
        if self.store is None:
            return draws
        return min(draws, max(64, _BYTES_UNSAVED // (4 * chains * (dim + 8))))

    def save_if_due(self, run: Any, full: bool = False) -> None:
        """Save if it is time to, or if there is no room for more draws."""
        pause = max(_SECONDS_BETWEEN, self.seconds / _SHARE)
        if self.store is not None and (full or not self.writes or time.perf_counter() - self.last > pause):
            self.save(run)

    def save(self, run: Any) -> None:
        """Save what was made since last time, and where the run stands."""
        if self.store is None:
            return
        if not self.writes:
            run.saved = run.drawn
            return
        begun = time.perf_counter()
        tree = self.tree_of(run)
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(run.checkpoint())]
        stands = {"warmed": run.warmed, "drawn": run.drawn, "audited": run.audit is not None}
        record = {**self.record, **stands, "seconds": self.clock.seconds()}
        try:
            if run.drawn > run.saved:
                self.store.append(tree)
            self.store.commit(dict(tree.attrs), record, leaves)
            run.committed()
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}: the run could not be saved to {self.store.path}. "
                f"What was saved before ({run.saved} draws) is safe; run the same again to go on",
            ) from error
        run.saved = run.drawn
        self.last = time.perf_counter()
        self.seconds = self.last - begun

    def restore(self, run: Any) -> None:
        """Bring a run to where its store left it."""
        self.last = time.perf_counter()
        if self.store is None or self.store.done is None:
            return
        leaves, structure = jax.tree.flatten(run.checkpoint())
        done, stored = self.store.done, self.store.checkpoint()
        checkpoint = self.store.path / done["checkpoint"]
        # The first axis may have any length: rings hand over as many states as they have.
        if [(np.shape(leaf)[1:], leaf.dtype) for leaf in leaves] != [(leaf.shape[1:], leaf.dtype) for leaf in stored]:
            raise ValueError(f"{checkpoint} is damaged: it does not fit the run")
        # What lives on the host stays there: counts in float64 would be rounded on the device.
        back = [
            new if isinstance(old, np.ndarray) else jnp.asarray(new) for old, new in zip(leaves, stored, strict=True)
        ]
        run.restore(jax.tree.unflatten(structure, back))
        if (run.warmed, run.drawn) != (done["warmed"], done["drawn"]):
            raise ValueError(
                f"{checkpoint} is damaged: it is {run.warmed} into the warm-up and {run.drawn} into the draws, but "
                f"zarr.json says {done['warmed']} and {done['drawn']}"
            )
