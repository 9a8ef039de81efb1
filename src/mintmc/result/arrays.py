"""Arrays (chain, draw, obs, ...) of what is computed from draws: in memory, or in a Zarr store that xarray opens.

On disk they are written a stripe of rows at a time, all draws of it in one chunk: whoever compares the draws of a row
(LOO does) reads it once. The store is made under another name, and gets its own when all of it is there.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc import check

if TYPE_CHECKING:
    import xarray

_BYTES_PER_STRIPE = 2**24

Fill = Callable[[Mapping[str, np.ndarray], int, int], None]
"""Given arrays (chain, draw, last - first, ...) by name, and first and last: fills them with these rows."""


@dataclass(frozen=True)
class Layout:
    """What the arrays of a group look like."""

    group: str
    shapes: Mapping[str, Any]  # by name, with dtype
    coords: Mapping[str, np.ndarray]  # of chain, draw and obs
    attributes: Mapping[str, Any]

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.coords["obs"])

    @property
    def stripe(self) -> int:
        """How many rows are written together."""
        size = sum(int(np.prod(like.shape)) * like.dtype.itemsize for like in self.shapes.values())
        return int(max(1, min(self.n, _BYTES_PER_STRIPE * self.n // max(size, 1))))

    def dims(self, name: str) -> tuple[str, ...]:
        """The names of the axes of an array."""
        return ("chain", "draw", "obs", *(f"{name}_dim_{axis}" for axis in range(len(self.shapes[name].shape) - 3)))

    def empty(self, rows: int) -> dict[str, np.ndarray]:
        """Arrays for so many rows."""
        return {
            name: np.empty((*like.shape[:2], rows, *like.shape[3:]), like.dtype) for name, like in self.shapes.items()
        }


def filled(layout: Layout, fill: Fill, out: Path | None) -> xarray.Dataset:
    """The dataset that ``fill`` makes; at ``out`` it is read as it is used."""
    import xarray

    if out is None:
        arrays = layout.empty(layout.n)
        fill(arrays, 0, layout.n)
        variables = {name: (layout.dims(name), array) for name, array in arrays.items()}
        return xarray.Dataset(variables, dict(layout.coords), dict(layout.attributes))
    partial = out.with_name(f"{out.name}.{uuid.uuid4().hex}.partial")
    try:
        _write(layout, fill, partial)
        os.rename(partial, out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return xarray.open_dataset(out, group=layout.group, engine="zarr", consolidated=False, chunks=None)


def new_store(out: Any) -> Path | None:
    """Where arrays are to be written; refuses what is there already."""
    if out is None:
        return None
    place = check.folder("out", out)
    if os.path.lexists(place):
        raise ValueError(f"out must be a path where nothing is yet, got {place}")
    return place


def _write(layout: Layout, fill: Fill, path: Path) -> None:
    import zarr

    path.parent.mkdir(parents=True, exist_ok=True)
    group = zarr.create_group(path).create_group(layout.group, attributes=dict(layout.attributes))
    for name, values in layout.coords.items():
        group.create_array(name, data=values, dimension_names=(name,))
    arrays = {
        name: group.create_array(
            name,
            shape=like.shape,
            dtype=like.dtype,
            chunks=(*like.shape[:2], layout.stripe, *like.shape[3:]),
            dimension_names=layout.dims(name),
        )
        for name, like in layout.shapes.items()
    }
    for first in range(0, layout.n, layout.stripe):
        last = min(first + layout.stripe, layout.n)
        part = layout.empty(last - first)
        fill(part, first, last)
        for name, array in arrays.items():
            array[:, :, first:last] = part[name]
