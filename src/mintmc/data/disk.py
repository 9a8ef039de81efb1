"""Observations that stay in a file.

Rows that were shuffled on disk (``mintmc.data.prepare``) are mapped into memory, and a compiled program reads of them
what it needs, where it lies (``mintmc.data.batch.Runs``). Of any other file the rows of a batch are drawn one by one
and read by the host (``mintmc.data.fresh``): right as well, but slow where a row cannot be read without its neighbours
(Parquet, Arrow, Zarr).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar

import jax
import numpy as np

from mintmc import check
from mintmc.data.array import check_kept, check_unmasked, named_leaves, native, row_form
from mintmc.data.columns import Rows
from mintmc.data.identity import VERIFY
from mintmc.data.source import Source, check_numbers

_ALIGNED = 64  # bytes: what lies otherwise is copied by JAX
_BYTES_CHECKED = 2**26  # at a time


class DiskData:
    """Observations in a file, in the precision that JAX will use; made by ``open_data`` and its relatives.

    Attributes
    ----------
    name
        Where they are.
    n
        The number of observations.
    prepared
        Whether the rows were shuffled on disk.
    example
        The first observation, with a leading axis of length 1.
    categories
        What codes stand for, by column: ``data.categories["country"][code]``. Columns of words are read as codes.
    bytes_per_row
        What one row takes in memory, before or after the transform, whichever is more.
    failure
        The first error in a read that a compiled program asked for.
    """

    on_disk: ClassVar[bool] = True

    def __init__(self, source: Source, transform: Callable[[Rows], Rows] | None = None, verify: str = "quick"):
        self.failure: Exception | None = None
        self.verify = check.choice("verify", verify, VERIFY)
        self._source = source
        self._transform = (lambda rows: rows) if transform is None else check.function("transform", transform)
        self._stamp, self._look_again = source.stamp(), 0.0
        self.name = source.name
        self.n = source.n
        self.prepared = source.prepared
        self.categories: dict[str, list[Any]] = dict(getattr(source, "categories", {}))
        raw, pair = source.read(0, 1), source.read(0, min(2, self.n))
        self.bytes_per_row = sum(leaf.nbytes for leaf in jax.tree.leaves(raw))
        alone, together = self._datum(raw, 1), self._datum(pair, min(2, self.n))
        for one, two in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            if not np.allclose(one, two[:1], equal_nan=True):
                raise ValueError(f"transform must treat each row on its own, got {two[0]} or {one[0]} for row 0")
        self.example = self._checked(alone, int)
        self.bytes_per_row = max(self.bytes_per_row, sum(leaf.nbytes for leaf in jax.tree.leaves(self.example)))
        self._same_layout = transform is None and _layout(raw) == _layout(self.example)
        self._as_it_is = source.checked and self._same_layout

    def __repr__(self) -> str:
        order = "in random order" if self.prepared else "not prepared"
        where = check.shown(str(self.name))
        return f"{type(self).__name__}({where}, {self.n:,} rows of {row_form(self.example)}, {order})"

    @property
    def numbers_per_row(self) -> int:
        """How many numbers one observation is made of."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.example))

    def read(self, first: int, last: int) -> Rows:
        """Rows ``first`` to ``last - 1``."""
        first = check.integer("first", first, 0, self.n - 1, "n - 1")
        last = check.integer("last", last, first + 1, self.n, "n")
        return self._rows(lambda: self._source.read(first, last), last - first, lambda i: first + i)

    @cached_property
    def mapped(self) -> Rows | None:
        """Rows that were shuffled on disk, as arrays that lie in the file; None where programs cannot read them there.

        A copied file was not checked: that takes a pass over it.
        """
        arrays = self._source.mapped() if self.prepared and self._same_layout and self.n < 2**31 else None
        if arrays is None or jax.default_backend() != "cpu":
            return None
        if any(leaf.ctypes.data % _ALIGNED or not leaf.flags.c_contiguous for leaf in jax.tree.leaves(arrays)):
            return None
        if not self._as_it_is:
            for _ in self.blocks(max(1, _BYTES_CHECKED // self.bytes_per_row)):
                pass
        return jax.tree.map(lambda leaf: jax.device_put(np.asarray(leaf)), arrays)

    @property
    def resident(self) -> Rows | None:
        """All rows as programs read them; None if the host must read them."""
        return self.mapped

    @property
    def by_host(self) -> bool:
        """Whether programs must ask the host for rows."""
        return self.mapped is None

    def shapes(self, *leading: int) -> Rows:
        """Rows with these leading axes, as a compiled program is told of them."""
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((*leading, *leaf.shape[1:]), leaf.dtype), self.example)

    def within(self, read: Callable[..., Rows], shapes: Any, *where: Any) -> Any:
        """``read(*where)``, of the given shapes, within a compiled program.

        An error must not leave a compiled program: the rows are then zero, and ``check_reads`` raises it.
        """

        def on_host(*where: Any) -> Rows:
            try:
                return read(*where)
            except Exception as error:
                self.failure = self.failure or error
                return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)

        return jax.pure_callback(on_host, shapes, *where)

    def check_reads(self, surely: bool = False) -> None:
        """Raise the first error of a read within a compiled program: what it computed is worth nothing.

        ``surely`` looks at the file even if that was done a moment ago: nothing is read after that.
        """
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        if surely:
            self._look_again = 0.0
        if "mapped" in vars(self) or surely:
            self._check_unchanged()
        if "mapped" in vars(self):
            self._source.give_back()

    def take(self, indices: Any) -> Rows:
        """The rows of the given numbers, in the order given."""
        indices = np.asarray(indices)
        if indices.ndim != 1 or indices.size == 0 or indices.dtype.kind not in "iu":
            raise ValueError(f"indices must be a list of row numbers, got {indices!r}")
        if indices.min() < 0 or indices.max() >= self.n:
            raise ValueError(f"indices must be in [0, n={self.n}), got {indices.min()} to {indices.max()}")
        indices = indices.astype(np.int64)
        order = np.argsort(indices)
        ascending = indices[order]
        rows = self._rows(lambda: self._source.take(ascending), len(ascending), lambda i: ascending[i])
        back = np.argsort(order)
        return jax.tree.map(lambda leaf: leaf[back], rows)

    def batches(self, rng: np.random.Generator, size: int, count: int) -> Rows:
        """``count`` batches of ``size`` different rows, (count, size, ...), each drawn by itself."""
        size = check.integer("size", size, 1, self.n, "n")
        rows = self.take(np.concatenate([distinct(rng, self.n, size) for _ in range(count)]))
        return jax.tree.map(lambda leaf: leaf.reshape(count, size, *leaf.shape[1:]), rows)

    def blocks(self, size: int) -> Iterator[Rows]:
        """All rows in their order, ``size`` at a time; the last block may be shorter."""
        size = check.integer("size", size, 1)
        for first in range(0, self.n, size):
            yield self.read(first, min(first + size, self.n))

    def fingerprint(self) -> str:
        """A hash of shape, types, content (see ``mintmc.data.identity``), and of 64 rows after the transform."""
        kind, content = self._source.content(everything=self.verify == "full")
        probe = self.take(np.linspace(0, self.n - 1, min(64, self.n), dtype=np.int64))
        digest = hashlib.sha256(repr((self.n, _layout(probe), content)).encode())
        for leaf in jax.tree.leaves(probe):
            digest.update(leaf.tobytes())
        return f"{kind}-{digest.hexdigest()}"

    def _rows(self, read: Callable[[], Rows], count: int, number: Callable[[int], int]) -> Rows:
        """What is read, made into observations and checked; the file must be the same before and after."""
        self._check_unchanged()
        raw = read()
        rows = raw if self._as_it_is else self._checked(self._datum(raw, count), number)
        self._check_unchanged()
        return rows

    def _check_unchanged(self) -> None:
        # Reading a memory map beyond the end of its file kills the process, and Zarr gives zeros for lost chunks.
        begun = time.monotonic()
        if begun < self._look_again:
            return
        stamp = self._source.stamp()
        if stamp.size < self._stamp.size:
            got = f"{stamp.size} bytes where {self._stamp.size} were"
            raise OSError(f"{self.name} must not shrink while it is open, got {got}")
        if stamp != self._stamp:
            raise OSError(f"{self.name} must not change while it is open, got {stamp} where {self._stamp} was")
        # A store of many files takes time to look at: at most one part in a hundred.
        now = time.monotonic()
        self._look_again = now + 100 * (now - begun)

    def _datum(self, raw: Rows, count: int) -> Rows:
        rows = self._transform(raw)
        for name, leaf in named_leaves(rows):
            check_unmasked(f"data{name}", leaf)
        rows = jax.tree.map(np.asarray, rows)
        leaves = named_leaves(rows)
        if not leaves:
            raise ValueError(f"transform must return at least one array, got {rows!r}")
        for name, leaf in leaves:
            check_numbers(f"data{name}", leaf.dtype, self.name)
            if leaf.shape[:1] != (count,):
                raise ValueError(
                    f"transform must keep the leading axis: {count} rows in data{name}, got shape {leaf.shape}"
                )
        return rows

    def _checked(self, rows: Rows, number: Callable[[int], int]) -> Rows:
        """Rows as JAX will have them, all values finite and within its range; ``number`` is that of the i-th."""
        kept = jax.tree.map(lambda leaf: native(leaf.astype(leaf.dtype.newbyteorder("="), copy=False)), rows)
        for (name, given), leaf in zip(named_leaves(rows), jax.tree.leaves(kept), strict=True):
            check_kept(f"data{name}", given, leaf, number, f" of {self.name}")
        if hasattr(self, "example") and _layout(kept) != _layout(self.example):
            raise ValueError(f"transform must return {_layout(self.example)} for all rows, got {_layout(kept)}")
        return kept


def _layout(rows: Rows) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(name, str(leaf.dtype), leaf.shape[1:]) for name, leaf in named_leaves(rows)]


def distinct(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """``size`` different numbers below n in random order, in memory that depends on ``size`` alone."""
    if 2 * size > n:
        return rng.permutation(n)[:size]
    drawn = rng.integers(n, size=size)
    while True:
        _, places = np.unique(drawn, return_index=True)
        drawn = drawn[np.sort(places)]
        if len(drawn) >= size:
            return drawn[:size]
        drawn = np.concatenate([drawn, rng.integers(n, size=size)])
