"""Where the rows of a run come from: the one place that asks whether data are in memory or on disk.

In memory, batches are slices of a shuffled copy, or gathered one by one ("uniform"). Of a prepared file they are read
where they lie, and of any other file the host reads them. See ``mintmc.data.batch``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from mintmc.data.array import ArrayData
from mintmc.data.batch import Batching, Shuffled, Uniform
from mintmc.data.columns import Rows, by_column
from mintmc.data.disk import DiskData
from mintmc.data.disk_batch import Fresh, FromDisk, Runs

PASSES_PER_SHUFFLE = 50
"""After which a new shuffle is paid for."""
_NEVER = 2**62


class RowReader:
    """The rows that programs are given, and how they draw batches from them.

    Parameters
    ----------
    data
        Where the rows are; None for a density without data.
    kind
        "shuffled", "uniform", or "none" if all data are read in their own order.
    seed
        Of the shuffles.
    beside
        What a batch from disk must know of its rows besides, see ``Posterior.referenced``.
    """

    def __init__(
        self, data: ArrayData | DiskData | None, kind: str, seed: int, beside: Callable[[Rows], Any] = lambda rows: rows
    ):
        self.data, self.kind, self.seed, self.beside = data, kind, seed, beside
        self.n = 0 if data is None else data.n
        self._epoch, self._wrap, self._rows = -1, -1, None

    def batching(self, batches: Mapping[str, int]) -> Batching:
        """How batches of these roles and sizes are drawn."""
        data = self.data
        if not isinstance(data, DiskData):
            return Uniform(self.n) if self.kind == "uniform" else Shuffled.of(self.n, batches)
        if not data.by_host:
            return Runs.of(self.n, _drawn(batches) or [self.n], self.beside)
        if {"all", "stream"} <= set(batches):
            raise ValueError(f"data must be in memory, or prepared, for an oracle or a proxy, got {data.name}")
        return FromDisk(data) if "stream" in batches else Fresh(data, self.beside)

    def steps_per_shuffle(self, batches: Mapping[str, int]) -> int:
        """Every so many steps the data have been read often enough to pay for a new shuffle."""
        rows = sum(_drawn(batches))
        return math.ceil(PASSES_PER_SHUFFLE * self.n / rows) if self.is_sliced and rows else _NEVER

    @property
    def is_sliced(self) -> bool:
        """Whether batches are slices of a shuffled copy."""
        return self.kind == "shuffled" and isinstance(self.data, ArrayData)

    def rows(self, epoch: int, largest: int) -> Rows:
        """The rows of an epoch, for batches of at most ``largest``; those of the data as they are if none is sliced."""
        if self.data is None or not self.is_sliced or not largest:
            return None if self.data is None else self.data.resident
        if (epoch, largest) != (self._epoch, self._wrap):
            assert isinstance(self.data, ArrayData)
            self._epoch, self._wrap = epoch, largest
            self._rows = jax.tree.map(jnp.asarray, by_column(self.data.shuffled(self.seed, epoch, largest)))
        return self._rows


def _drawn(batches: Mapping[str, int]) -> list[int]:
    """Sizes of the batches that are drawn."""
    return [size for role, size in batches.items() if role != "all"]
