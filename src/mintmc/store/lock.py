"""One writer at a time: a lock beside what is being written.

The file names who holds it (host, process, since when). It is also locked in the kernel (``flock``), which forgets the
lock when its holder ends, however it ends: on one machine a lock that was left behind is told from one that is held,
and taken over. Over a network that is only known to those who share a kernel, so the lock of another machine is
refused, whether that machine is alive or not; the message says which file to remove.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder, which need not exist; ValueError if somebody else does."""
    real = path.resolve()
    lock = real.with_name(real.name + ".lock")
    real.parent.mkdir(parents=True, exist_ok=True)
    while (file := _taken(lock, path)) is None:
        pass
    try:
        yield
    finally:
        # Removed before it is let go: whoever waits for it finds that it is not the file of that name any more.
        lock.unlink(missing_ok=True)
        file.close()


def _taken(lock: Path, path: Path) -> Any:
    """The lock's file, which is held until it is closed; None if it was removed meanwhile."""
    import fcntl

    file = _opened(lock)
    try:
        if os.fstat(file.fileno()).st_nlink == 0:
            file.close()
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise ValueError(f"out must be on a file system that can lock files, got {path}: {error}") from error
            raise ValueError(f"out must not be in use, got {path}, which {_said(file, lock)} is writing to") from error
        if not lock.exists() or not os.path.samestat(os.fstat(file.fileno()), os.lstat(lock)):
            file.close()
            return None
        held = _holder(file, lock)
        if held is not None and not _is_left_behind(held):
            raise ValueError(
                f"out must not be in use, got {path}, which {_said(file, lock)} is writing to, as far as can be told "
                f"from here; if it has ended, remove {lock}"
            )
        file.seek(0)
        file.truncate()
        file.write(json.dumps(_self()).encode())
        file.flush()
    except BaseException:
        file.close()
        raise
    return file


def _opened(lock: Path) -> Any:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        handle = os.open(lock, flags, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise ValueError(f"{lock} must be a lock of mintmc, got something else") from error
        raise
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(handle)
        raise ValueError(f"{lock} must be a lock of mintmc, got something else")
    return os.fdopen(handle, "r+b")


def _self() -> dict[str, Any]:
    since = time.strftime("%Y-%m-%d %H:%M:%S %z")
    return {"host": platform.node(), "kernel": _kernel(), "process": os.getpid(), "since": since}


def _kernel() -> str:
    """What tells this start of this machine from any other, also within containers; empty where it is not known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _is_left_behind(held: dict[str, Any]) -> bool:
    """Whether a lock that the kernel does not know of belongs to a process that has ended."""
    return held.get("host") == platform.node() or (held.get("kernel") or None) == _kernel()


def _holder(file: Any, lock: Path) -> dict[str, Any] | None:
    """Who a lock names; None if its holder was killed before it could say."""
    file.seek(0)
    text = file.read(4096)
    if not text.strip():
        return None
    try:
        held = json.loads(text)
    except ValueError:
        held = None
    if not isinstance(held, dict):
        raise ValueError(f"{lock} must be a lock of mintmc, got something else")
    return held


def _said(file: Any, lock: Path) -> str:
    held = _holder(file, lock) or {}
    return f"process {held.get('process', '?')} on {held.get('host', '?')} (since {held.get('since', '?')})"
