"""Rows of numbers that are overwritten now and then, in memory or in a file; programs read them without a copy.

A file changes only after the commit of a checkpoint. What is written before stays in private pages of memory (copy on
write) and is part of the checkpoint. So a run that was killed finds the rows of its last commit: those of the file with
the checkpoint's written over them, once more if they were already there.

A checksum of all rows is kept up to date as they are overwritten: the sum over all words of the file, each times an odd
number that goes with its place, modulo 2^64. An odd factor can be divided by, so one word that differs always shows.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.store.durable import create, open_file, sync

_WORDS_AT_A_TIME = 2**20


class Kept:
    """Rows, all zero at first.

    Parameters
    ----------
    shape
        Number of rows, and of numbers in each.
    dtype
        Of the numbers.
    path
        Of a .npy file; None keeps the rows in memory.
    is_new
        Whether the file is to be made. Otherwise it must be there.
    """

    def __init__(self, shape: tuple[int, int], dtype: Any, path: Path | None = None, is_new: bool = True):
        self.path, self.shape, self.dtype = path, shape, np.dtype(dtype)
        self.checksum = np.zeros(1, np.uint64)  # of rows that are all zero
        self._written: list[np.ndarray] = []
        if path is None:
            # Pages of its own: aligned as XLA wants them, and no memory before something is written.
            memory = mmap.mmap(-1, max(1, shape[0] * shape[1] * self.dtype.itemsize))
            self.rows = np.frombuffer(memory, dtype, shape[0] * shape[1]).reshape(shape)
            return
        if is_new:
            self._make(path)
        self.rows = self._mapped()

    def write(self, places: np.ndarray, values: np.ndarray) -> None:
        """Overwrite rows; of values for the same place the last one stays."""
        if self.path is None:
            self.rows[places] = values
            return
        self._written.append(places)
        distinct = np.unique(places)
        self.checksum -= self._sum(distinct, self.rows[distinct])
        self.rows[places] = values
        self.checksum += self._sum(distinct, self.rows[distinct])

    def on_device(self, *shape: int) -> Array:
        """The rows as an array of this shape: not a copy where the device shares the host's memory."""
        result: Array = jax.device_put(jnp.from_dlpack(self.rows.reshape(shape)), jax.local_devices()[0])
        return result

    def unsettled(self) -> tuple[np.ndarray, np.ndarray]:
        """Which rows were overwritten since the file was last changed, and what is there now."""
        places = np.unique(np.concatenate([np.empty(0, np.int64), *self._written]))
        return places, np.array(self.rows[places])

    def restore(self, places: np.ndarray, values: np.ndarray, checksum: np.ndarray) -> None:
        """Go on from a commit: what was overwritten before it and may not have reached the file, and the checksum."""
        self.rows[places] = values
        size = max(1, _WORDS_AT_A_TIME // self.shape[1])
        found = np.zeros(1, np.uint64)
        for first in range(0, len(self.rows), size):
            some = self.rows[first : first + size]
            found += self._sum(np.arange(first, first + len(some)), some)
        if self.path is not None and found[0] != checksum[0]:
            raise ValueError(f"{self.path} is damaged: its checksum does not match")
        self.checksum = np.array(checksum, np.uint64)
        self.settle(places, values)

    def settle(self, places: np.ndarray, values: np.ndarray) -> None:
        """Bring the file up to a commit."""
        if self.path is None:
            return
        if len(places):
            # Not through the map: a full disk would kill the process instead of raising an error.
            with open_file(self.path, "r+b") as file:
                first = file.seek(0, os.SEEK_END) - self.rows.nbytes
                for place, value in zip(places.tolist(), values, strict=True):
                    file.seek(first + place * value.nbytes)
                    file.write(value.tobytes())
            sync(self.path)
        self._written = []
        self.rows = self._mapped()

    def _make(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": self.shape}
        with create(path) as file:
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + self.shape[0] * self.shape[1] * self.dtype.itemsize)
        for made in (path, path.parent, path.parent.parent):
            sync(made)

    def _mapped(self) -> np.ndarray:
        assert self.path is not None
        try:
            open_file(self.path).close()  # an ordinary file, not a link or a pipe
            rows = np.load(self.path, mmap_mode="c")
        except FileNotFoundError as error:
            raise ValueError(f"{self.path} is missing: the run cannot go on without its rings") from error
        except (OSError, ValueError) as error:
            raise ValueError(f"{self.path} is damaged: it cannot be read ({error})") from error
        if rows.shape != self.shape or rows.dtype != self.dtype:
            raise ValueError(f"{self.path} is damaged: it has the shape {rows.shape}, not {self.shape}")
        if self.path.stat().st_size != rows.offset + rows.nbytes:
            raise ValueError(f"{self.path} is damaged: it is longer than its rows")
        result: np.ndarray = rows
        return result

    def _sum(self, places: np.ndarray, rows: np.ndarray) -> np.uint64:
        """What rows at these places contribute to the checksum."""
        words = np.ascontiguousarray(rows).view(f"u{self.dtype.itemsize}")
        at = places[:, None].astype(np.uint64) * np.uint64(words.shape[1]) + np.arange(words.shape[1], dtype=np.uint64)
        result: np.uint64 = (_mixed(at) * words).sum(dtype=np.uint64)
        return result


def _mixed(at: np.ndarray) -> np.ndarray:
    """An odd number of 64 bits for each place (the finaliser of SplitMix64; Steele, Lea & Flood 2014)."""
    at = (at + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    at = (at ^ (at >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    at = (at ^ (at >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: np.ndarray = (at ^ (at >> np.uint64(31))) | np.uint64(1)
    return result
