"""Whether files are still the ones they were: by size and time while they are open, by their content later.

A *stamp* (bytes, time of the last change) costs next to nothing and is looked at before and after reads. It cannot
tell a copy from another file, so a run that goes on later asks for the content: a hash of every byte of up to 1 GiB,
and of 16,384 blocks of 64 KiB spread evenly over more. With ``verify="full"``, and for prepared data, whose hash was
made with them, it is a hash of every byte always.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

VERIFY = ("quick", "full")
_QUICK = 2**30
_BLOCK = 2**16


class Stamp(NamedTuple):
    """What changes when one of a few files does."""

    size: int  # bytes in all
    modified: int  # the last time of a change, in nanoseconds


def stamp(files: Sequence[Path]) -> Stamp:
    """The stamp of all files together."""
    found = [os.stat(file) for file in files]
    return Stamp(sum(s.st_size for s in found), max((s.st_mtime_ns for s in found), default=0))


def content(files: Sequence[Path], everything: bool) -> tuple[str, str]:
    """How the files were looked at ("full" or "quick"), and a hash of what was seen."""
    sizes = [file.stat().st_size for file in files]
    whole = everything or sum(sizes) <= _QUICK
    digest = hashlib.sha256()
    for file, size in zip(files, sizes, strict=True):
        share = size if whole else _QUICK * size // sum(sizes)
        digest.update(_digest(file, size, share).encode())
    return "full" if whole else "quick", digest.hexdigest()


def joined(digests: Sequence[str]) -> tuple[str, str]:
    """What ``content`` says of whole files whose hashes are known."""
    return "full", hashlib.sha256("".join(digests).encode()).hexdigest()


def _digest(path: Path, size: int, share: int) -> str:
    """A hash of a file, or of ``share`` of its bytes and of its size."""
    with path.open("rb") as file:
        if share >= size:
            return hashlib.file_digest(file, "sha256").hexdigest()
        digest = hashlib.sha256(str(size).encode())
        for first in np.linspace(0, max(size - _BLOCK, 0), max(2, share // _BLOCK), dtype=np.int64):
            file.seek(int(first))
            digest.update(file.read(_BLOCK))
    return digest.hexdigest()
