"""Tables in Parquet, Arrow and CSV files, read by groups of rows; a CSV file is read at once.

Columns of words and of categories are read as codes (``mintmc.data.coded``); ``categories`` says what they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mintmc.data import coded
from mintmc.data.columns import Rows
from mintmc.data.identity import Stamp, content, stamp
from mintmc.data.source import Source, check_count, joined, must_be, select


class Table(Source):
    """Columns of a file that is read a group of rows at a time; the last group read is kept. Some may be empty.

    ``load`` gives a group's columns of the given names, and ``kinds`` are the types of those that are read. ``path`` is
    None for a table in memory.
    """

    prepared = checked = False

    def __init__(
        self,
        name: str,
        path: Path | None,
        kinds: Mapping[str, Any],
        counts: list[int],
        load: Callable[[int, list[str]], Any],
    ):
        filled = [group for group, count in enumerate(counts) if count]
        self.name, self.path, self.columns = name, path, list(kinds)
        self.load: Callable[[int], Any] = lambda i: coded.takeable(load(filled[i], self.columns))
        self.categories = {
            column: coded.categories(
                f"data[{column!r}]", kind, (load(group, [column])[column] for group in filled), name
            )
            for column, kind in kinds.items()
            if coded.is_coded(kind)
        }
        self.firsts = np.cumsum([0, *(counts[group] for group in filled)])
        self.n = check_count(int(self.firsts[-1]), self.name)
        self.kept: tuple[int, Any] = (-1, None)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.shapes = {column: array.shape[1:] for column, array in self.read(0, 1).items()}

    def stamp(self) -> Stamp:
        """What changes when the file does."""
        return stamp([self.path] if self.path else [])

    def content(self, everything: bool) -> tuple[str, str]:
        """A hash of the file, or of parts of it."""
        return content([self.path] if self.path else [], everything)

    def read(self, first: int, last: int) -> Rows:
        """Rows ``first`` to ``last - 1``."""
        groups = range(self._group_of(first), self._group_of(last - 1) + 1)
        bounds = [(max(first, self.firsts[group]), min(last, self.firsts[group + 1])) for group in groups]
        return joined([self._rows(group, range(*bound)) for group, bound in zip(groups, bounds, strict=True)])

    def take(self, indices: np.ndarray) -> Rows:
        """The rows of the given numbers, which ascend."""
        groups = self._group_of(indices)
        cuts = np.flatnonzero(np.diff(groups)) + 1
        return joined([self._rows(groups[a], indices[a:b]) for a, b in pairwise([0, *cuts, len(indices)])])

    def mapped(self) -> None:
        """No row lies in a file as an array."""

    def give_back(self) -> None:
        """There is nothing to let go of."""

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

        if column in self.categories:
            array = coded.words(array)
        while True:
            if array.null_count:
                where = row(array.is_null().to_numpy(zero_copy_only=False))
                raise ValueError(f"data[{column!r}] must not have nulls, got one in {where}")
            if column in self.categories:
                return coded.codes(array, self.categories[column])
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
    parquet = pyarrow_for("Parquet files").parquet
    with must_be(path, "a Parquet file"), parquet.ParquetFile(path) as file:
        schema, metadata = file.schema_arrow, file.metadata

    def load(group: int, names: list[str]) -> Any:
        with parquet.ParquetFile(path, metadata=metadata) as file:
            return file.read_row_group(group, columns=names)

    counts = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    return Table(str(path), path, kinds_of(columns, schema, path), counts, load)


def arrow_source(path: Path, columns: Sequence[str] | None) -> Source:
    """An Arrow IPC file."""
    pyarrow = pyarrow_for("Arrow files")

    def batches(fields: list[int] | None = None) -> Any:
        return pyarrow.ipc.open_file(
            pyarrow.OSFile(str(path)), options=pyarrow.ipc.IpcReadOptions(included_fields=fields)
        )

    with must_be(path, "an Arrow IPC file"):
        schema = batches().schema
    kinds = kinds_of(columns, schema, path)

    def load(group: int, names: list[str]) -> Any:
        fields = [schema.get_field_index(name) for name in names]
        return pyarrow.Table.from_batches([batches(fields).get_batch(group)])

    counting = batches([schema.get_field_index(name) for name in list(kinds)[:1]])
    counts = [counting.get_batch(i).num_rows for i in range(counting.num_record_batches)]
    return Table(str(path), path, kinds, counts, load)


def csv_source(path: Path, columns: Sequence[str] | None) -> Source:
    """A CSV file with a line of names; it is held in memory, since a row cannot be found without those before it."""
    csv = pyarrow_for("CSV files").csv
    wanted = None if columns is None else select(columns, names_in(path), path)
    # A field with nothing in it, or NA without quotes, is missing, in columns of words too.
    options = csv.ConvertOptions(include_columns=wanted, strings_can_be_null=True, quoted_strings_can_be_null=False)
    with must_be(path, "a CSV file"):
        table = csv.read_csv(path, convert_options=options)
    return Table(str(path), path, *in_memory(table, path))


def in_memory(table: Any, where: Any) -> tuple[dict[str, Any], list[int], Callable[[int, list[str]], Any]]:
    """Types, counts and how to load them, of all columns of an Arrow table."""
    return kinds_of(None, table.schema, where), [table.num_rows], lambda group, names: table.select(names)


def names_in(path: Path) -> list[str]:
    """The names of the columns of a table in a file."""
    pyarrow = pyarrow_for("tables in files")
    with must_be(path, "a table in a Parquet, Arrow or CSV file"):
        if path.suffix.lower() == ".parquet":
            return list(pyarrow.parquet.read_schema(path).names)
        if path.suffix.lower() == ".csv":
            with pyarrow.csv.open_csv(path) as reader:
                return list(reader.schema.names)
        return list(pyarrow.ipc.open_file(str(path)).schema.names)


def pyarrow_for(what: str) -> Any:
    """Arrow, which not everybody has."""
    try:
        import pyarrow.csv
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{what} need pyarrow: pip install 'mintmc[parquet]'") from None
    return pyarrow


def kinds_of(columns: Sequence[str] | None, schema: Any, where: Any) -> dict[str, Any]:
    """The types of the columns to read; refuses those that are neither numbers nor categories."""
    types = pyarrow_for("tables").types
    if len(set(schema.names)) < len(schema.names):
        raise ValueError(f"columns must have different names, got {schema.names} in {where}")
    kinds = {name: schema.field(name).type for name in select(columns, schema.names, where)}
    for name, kind in kinds.items():
        inner = kind
        while types.is_list(inner) or types.is_large_list(inner) or types.is_fixed_size_list(inner):
            inner = inner.value_type
        is_number = types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner)
        if not (is_number or coded.is_coded(kind)):
            raise TypeError(f"data[{name!r}] must be a column of numbers or of words, got {kind} in {where}")
    return kinds
