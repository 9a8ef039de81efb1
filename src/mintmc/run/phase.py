"""A part of a run, such as its warm-up: how far it is, how fast, and how long it will still take."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

_LISTED = 6
"""Chains that are told one by one; of more, from which to which."""


class Chains(NamedTuple):
    """How each chain does."""

    done: int  # by each of them: they go side by side
    of: int
    acceptance: Sequence[float]  # of each, in the last stretch; NaN where it is not known
    rhat: float  # so far, of the parameter that is worst; NaN if it is not known

    @property
    def said(self) -> str:
        """In a line.

        Examples
        --------
        >>> Chains(100, 200, [0.25, 0.31], 1.013).said
        'acceptance of each chain 0.25 0.31, R-hat so far 1.013'
        >>> Chains(100, 200, [0.01 * k for k in range(20)], math.nan).said
        'acceptance of 20 chains 0.00 to 0.19'
        """
        known = [rate for rate in self.acceptance if not math.isnan(rate)]
        each = f"acceptance of each chain {' '.join(f'{rate:.2f}' for rate in known)}"
        if len(known) > _LISTED:
            each = f"acceptance of {len(known)} chains {min(known):.2f} to {max(known):.2f}"
        agreed = "" if math.isnan(self.rhat) else f"R-hat so far {self.rhat:.3f}"
        return ", ".join(filter(None, (each if known else "", agreed)))


@dataclass
class Phase:
    """A part of a run, counted in draws or steps of all chains."""

    name: str
    total: int
    done: int  # before this run of the program
    cost: float  # of what was left at its beginning
    later: float  # of the phases to come
    completed: int = 0
    spent: float = 0.0  # of the cost
    acceptance: float | None = None
    chains: Chains | None = None
    begun: float = field(default_factory=lambda: time.perf_counter())
    ended: float | None = None

    @property
    def is_finished(self) -> bool:
        """Whether nothing of it is left."""
        return self.completed >= self.total

    @property
    def share(self) -> float:
        """That is done, from 0 to 1."""
        return self.completed / self.total if self.total else 1.0

    @property
    def count(self) -> str:
        """How far it is."""
        return f"{self.completed:,}/{self.total:,}"

    @property
    def pace(self) -> str:
        """How fast, and how well it accepts; nothing if that is not known."""
        return f"{self.speed}, acceptance {self.acceptance:.2f}" if self.acceptance is not None else ""

    @property
    def speed(self) -> str:
        """How fast; nothing where that says little."""
        elapsed = self._elapsed
        rate = (self.completed - self.done) / elapsed if elapsed else 0.0
        return f"{rate:,.0f} draws/s" if self.acceptance is not None else ""

    @property
    def left(self) -> str:
        """How long it will take, with the phases to come, at the pace of this one; nothing once it is finished."""
        seconds = seconds_left(self._elapsed, self.spent, self.cost, self.later)
        return "" if seconds is None or self.is_finished else f"about {clock_of(seconds)} left"

    @property
    def _elapsed(self) -> float:
        return (time.perf_counter() if self.ended is None else self.ended) - self.begun


class View:
    """Shows the phases of a run; this one shows nothing."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """Show for good where it ended."""

    def say(self, text: str) -> None:
        """A line above the phases."""

    def show(self, phases: list[Phase]) -> None:
        """Something has changed."""


def seconds_left(elapsed: float, spent: float, cost: float, later: float) -> float | None:
    """Of a phase that has spent a part of its cost in this time, and of those after it; None if it has not begun.

    Examples
    --------
    >>> seconds_left(elapsed=10.0, spent=1.0, cost=4.0, later=2.0)
    50.0
    """
    return elapsed * (max(cost - spent, 0) + later) / spent if spent else None


def clock_of(seconds: float) -> str:
    """Seconds as hours, minutes and seconds.

    Examples
    --------
    >>> clock_of(3725.2)
    '1:02:05'
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
