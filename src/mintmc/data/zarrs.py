"""What is asked of Zarr arrays before they are read, and of their files while they are open."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mintmc.data import identity
from mintmc.data.identity import Stamp

_BYTES_PER_CHUNK = 2**29
_CHUNKS = 2**24


def check_chunks(name: str, array: Any) -> None:
    """Refuse an array of which a part is missing, which would read as the fill value, or whose chunks are too large."""
    where = f"in {array.store_path}"
    size = math.prod(array.chunks) * array.dtype.itemsize
    if size > _BYTES_PER_CHUNK:
        # A few bytes on disk can claim to be any number of them; one chunk is the least that can be read.
        raise ValueError(f"{name} must have chunks of at most {_BYTES_PER_CHUNK:,} bytes, got {size:,} {where}")
    stored_together = array.shards or array.chunks
    count = math.prod(-(-a // b) for a, b in zip(array.shape, stored_together, strict=True))
    if count > _CHUNKS:
        raise ValueError(f"{name} must have at most {_CHUNKS:,} chunks, got {count:,} {where}")
    found = array.nchunks_initialized // (math.prod(stored_together) // math.prod(array.chunks))
    if found < count:
        raise ValueError(
            f"{name} must have all its {count} chunks (write those of fill values too, with the option "
            f"write_empty_chunks), got {found} {where}"
        )


def stamp(arrays: Sequence[Any]) -> Stamp:
    """What changes when one of the arrays does."""
    files = _files(arrays)
    return identity.stamp(files) if files else Stamp(sum(array.nbytes_stored() for array in arrays), 0)


def content(arrays: Sequence[Any], everything: bool) -> tuple[str, str]:
    """A hash of the files, or of the values if there are none."""
    files = _files(arrays)
    if files:
        return identity.content(files, everything)
    digest = hashlib.sha256()
    for array in arrays:
        for first in range(0, array.shape[0], array.chunks[0]):
            digest.update(np.ascontiguousarray(array[first : first + array.chunks[0]]).data)
    return "full", digest.hexdigest()


def _files(arrays: Sequence[Any]) -> list[Path]:
    """The files of arrays in a local store."""
    return [
        file
        for array in arrays
        if (root := getattr(array.store, "root", None)) is not None
        for file in sorted((Path(root) / array.path).rglob("*"))
        if file.is_file()
    ]
