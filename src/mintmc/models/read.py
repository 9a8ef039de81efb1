"""A table of any kind as a frame of pandas that a formula can be computed on.

Tables of pandas, Polars and pyarrow, dicts of arrays, and Parquet, Arrow and CSV files all give the same frame: numbers
as they are, words and categories as categoricals (``mintmc.data.coded`` says in which order). Only the columns that are
asked for are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mintmc import check
from mintmc.data.formats import find
from mintmc.data.frames import columns_of, is_table, names_of
from mintmc.data.tables import names_in

FILES = (".parquet", ".csv", ".arrow", ".feather")
_WANTED = f"a table of pandas, Polars or pyarrow, a dict of arrays, or the path of a {', '.join(FILES)} file"


@dataclass(frozen=True)
class Table:
    """The names of a table's columns, and a way to read some of them: arrays, and categories of those of words."""

    names: list[str]
    read: Callable[[Sequence[str]], tuple[Mapping[str, np.ndarray], Mapping[str, list[Any]]]]

    @classmethod
    def of(cls, table: Any, argument: str = "table") -> Table:
        """From what a user has."""
        if is_table(table):
            if type(table).__name__ == "LazyFrame":
                raise TypeError(f"{argument} must be a table in memory, got a LazyFrame: call its collect()")
            return cls([str(name) for name in names_of(table)], partial(columns_of, table, argument=argument))
        if isinstance(table, Mapping):
            return cls([str(name) for name in table], partial(_of_dict, table, argument))
        if not isinstance(table, (str, os.PathLike)):
            raise TypeError(f"{argument} must be {_WANTED}, got {check.shown(table)}")
        path = check.path(argument, table)
        if path.suffix.lower() not in FILES:
            raise ValueError(f"{argument} must be {_WANTED}, got {check.shown(str(path))}")
        if not path.is_file():
            raise FileNotFoundError(f"{argument} must be an existing file, got {check.shown(str(path))}")
        return cls(names_in(path), partial(_of_file, path, argument))

    def frame(self, columns: Sequence[str], argument: str = "table") -> Any:
        """Some columns as a frame of pandas, without missing values."""
        import pandas

        arrays, categories = self.read(columns)
        for name, array in arrays.items():
            _check_column(f"{argument}[{name!r}]", array)
        return pandas.DataFrame(
            {
                name: _categorical(array, categories[name]) if name in categories else array
                for name, array in arrays.items()
            }
        )


def _of_file(path: Any, argument: str, columns: Sequence[str]) -> tuple[Any, Any]:
    source = find(path, columns, argument)
    return source.read(0, source.n), getattr(source, "categories", {})


def _of_dict(table: Mapping[str, Any], argument: str, columns: Sequence[str]) -> tuple[Any, Any]:
    import pandas

    series = {}
    for name in columns:
        value = table[name]
        is_pandas = type(value).__module__.partition(".")[0] == "pandas"
        try:
            series[name] = pandas.Series(value if is_pandas else np.asarray(value)).reset_index(drop=True)
        except Exception:  # not one value a row, or an object with ideas of its own
            raise TypeError(
                f"{argument}[{name!r}] must be an array of one value a row, got {check.shown(value)}"
            ) from None
    lengths = {name: len(one) for name, one in series.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{argument} must have columns of one length, got {lengths}")
    return columns_of(pandas.DataFrame(series), argument=argument)


def _check_column(name: str, array: np.ndarray) -> None:
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        got = f"dtype {array.dtype} and shape {array.shape}"
        raise TypeError(f"{name} must be a column of one real number, truth value or word a row, got {got}")
    good = np.isfinite(array)
    if not good.all():
        value = array[np.argmin(good)]
        wanted = "not have missing values" if np.isnan(value) else "be finite"
        raise ValueError(f"{name} must {wanted}, got {value} in row {np.argmin(good)} ({(~good).sum()} such values)")


def _categorical(codes: np.ndarray, categories: Sequence[Any]) -> Any:
    """Without categories that no row has: their columns would be 0 in all rows."""
    import pandas

    return pandas.Categorical.from_codes(codes, categories).remove_unused_categories()
