"""Rows of numbers that are overwritten now and then, in memory or in a file; programs read them without a copy.

A file changes only after the commit of a checkpoint. What is written before stays in private pages of memory (copy on
write) and is part of the checkpoint. So a run that was killed finds the rows of its last commit: those of the file with
the checkpoint's written over them, once more if they were already there.
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

from mintmc.durable import sync


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
    """

    def __init__(self, shape: tuple[int, int], dtype: Any, path: Path | None = None):
        self.path = path
        self.is_new = path is None or not path.exists()
        self._written: list[np.ndarray] = []
        if path is None:
            # Pages of its own: aligned as XLA wants them, and no memory before something is written.
            memory = mmap.mmap(-1, max(1, shape[0] * shape[1] * np.dtype(dtype).itemsize))
            self.rows = np.frombuffer(memory, dtype, shape[0] * shape[1]).reshape(shape)
            return
        if self.is_new:
            path.parent.mkdir(exist_ok=True)
            np.lib.format.open_memmap(path, "w+", dtype, shape).flush()
            for made in (path, path.parent, path.parent.parent):
                sync(made)
        self.rows = _mapped(path)
        if self.rows.shape != shape or self.rows.dtype != dtype:
            raise ValueError(f"{path} is damaged: it has the shape {self.rows.shape}, not {shape}")

    def write(self, places: np.ndarray, values: np.ndarray) -> None:
        """Overwrite rows; of values for the same place the last one stays."""
        self.rows[places] = values
        if self.path is not None:
            self._written.append(places)

    def on_device(self, *shape: int) -> Array:
        """The rows as an array of this shape: not a copy where the device shares the host's memory."""
        return jax.device_put(jnp.from_dlpack(self.rows.reshape(shape)), jax.local_devices()[0])

    def unsettled(self) -> tuple[np.ndarray, np.ndarray]:
        """Which rows were overwritten since the file was last changed, and what is there now."""
        places = np.unique(np.concatenate([np.empty(0, np.int64), *self._written]))
        return places, np.array(self.rows[places])

    def settle(self, places: np.ndarray, values: np.ndarray) -> None:
        """Bring the file up to a commit."""
        if self.path is None:
            return
        if len(places):
            # Not through the map: a full disk would kill the process instead of raising an error.
            with open(self.path, "r+b") as file:
                first = file.seek(0, os.SEEK_END) - self.rows.nbytes
                for place, value in zip(places.tolist(), values, strict=True):
                    file.seek(first + place * value.nbytes)
                    file.write(value.tobytes())
            sync(self.path)
        self._written = []
        self.rows = _mapped(self.path)


def _mapped(path: Path) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="c")
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged: it cannot be read ({error})") from error
