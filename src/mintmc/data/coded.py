"""Columns of words as whole numbers: every category has a code, its place in the list of all categories.

Categories that have an order of their own (ordered dictionaries of Arrow, which ordered Categoricals of pandas and
Enums of Polars become) keep it; all others are sorted, so that the same words get the same codes from any kind of table
or file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

MOST_CATEGORIES = 2**20
"""A column of more different words is text, and no category."""


def is_coded(kind: Any) -> bool:
    """Whether a column of this Arrow type is one of categories."""
    from pyarrow import types

    return (types.is_dictionary(kind) and _is_category(kind.value_type)) or _is_words(kind)


def categories(name: str, kind: Any, parts: Iterable[Any], where: Any) -> list[Any]:
    """The categories of a column that comes in parts, each an Arrow array of chunks."""
    has_order, order, values = getattr(kind, "ordered", False), None, set()
    for part in parts:
        if has_order:
            for chunk in part.chunks:
                listed = chunk.dictionary.to_pylist()
                order, has_order = listed, has_order and order in (None, listed)
        values.update(words(part).unique().drop_null().to_pylist())
        if len(values) > MOST_CATEGORIES:
            wanted = f"a column of numbers, or of at most {MOST_CATEGORIES} categories"
            raise ValueError(f"{name} must be {wanted}, got {len(values)} or more different words in {where}")
    return order if has_order and order is not None else sorted(values)


def codes(array: Any, known: list[Any]) -> np.ndarray:
    """The codes of an Arrow array without nulls."""
    import pyarrow
    from pyarrow import compute

    plain = words(array)
    found = compute.index_in(plain, value_set=pyarrow.array(known, plain.type))
    result: np.ndarray = found.to_numpy(zero_copy_only=False).astype(np.int32)
    return result


def words(array: Any) -> Any:
    """Without a dictionary, and in a type that all functions of Arrow know."""
    import pyarrow
    from pyarrow import types

    if isinstance(array, pyarrow.ChunkedArray):
        return pyarrow.chunked_array([words(chunk) for chunk in array.chunks], words(array[:0].combine_chunks()).type)
    if types.is_dictionary(array.type):
        # Not every type can be cast from a dictionary.
        return words(array.dictionary).take(array.indices)
    return array.cast(pyarrow.large_string()) if _is_words(array.type) else array


def takeable(table: Any) -> Any:
    """A table of Arrow, rows of which can be taken: not all types of words can."""
    import pyarrow

    for i, field in enumerate(table.schema):
        if pyarrow.types.is_string_view(field.type):
            table = table.set_column(i, field.name, table[i].cast(pyarrow.large_string()))
    return table


def _is_category(kind: Any) -> bool:
    from pyarrow import types

    return bool(_is_words(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_words(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
