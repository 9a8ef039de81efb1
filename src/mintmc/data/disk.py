"""Observations that stay in a file and are read in pieces.

A *window* is a piece small enough for memory from which batches are cut for a while. If the rows were shuffled on disk
(``mintmc.data.prepare``), any run of them is a uniform random subset over the choice of shuffle, so a window is one
contiguous read. If not, its rows are drawn one by one from the whole file: right as well, but slow where a row cannot
be read without its neighbours (Parquet, Arrow, Zarr).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mintmc import check
from mintmc.data.array import Rows, check_kept, named_leaves, native
from mintmc.data.formats import find, npy_source, zarr_source
from mintmc.data.source import Source, check_numbers, joined
from mintmc.data.tables import arrow_source, parquet_source


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
    bytes_per_row
        What one row takes in memory, before or after the transform, whichever is more.
    failure
        The first error in a read that a compiled program asked for.
    in_pass
        The same rows as a full pass reads them.
    """

    def __init__(self, source: Source, transform: Callable[[Rows], Rows] | None = None):
        self.failure: Exception | None = None
        self.in_pass = self
        self._source = source
        self._transform = (lambda rows: rows) if transform is None else check.function("transform", transform)
        self._stored = source.stored()
        self.name = source.name
        self.n = source.n
        self.prepared = source.prepared
        raw, pair = source.read(0, 1), source.read(0, min(2, self.n))
        self.bytes_per_row = sum(leaf.nbytes for leaf in jax.tree.leaves(raw))
        alone, together = self._datum(raw, 1), self._datum(pair, min(2, self.n))
        for one, two in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            if not np.allclose(one, two[:1], equal_nan=True):
                raise ValueError(f"transform must treat each row on its own, got {two[0]} or {one[0]} for row 0")
        self.example = self._checked(alone, range(1))
        self.bytes_per_row = max(self.bytes_per_row, sum(leaf.nbytes for leaf in jax.tree.leaves(self.example)))

    @property
    def numbers_per_row(self) -> int:
        """How many numbers one observation is made of."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.example))

    def read(self, first: int, last: int) -> Rows:
        """Rows ``first`` to ``last - 1``."""
        first = check.integer("first", first, 0, self.n - 1, "n - 1")
        last = check.integer("last", last, first + 1, self.n, "n")
        self._check_size()
        return self._checked(self._datum(self._source.read(first, last), last - first), range(first, last))

    def read_around(self, first: int, size: int) -> Rows:
        """``size`` rows from ``first`` on; after the last comes the first."""
        beyond = first + size - self.n
        rows = self.read(first, min(first + size, self.n))
        return joined([rows, self.read(0, beyond)]) if beyond > 0 else rows

    def within(self, read: Callable[..., Rows], size: int, *where: Any) -> Rows:
        """``read(*where)``, ``size`` rows, within a compiled program.

        An error must not leave a compiled program: the rows are then zero, and ``check_reads`` raises it.
        """
        shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((size, *leaf.shape[1:]), leaf.dtype), self.example)

        def on_host(*where: Any) -> Rows:
            try:
                return read(*where)
            except Exception as error:
                self.failure = self.failure or error
                return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)

        return jax.pure_callback(on_host, shapes, *where)

    def check_reads(self) -> None:
        """Raise the first error of a read within a compiled program: what it computed is worth nothing."""
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure

    def take(self, indices: Any) -> Rows:
        """The rows of the given numbers, in the order given."""
        indices = np.asarray(indices)
        if indices.ndim != 1 or indices.size == 0 or indices.dtype.kind not in "iu":
            raise ValueError(f"indices must be a list of row numbers, got {indices!r}")
        if indices.min() < 0 or indices.max() >= self.n:
            raise ValueError(f"indices must be in [0, n={self.n}), got {indices.min()} to {indices.max()}")
        self._check_size()
        indices = indices.astype(np.int64)
        order = np.argsort(indices)
        ascending = indices[order]
        rows = self._checked(self._datum(self._source.take(ascending), len(ascending)), ascending)
        back = np.argsort(order)
        return jax.tree.map(lambda leaf: leaf[back], rows)

    def window(self, seed: int, epoch: int, size: int, wrap: int = 0) -> Rows:
        """A random ``size`` of the rows, given by (seed, epoch), the first ``wrap`` of them repeated at the end.

        Any slice of at most ``wrap`` rows that starts before row ``size`` is then a uniform random subset of the data.
        """
        size = check.integer("size", size, 1, self.n, "n")
        wrap = check.integer("wrap", wrap, 0, size, "size")
        rng = np.random.default_rng([seed, epoch])
        if self.prepared:
            rows = self.read_around(int(rng.integers(self.n)), size)
        else:
            rows = self.take(distinct(rng, self.n, size))
        return joined([rows, jax.tree.map(lambda leaf: leaf[:wrap], rows)]) if wrap else rows

    def mapped(self, function: Callable[[Rows], Rows], in_pass: Callable[[Rows], Rows]) -> DiskData:
        """The same file, with ``function`` applied to all rows that are read; in full passes, ``in_pass``."""
        transform = self._transform
        mapped = DiskData(self._source, lambda rows: function(transform(rows)))
        mapped.in_pass = DiskData(self._source, lambda rows: in_pass(transform(rows)))
        return mapped

    def blocks(self, size: int) -> Iterator[Rows]:
        """All rows in their order, ``size`` at a time; the last block may be shorter."""
        size = check.integer("size", size, 1)
        for first in range(0, self.n, size):
            yield self.read(first, min(first + size, self.n))

    def fingerprint(self) -> str:
        """A hash of what tells this file from another: shape, types, size on disk, and 64 rows spread over it."""
        probe = self.take(np.linspace(0, self.n - 1, min(64, self.n), dtype=np.int64))
        digest = hashlib.sha256(repr((self.n, _layout(probe), self._stored)).encode())
        for leaf in jax.tree.leaves(probe):
            digest.update(leaf.tobytes())
        return digest.hexdigest()

    def _check_size(self) -> None:
        # Reading a memory map beyond the end of its file kills the process, and Zarr gives zeros for lost chunks.
        stored = self._source.stored()
        if stored < self._stored:
            raise OSError(f"{self.name} must not shrink while it is open, got {stored} bytes where {self._stored} were")

    def _datum(self, raw: Rows, count: int) -> Rows:
        rows = jax.tree.map(np.asarray, self._transform(raw))
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

    def _checked(self, rows: Rows, numbers: Sequence[int] | np.ndarray) -> Rows:
        """Rows as JAX will have them, all values finite and within its range; ``numbers`` says where they lie."""
        kept = jax.tree.map(lambda leaf: native(leaf.astype(leaf.dtype.newbyteorder("="), copy=False)), rows)
        for (name, given), leaf in zip(named_leaves(rows), jax.tree.leaves(kept), strict=True):
            check_kept(f"data{name}", given, leaf, numbers, f" of {self.name}")
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


def from_npy(path: str | Path) -> DiskData:
    """Rows of a ``.npy`` file.

    Examples
    --------
    >>> import numpy as np, tempfile, mintmc.data.disk as disk
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.save(folder.name + "/x.npy", np.arange(6.0).reshape(3, 2))
    >>> disk.from_npy(folder.name + "/x.npy").read(1, 3)
    array([[2., 3.],
           [4., 5.]], dtype=float32)
    >>> folder.cleanup()
    """
    return DiskData(npy_source(Path(path), None))


def from_zarr(path: str | Path, columns: Sequence[str] | None = None) -> DiskData:
    """Rows of a Zarr array, or of the arrays of a Zarr group as a dict; ``columns`` names those to read.

    Examples
    --------
    >>> import numpy as np, tempfile, zarr, mintmc.data.disk as disk
    >>> folder = tempfile.TemporaryDirectory()
    >>> group = zarr.open_group(folder.name + "/table.zarr", mode="w")
    >>> group["x"], group["y"] = np.arange(3.0), np.ones(3)
    >>> disk.from_zarr(folder.name + "/table.zarr", columns=["x"]).read(1, 3)
    {'x': array([1., 2.], dtype=float32)}
    >>> folder.cleanup()
    """
    return DiskData(zarr_source(Path(path), columns))


def from_parquet(path: str | Path, columns: Sequence[str] | None = None) -> DiskData:
    """Rows of a Parquet file as a dict of columns; ``columns`` names those to read. Needs pyarrow.

    A column of lists of one length is an array with that many columns. One row group is held in memory at a time.

    Examples
    --------
    >>> import pyarrow, pyarrow.parquet, tempfile, mintmc.data.disk as disk
    >>> folder = tempfile.TemporaryDirectory()
    >>> pyarrow.parquet.write_table(pyarrow.table({"x": [0.0, 1.0, 2.0], "y": [1, 0, 1]}), folder.name + "/t.parquet")
    >>> disk.from_parquet(folder.name + "/t.parquet", columns=["x"]).read(1, 3)
    {'x': array([1., 2.], dtype=float32)}
    >>> folder.cleanup()
    """
    return DiskData(parquet_source(Path(path), columns))


def from_arrow(path: str | Path, columns: Sequence[str] | None = None) -> DiskData:
    """Rows of an Arrow IPC (Feather) file as a dict of columns; ``columns`` names those to read. Needs pyarrow.

    Examples
    --------
    >>> import pyarrow, pyarrow.feather, tempfile, mintmc.data.disk as disk
    >>> folder = tempfile.TemporaryDirectory()
    >>> pyarrow.feather.write_feather(pyarrow.table({"x": [0.0, 1.0, 2.0]}), folder.name + "/t.arrow")
    >>> disk.from_arrow(folder.name + "/t.arrow").read(1, 3)
    {'x': array([1., 2.], dtype=float32)}
    >>> folder.cleanup()
    """
    return DiskData(arrow_source(Path(path), columns))


def open_data(
    source: Any, columns: Sequence[str] | None = None, transform: Callable[[Rows], Rows] | None = None
) -> DiskData:
    """Open observations on disk.

    Parameters
    ----------
    source
        A path (``.npy``, ``.zarr``, ``.parquet``, ``.arrow``, ``.feather``, or a folder made by ``prepare``), a
        ``numpy.memmap``, or a Zarr array or group.
    columns
        Which columns of a table to read; None reads all.
    transform
        Rows to observations: given an array with a leading axis of any length, or a dict of them for a table, it
        returns a pytree of arrays with the same leading axis. Each row is treated on its own.

    Examples
    --------
    >>> import numpy as np, tempfile, mintmc.data.disk as disk
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.save(folder.name + "/x.npy", np.arange(6.0).reshape(3, 2))
    >>> data = disk.open_data(folder.name + "/x.npy", transform=lambda rows: {"x": rows[:, 0], "y": rows[:, 1] > 2})
    >>> data.n, data.prepared
    (3, False)
    >>> data.take([2, 0])
    {'x': array([4., 0.], dtype=float32), 'y': array([ True, False])}
    >>> folder.cleanup()
    """
    if transform is not None:
        transform = partial(check.called, "transform", check.function("transform", transform))
    return DiskData(find(source, columns), transform)
