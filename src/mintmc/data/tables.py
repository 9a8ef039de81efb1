"""Tables in Parquet and Arrow files, read by groups of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mintmc.data.array import Rows
from mintmc.data.identity import Stamp, content, stamp
from mintmc.data.source import Source, check_count, joined, must_be, select


class _Table(Source):
    """Columns of a file that is read a group of rows at a time; the last group read is kept. Some may be empty."""

    prepared = checked = False

    def __init__(self, path: Path, columns: list[str], counts: list[int], load: Callable[[int], Any]):
        filled = [group for group, count in enumerate(counts) if count]
        self.name, self.path, self.columns = str(path), path, columns
        self.load: Callable[[int], Any] = lambda i: load(filled[i])
        self.firsts = np.cumsum([0, *(counts[group] for group in filled)])
        self.n = check_count(int(self.firsts[-1]), self.name)
        self.kept: tuple[int, Any] = (-1, None)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.shapes = {column: array.shape[1:] for column, array in self.read(0, 1).items()}

    def stamp(self) -> Stamp:
        return stamp([self.path])

    def content(self, everything: bool) -> tuple[str, str]:
        return content([self.path], everything)

    def read(self, first: int, last: int) -> Rows:
        groups = range(self._group_of(first), self._group_of(last - 1) + 1)
        bounds = [(max(first, self.firsts[group]), min(last, self.firsts[group + 1])) for group in groups]
        return joined([self._rows(group, range(*bound)) for group, bound in zip(groups, bounds, strict=True)])

    def take(self, indices: np.ndarray) -> Rows:
        groups = self._group_of(indices)
        cuts = np.flatnonzero(np.diff(groups)) + 1
        return joined([self._rows(groups[a], indices[a:b]) for a, b in pairwise([0, *cuts, len(indices)])])

    def mapped(self) -> None:
        return None

    def give_back(self) -> None:
        pass

    def _group_of(self, row: Any) -> Any:
        return np.searchsorted(self.firsts, row, side="right") - 1

    def _rows(self, group: int, numbers: range | np.ndarray) -> dict[str, np.ndarray]:
        kept: Any = self.kept  # another thread may replace it meanwhile
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
                result: np.ndarray = array.to_numpy(zero_copy_only=False).reshape(shape)
                return result
            lengths = np.asarray(array.value_lengths())
            width = self.shapes[column][len(shape) - 1] if self.shapes else lengths[0]
            if (lengths != width).any():
                got = f"{width} in row 0 and another in {row(lengths != width)}"
                raise ValueError(f"data[{column!r}] must have rows of the same length, got {got}")
            array = array.flatten()
            shape.append(width)


def parquet_source(path: Path, columns: Sequence[str] | None) -> Source:
    """A Parquet file."""
    parquet = _pyarrow().parquet
    with must_be(path, "a Parquet file"), parquet.ParquetFile(path) as file:
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

    with must_be(path, "an Arrow IPC file"):
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


def _select_numeric(columns: Sequence[str] | None, schema: Any, path: Path) -> list[str]:
    types = _pyarrow().types
    if len(set(schema.names)) < len(schema.names):
        raise ValueError(f"columns must have different names, got {schema.names} in {path}")
    names = select(columns, schema.names, path)
    for name in names:
        kind = schema.field(name).type
        while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            kind = kind.value_type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise TypeError(f"data[{name!r}] must be a column of numbers, got {schema.field(name).type} in {path}")
    return names
