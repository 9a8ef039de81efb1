"""What a user gives as data, and where it will live: what is on disk already stays there."""

from __future__ import annotations

import os

import numpy as np

from mintmc.data.array import ArrayData
from mintmc.data.columns import Rows
from mintmc.data.disk import DiskData
from mintmc.data.formats import find
from mintmc.data.frames import columns_of, is_table
from mintmc.data.source import Source


def data_of(data: Rows) -> ArrayData | DiskData:
    """In memory, or on disk: a path, a memory map, a Zarr array, a source of one's own."""
    if isinstance(data, (ArrayData, DiskData)):
        return data
    is_file = isinstance(data, (str, os.PathLike, np.memmap)) or type(data).__module__.startswith("zarr.")
    if is_file or (isinstance(data, Source) and not isinstance(data, type)):
        return DiskData(find(data, None, "data"))
    return ArrayData(*columns_of(data)) if is_table(data) else ArrayData(data)
