"""What every file of rows has in common: how it is read, and what is refused."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from mintmc import check
from mintmc.data.array import is_numeric
from mintmc.data.columns import Rows
from mintmc.data.identity import Stamp


@runtime_checkable
class Source(Protocol):
    """Rows as they are read: n of them, as an array or a dict of columns, neither checked nor converted.

    A source of your own (a data base, an archive) is a subclass with ``name``, ``n``, ``read`` and ``take``; pass it to
    ``Posterior`` or ``open_data``. It should also say when its rows change (``stamp``), and what they are
    (``content``): without that a run that goes on compares only 64 of them.
    """

    name: Any  # where the rows are, for messages
    n: Any  # how many there are
    prepared: Any = False  # whether they are in random order
    checked: Any = False  # whether their values are known to be finite

    def stamp(self) -> Stamp:
        """What changes when the rows do."""
        return Stamp(0, 0)

    def content(self, everything: bool) -> tuple[str, str]:
        """How much of it was looked at ("full" or "quick"), and a hash of that."""
        return "quick", f"{self.name} {self.n}"

    def read(self, first: int, last: int) -> Rows:
        """Rows ``first`` to ``last - 1``."""
        ...

    def take(self, indices: np.ndarray) -> Rows:
        """The rows of the given numbers, which ascend."""
        ...

    def mapped(self) -> Rows | None:
        """The rows as arrays that lie in a file, if they do."""
        return None

    def give_back(self) -> None:
        """Let go of what was read through ``mapped``, if it is much."""
        return


@contextmanager
def must_be(path: Path, kind: str) -> Iterator[None]:
    """Say what a file should have been where reading it fails."""
    if not path.exists():
        raise FileNotFoundError(f"source must be an existing file or folder, got {path}")
    try:
        yield
    except PermissionError:
        raise
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} must be {kind}, got an error: {error}") from error


def select(columns: Sequence[str] | None, available: Collection[str], where: Any) -> list[str]:
    """The columns that were asked for, all by default; refuses one that is not there."""
    columns = list(available) if columns is None else check.listed("columns", columns, "a list of names")
    if not all(isinstance(column, str) for column in columns):
        raise TypeError(f"columns must be a list of names, got {check.shown(columns)}")
    if not columns:
        raise ValueError(f"columns must name at least one of {list(available)}, got none in {where}")
    for column in columns:
        if column not in available:
            raise ValueError(
                f"columns must be among {list(available)}, the columns of {where}, got {check.shown(column)}"
            )
    return columns


def check_numbers(name: str, dtype: np.dtype, where: str) -> None:
    """Refuse an array of anything but numbers."""
    if not is_numeric(np.dtype(dtype)):
        raise TypeError(f"{name} must be an array of numbers, got dtype {dtype} in {where}")


def check_count(n: int, where: str) -> int:
    """Refuse data without rows; returns n."""
    if n == 0:
        raise ValueError(f"data must have at least one row, got none in {where}")
    return n


def joined(parts: list[Rows]) -> Rows:
    """Rows of several pieces in one."""
    return parts[0] if len(parts) == 1 else jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
