"""How far a run is, how fast, how well it accepts, and how long it will still take.

A display knows the phases of a run; who shows them depends on where: bars in a terminal, lines now and then in a file,
a table in a notebook.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Lock
from types import TracebackType


@dataclass
class Phase:
    """A part of a run, counted in draws or steps of all chains."""

    name: str
    total: int
    done: int  # before this session
    cost: float  # of what was left at its beginning
    later: float  # of the phases to come
    completed: int = 0
    spent: float = 0.0  # of the cost
    acceptance: float | None = None
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
        if self.acceptance is None:
            return ""
        elapsed = self._elapsed
        rate = (self.completed - self.done) / elapsed if elapsed else 0.0
        return f"{rate:,.0f} draws/s, acceptance {self.acceptance:.2f}"

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


class Display:
    """Progress of warm-up and draws; silent if not ``enabled``."""

    def __init__(self, enabled: bool):
        self._view, self._phases, self._lock = view_for(enabled), list[Phase](), Lock()

    def __enter__(self) -> Display:
        self._view.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._view.stop()

    def say(self, text: str) -> None:
        """A line above the others."""
        self._view.say(text)

    def phase(self, name: str, total: int, done: int = 0, cost: float | None = None, later: float = 0) -> Phase:
        """Start a new phase, of which a part may be done already, or go on with the last one if it is that.

        ``cost`` is that of what is left, if not every draw costs the same, and ``later`` that of the phases to come.
        """
        last = self._phases[-1] if self._phases else None
        if last is not None and (last.name, last.total, last.completed) == (name, total, done) and done:
            return last
        self._phases.append(Phase(name, total, done, total - done if cost is None else cost, later, completed=done))
        self._view.show(self._phases)
        return self._phases[-1]

    def advance(self, phase: Phase, draws: int, acceptance: float | None = None, cost: float | None = None) -> None:
        """Say that more draws are done, at which mean acceptance, and what they cost if not all cost the same."""
        with self._lock:  # chains may say so at once
            phase.completed += draws
            phase.spent += draws if cost is None else cost
            phase.acceptance = phase.acceptance if acceptance is None else acceptance
            phase.ended = time.perf_counter() if phase.is_finished else None
            self._view.show(self._phases)


def view_for(enabled: bool) -> View:
    """Who shows phases here."""
    if not enabled:
        return View()
    from rich.console import Console

    from mintmc.run import views

    console = Console()
    if console.is_jupyter:
        return views.Notebook()
    return views.Bars(console) if console.is_terminal else views.Lines()


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
