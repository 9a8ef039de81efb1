"""A live line that says how far a run is, how fast, how well it accepts, and how long it will still take."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.text import Text


class Display:
    """Progress of warm-up and draws, counted in draws of all chains; silent if not ``enabled``."""

    def __init__(self, enabled: bool):
        self._enabled = enabled
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:9}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[acceptance]}"),
            _Remaining(),
            disable=not enabled,
        )

    def __enter__(self) -> Display:
        self._progress.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        """A line above the others."""
        if self._enabled:
            self._progress.console.print(text, highlight=False, soft_wrap=True)

    def phase(self, name: str, total: int, done: int = 0, cost: float | None = None, later: float = 0) -> TaskID:
        """Start a new line, of which a part may be done already.

        ``cost`` is that of what is left, if not every draw costs the same, and ``later`` that of the phases to come.
        """
        cost = total - done if cost is None else cost
        numbers: dict[str, Any] = {"done": done, "cost": cost, "later": later, "spent": 0.0}
        return self._progress.add_task(name, total=total, completed=done, rate="", acceptance="", **numbers)

    def advance(self, phase: TaskID, draws: int, acceptance: float | None = None, cost: float | None = None) -> None:
        """Say that more draws are done, at which mean acceptance, and what they cost if not all cost the same."""
        task = next(task for task in self._progress.tasks if task.id == phase)
        spent = task.fields["spent"] + (draws if cost is None else cost)
        if acceptance is None:
            self._progress.update(phase, advance=draws, spent=spent)
            return
        elapsed = task.elapsed or 0.0
        rate = (task.completed - task.fields["done"] + draws) / elapsed if elapsed else 0.0
        self._progress.update(
            phase,
            advance=draws,
            spent=spent,
            rate=f"{rate:,.0f} draws/s",
            acceptance=f"acceptance {acceptance:.2f}",
        )


def seconds_left(elapsed: float, spent: float, cost: float, later: float) -> float | None:
    """Of a phase that has spent a part of its cost in this time, and of those after it; None if it has not begun.

    Examples
    --------
    >>> seconds_left(elapsed=10.0, spent=1.0, cost=4.0, later=2.0)
    50.0
    """
    return elapsed * (max(cost - spent, 0) + later) / spent if spent else None


class _Remaining(ProgressColumn):
    """The time that is left, phases to come included, at the pace of this one."""

    def render(self, task: Task) -> Text:
        fields = task.fields
        left = seconds_left(task.elapsed or 0.0, fields["spent"], fields["cost"], fields["later"])
        if left is None or task.finished:
            return Text("")
        minutes, seconds = divmod(round(left), 60)
        hours, minutes = divmod(minutes, 60)
        return Text(f"about {hours}:{minutes:02d}:{seconds:02d} left", style="progress.remaining")
