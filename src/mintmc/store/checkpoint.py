"""Read the arrays of a checkpoint, after its checksum; no more memory is taken than the file has bytes."""

from __future__ import annotations

import math
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from mintmc.store.durable import digest, open_file


def load_arrays(folder: Path, record: dict[str, Any]) -> list[np.ndarray]:
    """The arrays of the checkpoint that a record names; refuses one that is missing, damaged or not ours."""
    name = record.get("checkpoint")
    if not isinstance(name, str) or not re.fullmatch(r"checkpoint-\d+\.npz", name):
        raise ValueError(f"{folder / 'zarr.json'} is damaged: it names the checkpoint {name!r}")
    path = folder / name
    try:
        if digest(path) != record.get("checkpoint_digest"):
            raise ValueError("its checksum does not match")
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            return [_array(archive, f"arr_{i}.npy") for i in range(len(archive.namelist()))]
    except FileNotFoundError as error:
        raise ValueError(f"{path} is damaged: it is missing") from error
    except (OSError, ValueError, KeyError, NotImplementedError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    if archive.getinfo(name).compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} is compressed, which no checkpoint is")
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise ValueError(f"{name} has the format {version}")
        shape, in_fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
        if dtype.hasobject:
            raise ValueError(f"{name} holds objects")
        numbers = file.read()
    if math.prod(shape) * dtype.itemsize != len(numbers):
        raise ValueError(f"{name} claims the shape {shape}, but has {len(numbers)} bytes")
    return np.frombuffer(bytearray(numbers), dtype).reshape(shape, order="F" if in_fortran_order else "C")
