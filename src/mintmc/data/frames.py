"""Tables in memory, of pandas, Polars or pyarrow: a dict of their columns, and what codes of words stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mintmc import check
from mintmc.data.source import select
from mintmc.data.tables import Table, in_memory, pyarrow_for


def is_table(data: Any) -> bool:
    """Whether this is a table of one of the packages that we know."""
    kind = type(data)
    return (kind.__module__.partition(".")[0], kind.__name__) in _TABLES


def names_of(table: Any) -> list[Any]:
    """The names of its columns."""
    return list(table.schema.names if _package(table) == "pyarrow" else table.columns)


def columns_of(
    table: Any, columns: Sequence[str] | None = None, argument: str = "data"
) -> tuple[dict[str, np.ndarray], dict[str, list[Any]]]:
    """Columns as arrays, those of words as codes, and the categories of the latter."""
    what = f"the table {argument}"
    if type(table).__name__ == "LazyFrame":
        raise TypeError(f"{argument} must be a table in memory, got a LazyFrame: call its collect()")
    names = names_of(table)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{argument} must have columns with names, words, got {check.shown(name)}")
    if len(set(names)) < len(names):
        raise ValueError(f"{argument} must have columns of different names, got {check.shown(names)}")
    wanted = select(columns, names, what)
    if len(table) == 0:
        raise ValueError(f"{argument} must have at least one row, got none in columns {check.shown(names)}")
    if _package(table) == "pandas":
        found = {name: _of_pandas(f"{argument}[{name!r}]", table[name]) for name in wanted}
        categories = {name: listed for name, (_, listed) in found.items() if listed is not None}
        return {name: array for name, (array, _) in found.items()}, categories
    pyarrow = pyarrow_for("tables of Polars and Arrow")
    part = table.select(wanted)
    arrow = part.to_arrow() if _package(table) == "polars" else part
    if isinstance(arrow, pyarrow.RecordBatch):
        arrow = pyarrow.Table.from_batches([arrow])
    source = Table(what, None, *in_memory(arrow, what))
    return source.read(0, source.n), source.categories


_TABLES = {
    ("pandas", "DataFrame"),
    ("polars", "DataFrame"),
    ("polars", "LazyFrame"),
    ("pyarrow", "Table"),
    ("pyarrow", "RecordBatch"),
}


def _package(table: Any) -> str:
    return type(table).__module__.partition(".")[0]


def _of_pandas(name: str, series: Any) -> tuple[np.ndarray, list[Any] | None]:
    """One column of pandas, and its categories if it has any."""
    import pandas

    kind = series.dtype
    is_number = pandas.api.types.is_numeric_dtype(kind)  # truth values too
    is_float = is_number and isinstance(kind, np.dtype)  # its NaN is told of where all that is not finite is
    missing = np.asarray(series.isna())
    if missing.any() and not is_float:
        count = int(missing.sum())
        raise ValueError(f"{name} must not have nulls, got one in row {missing.argmax()} ({count} such values)")
    if is_number:
        return series.to_numpy(dtype=getattr(kind, "numpy_dtype", None)), None
    if isinstance(kind, pandas.CategoricalDtype):
        return series.cat.codes.to_numpy(np.int32), kind.categories.tolist()
    content = pandas.api.types.infer_dtype(series, skipna=False)
    if content == "boolean":
        return series.to_numpy(dtype=bool), None
    if content != "string":
        got = f"dtype {kind}" if content == str(kind) else f"dtype {kind}, {content}"
        raise TypeError(f"{name} must be a column of numbers or of words, got {got}")
    codes, words = pandas.factorize(series, sort=True)
    return codes.astype(np.int32), list(words)
