"""What a power cut must not undo, and where a link must not lead.

A file is made under another name and takes its place in one rename, so whoever looks sees the old one or the new one,
whole. Neither reading nor writing follows a link or waits for a pipe: a folder from elsewhere may hold either.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

_UNLINKED = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of files, has reached the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def create(path: Path) -> BinaryIO:
    """A new file to write to; an error if the name is taken, by a link that leads nowhere too."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _UNLINKED, 0o666), "wb")


def write(path: Path, fill: Callable[[Any], object]) -> None:
    """Make a file, or replace it, once it is on disk as a whole; its folder is to be synced by the caller."""
    temporary = path.with_name(path.name + ".partial")
    temporary.unlink(missing_ok=True)  # of a run that was killed, or a link to something that is not ours
    try:
        with create(temporary) as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def open_file(path: Path, mode: str = "rb") -> Any:
    """Open an ordinary file that is there, to read (``rb``) or to change it in place (``r+b``)."""
    file = os.fdopen(os.open(path, (os.O_RDONLY if mode == "rb" else os.O_RDWR) | _UNLINKED), mode)
    status = os.fstat(file.fileno())
    # A file with a second name elsewhere would change there too.
    if not stat.S_ISREG(status.st_mode) or (mode != "rb" and status.st_nlink > 1):
        file.close()
        raise OSError(errno.EINVAL, "not an ordinary file of its own", str(path))
    return file


def read(path: Path, most: int) -> bytes:
    """All of an ordinary file of at most so many bytes."""
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, f"larger than {most} bytes", str(path))
        result: bytes = file.read()
        return result


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
