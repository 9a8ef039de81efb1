"""Zarr's store on the local disk, with three promises.

What was written is on the disk, not on its way there. What is read is what was written: every chunk ends in the CRC32C
of its bytes, and is checked before anything is unpacked. And a chunk that should be there and is not is an error: to
Zarr it would be one of fill values.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import google_crc32c
import numpy as np
from zarr.abc.buffer import Buffer
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore

from mintmc.store.durable import read, sync, write

_LEVEL = 1
"""Of Zstandard: draws become as small as with its default, in two fifths of the time."""
COMPRESSORS = (ZstdCodec(level=_LEVEL), Crc32cCodec())
"""Of every array; the checksum comes last, so that it covers every bit of the file."""
_KEYS = {"name": "default", "configuration": {"separator": "/"}}
MOST_BYTES = 2**28
"""That a chunk may unpack to."""


class Grid(NamedTuple):
    """How an array is cut into chunks."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    itemsize: int

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Grid:
        """That of an array like ours; refuses any other, and chunks that would unpack to more than a run writes."""
        shape, kind = tuple(metadata["shape"]), _kind(metadata["data_type"])
        chunks = tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"])
        is_encoded_so = any(list(metadata["codecs"]) == _codecs(kind.itemsize, level) for level in (_LEVEL, 0))
        if not is_encoded_so or metadata["chunk_key_encoding"] != _KEYS:
            raise ValueError("it is not encoded as mintmc does")
        if kind.kind not in "biufU" or len(shape) != len(chunks):
            raise ValueError("it is no array of numbers or words")
        if not all(type(size) is int and size >= 0 for size in shape + chunks) or 0 in chunks:
            raise ValueError(f"it has the shape {shape} in chunks of {chunks}")
        if math.prod(chunks) * kind.itemsize > MOST_BYTES:
            raise ValueError(f"its chunks of {chunks} are larger than {MOST_BYTES} bytes")
        return cls(shape, chunks, kind.itemsize)

    def names(self) -> Iterator[str]:
        """The names of all its chunks."""
        counts = (range(-(-size // chunk)) for size, chunk in zip(self.shape, self.chunks, strict=True))
        return ("/".join(["c", *map(str, place)]) for place in product(*counts))

    def holds(self, place: list[str]) -> bool:
        """Whether the chunk at this place holds a part of the array."""
        return len(place) == len(self.shape) and all(
            int(at) * chunk < size for at, chunk, size in zip(place, self.chunks, self.shape, strict=True)
        )


class Chunks(LocalStore):
    """A local store that knows which chunks there must be, and which folders were changed since they were made safe.

    Parameters
    ----------
    root
        Of the store, a directory.
    read_only
        As in Zarr.
    grids
        Of the arrays that readers know, by their paths.
    document
        What a reader is to find in the root's ``zarr.json``; None reads the file.
    """

    def __init__(
        self,
        root: Path | str,
        *,
        read_only: bool = False,
        grids: dict[str, Grid] | None = None,
        document: bytes | None = None,
    ):
        super().__init__(root, read_only=read_only)
        self.grids, self.document = {} if grids is None else grids, document
        self.unsafe: set[Path] = set()

    def with_read_only(self, read_only: bool = False) -> Chunks:
        """The same, to be written to or not."""
        return type(self)(self.root, read_only=read_only, grids=self.grids, document=self.document)

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Buffer | None:
        """Read a chunk, or the metadata of an array."""
        prototype = default_buffer_prototype() if prototype is None else prototype
        if key == "zarr.json" and self.document is not None:
            document: Buffer = prototype.buffer.from_bytes(self.document)
            return document
        array, at, place = key.rpartition("/c")
        if not at or array not in self.grids:
            return await super().get(key, prototype, byte_range)
        grid, whole = self.grids[array], await asyncio.to_thread(self._read, key)
        if grid.holds(place.split("/")[1:]):
            check_chunk(self.root / key, whole, grid)
        # What lies behind the end that readers know was left by a run that was stopped: it is of use if it is whole.
        elif _fault(whole, grid) is not None:
            return None
        chunk: Buffer = prototype.buffer.from_bytes(whole)
        return chunk

    def verify(self) -> None:
        """Refuse a store of which a chunk is missing or damaged."""
        for array, grid in self.grids.items():
            for key in grid.names():
                check_chunk(self.root / array / key, self._read(f"{array}/{key}"), grid)

    async def set(self, key: str, value: Buffer) -> None:
        """Write a chunk, or the metadata of an array."""
        await asyncio.to_thread(self._write, key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """The same where nothing is; the root is there, or the run's folder is gone."""
        if key != "zarr.json" and not (self.root / key).exists():
            await self.set(key, value)

    def make_safe(self) -> None:
        """Wait until the folders list all that was written to them."""
        for folder in sorted(self.unsafe):
            sync(folder)
        self.unsafe.clear()

    def _read(self, key: str) -> bytes:
        try:
            return read(self.root / key, 2 * MOST_BYTES)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise ValueError(f"{self.root / key} is damaged: it cannot be read ({error.strerror})") from error

    def _write(self, key: str, value: Buffer) -> None:
        path = self.root / key
        inner = path.relative_to(self.root).parents
        for folder in reversed(inner[:-1]):  # never the root itself: a folder that is gone stays gone
            (self.root / folder).mkdir(exist_ok=True)
        write(path, lambda file: file.write(value.as_buffer_like()))
        self.unsafe |= {self.root / folder for folder in inner}


def _kind(data_type: Any) -> np.dtype:
    """The type of an array's elements; words along an axis all have one length."""
    if isinstance(data_type, dict):
        if data_type["name"] != "fixed_length_utf32":
            raise ValueError(f"it is of {data_type['name']}")
        return np.dtype(f"U{int(data_type['configuration']['length_bytes']) // 4}")
    kind: np.dtype = np.dtype(data_type)
    return kind


def _codecs(itemsize: int, level: int) -> list[Any]:
    """How Zarr writes down that an array is encoded as ours are."""
    # What takes one byte has no order of bytes.
    order = {} if itemsize == 1 else {"configuration": {"endian": "little"}}
    packed = {"name": "zstd", "configuration": {"level": level, "checksum": False}}
    return [{"name": "bytes", **order}, packed, {"name": "crc32c"}]


def check_chunk(path: Path, whole: bytes, grid: Grid) -> None:
    """Refuse a chunk that is not what was written."""
    if (fault := _fault(whole, grid)) is not None:
        raise ValueError(f"{path} is damaged: {fault if path.exists() else 'it is missing'}")


def _fault(whole: bytes, grid: Grid) -> str | None:
    inner = whole[:-4]
    if len(whole) < 4 or google_crc32c.value(inner) != int.from_bytes(whole[-4:], "little"):
        return "its checksum does not match"
    if _content_size(inner) != math.prod(grid.chunks) * grid.itemsize:
        return "it does not unpack to a chunk of its array"
    return None


def _content_size(frame: bytes) -> int | None:
    """The bytes that a Zstandard frame says it unpacks to (RFC 8878, section 3.1.1.1); None if it does not say."""
    if len(frame) < 5 or frame[:4] != b"\x28\xb5\x2f\xfd":
        return None
    descriptor = frame[4]
    is_single = descriptor >> 5 & 1
    size = (is_single, 2, 4, 8)[descriptor >> 6]
    first = 5 + (1 - is_single) + (0, 1, 2, 4)[descriptor & 3]
    if size == 0:
        return None
    return int.from_bytes(frame[first : first + size], "little") + (256 if size == 2 else 0)
