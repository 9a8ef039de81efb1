"""Paths, and trees of draws: where a run is written to and what it leaves."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mintmc.check.words import shown

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def path(name: str, value: Any) -> Path:
    """Check a local path; it need not exist."""
    try:
        text = os.fspath(value)
        if isinstance(value, bytes) or not isinstance(text, str):
            raise TypeError
    except Exception:  # no path at all, or an object with ideas of its own
        raise TypeError(f"{name} must be a path, a string or a pathlib.Path, got {shown(value)}") from None
    if _REMOTE.match(text):
        raise ValueError(f"{name} must be a local path (remote stores are not supported), got {shown(value)}")
    try:
        if not text:
            raise ValueError("nothing")
        os.lstat(text)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # too long, NUL or half a character in it, not to be read
        reason = getattr(error, "strerror", None) or error
        kind = PermissionError if isinstance(error, PermissionError) else ValueError
        raise kind(f"{name} must be a path that the system accepts, got {shown(value)} ({reason})") from None
    return Path(text)


def folder(name: str, value: Any) -> Path:
    """Check the path of a folder that can be made, or is there."""
    place = path(name, value)
    if not os.path.lexists(place):
        around = next(parent for parent in place.absolute().parents if os.path.lexists(parent))
        if not around.is_dir():
            raise ValueError(f"{name} must be in a folder, got {shown(value)}, where {around} is a file")
        if not os.access(around, os.W_OK):
            raise PermissionError(f"{name} must be where you may write, got {shown(value)}")
    return place


def tree(value: Any, *groups: str, attributes: Sequence[str] = ()) -> Any:
    """Check what ``mintmc.sample`` returned, or another tree with such groups and attributes."""
    from xarray import DataTree

    if not isinstance(value, DataTree):
        raise TypeError(f"tree must be what mintmc.sample returned, an xarray.DataTree, got {shown(value)}")
    for group in groups:
        if group not in value.children:
            raise ValueError(f"tree must have a group {group}, got {sorted(map(str, value.children))}")
    for attribute in attributes:
        if attribute not in value.attrs:
            raise ValueError(f"tree must be what mintmc.sample returned, got one without attribute {attribute}")
    return value
