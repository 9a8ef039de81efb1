"""How a variable of the tree becomes an array of a store, to which draws are added."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

_BYTES_PER_CHUNK = 2**20
_CONFIG = {"write_empty_chunks": True}
"""A chunk of fill values is written too, or it could not be told from one that is lost."""


def created(node: Any, name: str, variable: Any) -> Any:
    """A new array like ``variable`` in a group, without draws; what a crash left in its place is overwritten."""
    from mintmc.store.chunks import COMPRESSORS

    dims, values = variable.dims, variable.values
    return node.create_array(
        name,
        shape=tuple(0 if dim == "draw" else size for dim, size in zip(dims, values.shape, strict=True)),
        chunks=_chunks(values, dims),
        dtype=values.dtype,
        compressors=COMPRESSORS,
        fill_value=_nothing(values.dtype),
        dimension_names=dims,
        attributes=plain(variable.attrs),
        config=_CONFIG,
        overwrite=True,
    )


def reopened(node: Any, name: str) -> Any:
    """An array that readers know."""
    return node[name].with_config(_CONFIG)


def put(array: Any, variable: Any, first: int) -> None:
    """Write draws from ``first`` on, or all anew if it has none."""
    dims, values = variable.dims, variable.values
    if "draw" not in dims:
        array[...] = values
        return
    along = dims.index("draw")
    last = first + values.shape[along]
    array.resize(tuple(last if axis == along else size for axis, size in enumerate(array.shape)))
    array[tuple(slice(first, last) if axis == along else slice(None) for axis in range(values.ndim))] = values


def _chunks(values: np.ndarray, dims: tuple[Any, ...]) -> tuple[int, ...]:
    """One chain a chunk, so that processes never share a file; as many draws as make a megabyte."""
    sizes = [1 if dim in ("chain", "rung") else max(size, 1) for dim, size in zip(dims, values.shape, strict=True)]
    if "draw" in dims:
        along = dims.index("draw")
        sizes[along] = 1
        per_draw = int(np.prod(sizes)) * values.dtype.itemsize
        sizes[along] = int(np.clip(_BYTES_PER_CHUNK // per_draw, 1, 2**16))
    return tuple(sizes)


def _nothing(dtype: np.dtype) -> Any:
    """What an array shows where a chunk is lost, to those who read it without us: nothing that looks like a draw."""
    if dtype.kind == "f":
        return np.nan
    if dtype.kind == "U":
        return ""
    return np.iinfo(dtype).min if dtype.kind == "i" else 0


def plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes as JSON can hold them."""
    result: dict[str, Any] = json.loads(json.dumps(attributes, default=lambda value: np.asarray(value).tolist()))
    return result
