"""Files of rows, format by format: arrays are indexed where they lie, tables are read by groups of rows."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import jax
import numpy as np

from mintmc.data.array import Rows, named_leaves

DESCRIPTION = "mintmc-data.json"
"""The file that makes a folder a prepared one."""
VERSION = 1
_STRIPE = 2**26  # bytes of a memory map that are touched before they are given back


class Source(Protocol):
    """A file as it is read: n rows, as an array or a dict of columns, neither checked nor converted."""

    name: str
    n: int
    prepared: bool

    def stored(self) -> int:
        """Its size on disk now."""
        ...

    def read(self, first: int, last: int) -> Rows:
        """Rows ``first`` to ``last - 1``."""
        ...

    def take(self, indices: np.ndarray) -> Rows:
        """The rows of the given numbers, which ascend."""
        ...


class _Arrays:
    """Arrays that are indexed where they lie: memory maps or Zarr arrays."""

    def __init__(
        self, name: str, tree: Rows, columns: Sequence[str] | None, stored: Callable[[], int], prepared: bool = False
    ):
        if isinstance(tree, dict):
            tree = {column: tree[column] for column in _select(columns, tree, name)}
        elif columns is not None:
            raise ValueError(f"columns must be None for data without named columns, got {columns!r} for {name}")
        for leaf_name, leaf in named_leaves(tree):
            check_numbers(f"data{leaf_name}", leaf.dtype, name)
            if leaf.ndim == 0:
                raise ValueError(f"data{leaf_name} must have a leading axis of observations, got a scalar in {name}")
        lengths = {f"data{leaf_name}": leaf.shape[0] for leaf_name, leaf in named_leaves(tree)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"data must have the same number of rows in all leaves, got {lengths} in {name}")
        self.name, self.tree, self.stored, self.prepared = name, tree, stored, prepared
        self.n = _check_count(next(iter(lengths.values())), name)

    def read(self, first: int, last: int) -> Rows:
        return jax.tree.map(lambda array: _copied(array, slice(first, last)), self.tree)

    def take(self, indices: np.ndarray) -> Rows:
        def gather(array: Any) -> np.ndarray:
            if not isinstance(array, np.memmap):
                return array.oindex[indices]
            # Stripe by stripe: all at once, the whole file could end up in memory.
            stripe = max(1, _STRIPE * len(array) // max(array.nbytes, 1))
            cuts = np.flatnonzero(np.diff(indices // stripe)) + 1
            return np.concatenate([_copied(array, part) for part in np.split(indices, cuts)])

        return jax.tree.map(gather, self.tree)


class _Table:
    """Columns of a file that is read a group of rows at a time; the last group read is kept."""

    prepared = False

    def __init__(self, path: Path, columns: list[str], counts: list[int], load: Callable[[int], Any]):
        self.name, self.columns, self.load = str(path), columns, load
        self.firsts = np.cumsum([0, *counts])
        self.n = _check_count(int(self.firsts[-1]), self.name)
        self.kept: tuple[int, Any] = (-1, None)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.shapes = {column: array.shape[1:] for column, array in self.read(0, 1).items()}

    def stored(self) -> int:
        return os.stat(self.name).st_size

    def read(self, first: int, last: int) -> Rows:
        groups = range(self._group_of(first), self._group_of(last - 1) + 1)
        bounds = [(max(first, self.firsts[group]), min(last, self.firsts[group + 1])) for group in groups]
        return joined([self._rows(group, range(*bound)) for group, bound in zip(groups, bounds, strict=True)])

    def take(self, indices: np.ndarray) -> Rows:
        groups = self._group_of(indices)
        cuts = np.flatnonzero(np.diff(groups)) + 1
        return joined([self._rows(groups[a], indices[a:b]) for a, b in pairwise([0, *cuts, len(indices)])])

    def _group_of(self, row: Any) -> Any:
        return np.searchsorted(self.firsts, row, side="right") - 1

    def _rows(self, group: int, numbers: range | np.ndarray) -> dict[str, np.ndarray]:
        kept = self.kept  # another thread may replace it meanwhile
        if kept[0] != group:
            kept = self.kept = (group, self.load(group))
        first = self.firsts[group]
        if isinstance(numbers, range):
            part = kept[1].slice(numbers[0] - first, len(numbers))
        else:
            part = kept[1].take(numbers - first)
        return {column: self._numbers(column, part[column].combine_chunks(), numbers) for column in self.columns}

    def _numbers(self, column: str, array: Any, numbers: range | np.ndarray) -> np.ndarray:
        """A column as an array: every level of lists is an axis."""
        shape = [len(array)]

        def row(wrong: np.ndarray) -> str:
            return f"row {numbers[int(wrong.argmax()) * shape[0] // len(wrong)]} of {self.name}"

        while True:
            if array.null_count:
                where = row(array.is_null().to_numpy(zero_copy_only=False))
                raise ValueError(f"data[{column!r}] must not have nulls, got one in {where}")
            if not hasattr(array.type, "value_type"):
                return array.to_numpy(zero_copy_only=False).reshape(shape)
            lengths = np.asarray(array.value_lengths())
            width = self.shapes[column][len(shape) - 1] if self.shapes else lengths[0]
            if (lengths != width).any():
                got = f"{width} in row 0 and another in {row(lengths != width)}"
                raise ValueError(f"data[{column!r}] must have rows of the same length, got {got}")
            array = array.flatten()
            shape.append(width)


def find(source: Any, columns: Sequence[str] | None) -> Source:
    """The source that a user means."""
    if isinstance(source, np.memmap):
        file = source.filename
        return _Arrays(str(file or "memmap"), source, columns, lambda: os.stat(file).st_size if file else 0)
    if not isinstance(source, (str, Path)):
        import zarr

        if not isinstance(source, (zarr.Array, zarr.Group)):
            raise TypeError(f"source must be a path, a numpy.memmap or a Zarr array, got {source!r}")
        return _node_source(source, columns)
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"source must be an existing file or folder, got {path}")
    if (path / DESCRIPTION).is_file():
        return _prepared(path, columns)
    openers = {
        ".npy": npy_source,
        ".zarr": zarr_source,
        ".parquet": parquet_source,
        ".arrow": arrow_source,
        ".feather": arrow_source,
    }
    if path.suffix.lower() not in openers:
        raise ValueError(f"source must end in {', '.join(openers)} or be a folder made by prepare, got {path}")
    return openers[path.suffix.lower()](path, columns)


def npy_source(path: Path, columns: Sequence[str] | None) -> Source:
    """A ``.npy`` file."""
    return _Arrays(str(path), _mapped(path), columns, lambda: os.stat(path).st_size)


def _mapped(path: Path) -> np.memmap:
    with _must_be(path, "a .npy file of numbers"):
        return np.lib.format.open_memmap(path, mode="r")


def zarr_source(path: Path, columns: Sequence[str] | None) -> Source:
    """A Zarr array or group."""
    import zarr

    with _must_be(path, "a Zarr array or group"):
        node = zarr.open(path, mode="r")
    return _node_source(node, columns)


def _node_source(node: Any, columns: Sequence[str] | None) -> Source:
    tree = dict(node.arrays()) if hasattr(node, "arrays") else node
    return _Arrays(str(node.store_path), tree, columns, lambda: sum(a.nbytes_stored() for a in jax.tree.leaves(tree)))


def _prepared(path: Path, columns: Sequence[str] | None) -> Source:
    with _must_be(path / DESCRIPTION, "a description of prepared data"):
        described = json.loads((path / DESCRIPTION).read_text())
    if described.get("version") != VERSION:
        raise ValueError(f"{path} must be prepared data of version {VERSION}, got {described.get('version')}")
    files = [path / leaf["file"] for leaf in described["leaves"]]
    arrays = [_mapped(file) for file in files]
    for leaf, array in zip(described["leaves"], arrays, strict=True):
        expected = ((described["n"], *leaf["shape"]), leaf["dtype"])
        if (array.shape, str(array.dtype)) != expected:
            raise ValueError(f"{path / leaf['file']} must hold {expected}, got {(array.shape, str(array.dtype))}")

    def tree(node: Any) -> Rows:
        if isinstance(node, int):
            return arrays[node]
        ((kind, parts),) = node.items()
        if kind == "dict":
            return {key: tree(part) for key, part in parts.items()}
        return {"list": list, "tuple": tuple}[kind](map(tree, parts))

    def stored() -> int:
        return sum(os.stat(file).st_size for file in files)

    return _Arrays(str(path), tree(described["tree"]), columns, stored, prepared=True)


def parquet_source(path: Path, columns: Sequence[str] | None) -> Source:
    """A Parquet file."""
    parquet = _pyarrow().parquet
    with _must_be(path, "a Parquet file"), parquet.ParquetFile(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
    names = _select_numeric(columns, schema, path)

    def load(group: int) -> Any:
        with parquet.ParquetFile(path, metadata=metadata) as file:
            return file.read_row_group(group, columns=names)

    return _Table(path, names, [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)], load)


def arrow_source(path: Path, columns: Sequence[str] | None) -> Source:
    """An Arrow IPC file."""
    pyarrow = _pyarrow()

    def batches(fields: list[int] | None = None) -> Any:
        return pyarrow.ipc.open_file(
            pyarrow.OSFile(str(path)), options=pyarrow.ipc.IpcReadOptions(included_fields=fields)
        )

    with _must_be(path, "an Arrow IPC file"):
        schema = batches().schema
    names = _select_numeric(columns, schema, path)
    fields = [schema.get_field_index(name) for name in names]
    counting = batches(fields[:1])
    counts = [counting.get_batch(i).num_rows for i in range(counting.num_record_batches)]
    return _Table(path, names, counts, lambda i: pyarrow.Table.from_batches([batches(fields).get_batch(i)]))


def _pyarrow() -> Any:
    try:
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Parquet and Arrow files need pyarrow: pip install 'mintmc[disk]'") from None
    return pyarrow


@contextmanager
def _must_be(path: Path, kind: str) -> Iterator[None]:
    if not path.exists():
        raise FileNotFoundError(f"source must be an existing file or folder, got {path}")
    try:
        yield
    except PermissionError:
        raise
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} must be {kind}, got an error: {error}") from error


def _select(columns: Sequence[str] | None, available: Collection[str], where: Any) -> list[str]:
    if columns is None:
        columns = list(available)
    if isinstance(columns, str) or not all(isinstance(column, str) for column in columns):
        raise TypeError(f"columns must be a list of names, got {columns!r}")
    if not columns:
        raise ValueError(f"columns must name at least one of {list(available)}, got none in {where}")
    for column in columns:
        if column not in available:
            raise ValueError(f"columns must be among {list(available)}, the columns of {where}, got {column!r}")
    return list(columns)


def _select_numeric(columns: Sequence[str] | None, schema: Any, path: Path) -> list[str]:
    types = _pyarrow().types
    if len(set(schema.names)) < len(schema.names):
        raise ValueError(f"columns must have different names, got {schema.names} in {path}")
    names = _select(columns, schema.names, path)
    for name in names:
        kind = schema.field(name).type
        while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            kind = kind.value_type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise TypeError(f"data[{name!r}] must be a column of numbers, got {schema.field(name).type} in {path}")
    return names


def check_numbers(name: str, dtype: np.dtype, where: str) -> None:
    """Refuse an array of anything but numbers."""
    if not (np.issubdtype(dtype, np.number) or np.issubdtype(dtype, np.bool)):
        raise TypeError(f"{name} must be an array of numbers, got dtype {dtype} in {where}")


def _check_count(n: int, where: str) -> int:
    if n == 0:
        raise ValueError(f"data must have at least one row, got none in {where}")
    return n


def _copied(array: Any, rows: slice | np.ndarray) -> np.ndarray:
    copy = np.array(array[rows])
    # Pages that were read stay in the process's memory until they are given back; a private map would lose changes.
    if isinstance(array, np.memmap) and array.mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
        mapped = array._mmap  # type: ignore[attr-defined]
        if mapped is not None:
            mapped.madvise(mmap.MADV_DONTNEED)
    return copy


def joined(parts: list[Rows]) -> Rows:
    """Rows of several pieces in one."""
    return parts[0] if len(parts) == 1 else jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
