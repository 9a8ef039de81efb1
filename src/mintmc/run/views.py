"""Where progress is shown: bars in a terminal, lines in a file, a table in a notebook (which needs no widgets)."""

from __future__ import annotations

import html
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from mintmc.run.phases import Phase, View

_SECONDS, _SHARE, _AT_LEAST = 10.0, 0.1, 1.0
"""A line after so much time, or so much of a phase, but not more often than this."""
_UPDATE = 0.5
"""Seconds between two updates of a notebook."""


class Bars(View):
    """Live bars, a line for each phase."""

    def __init__(self, console: Console):
        self._tasks: dict[int, TaskID] = {}
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:9}"),
            BarColumn(bar_width=30),
            *(TextColumn(f"{{task.fields[phase].{what}}}") for what in ("count", "pace", "left")),
            console=console,
        )

    def start(self) -> None:
        """Begin."""
        self._progress.start()

    def stop(self) -> None:
        """Leave them as they are."""
        self._progress.stop()

    def say(self, text: str) -> None:
        """A line above the bars."""
        self._progress.console.print(text, highlight=False, soft_wrap=True)

    def show(self, phases: list[Phase]) -> None:
        """Bring the bars up to date."""
        for phase in phases:
            if id(phase) not in self._tasks:
                self._tasks[id(phase)] = self._progress.add_task(phase.name, total=phase.total, phase=phase)
            self._progress.update(self._tasks[id(phase)], completed=phase.completed)


class Lines(View):
    """A line now and then, for a log."""

    def __init__(self) -> None:
        self._last: tuple[Phase | None, float, float] = (None, 0.0, 0.0)  # phase, time and share of the last line

    def stop(self) -> None:
        """Say where it ended, if that was not said."""
        phase, _, share = self._last
        if phase is not None and phase.share > share:
            self._write(phase)

    def say(self, text: str) -> None:
        """A line."""
        print(text, flush=True)

    def show(self, phases: list[Phase]) -> None:
        """A line, if it is time for one."""
        phase, now = phases[-1], time.perf_counter()
        before, at, share = self._last
        if phase is not before:
            self._last = (phase, now, phase.share)
            return
        wait = 0 if phase.is_finished else _AT_LEAST if phase.share - share >= _SHARE else _SECONDS
        if now - at >= wait and share < 1:
            self._write(phase)

    def _write(self, phase: Phase) -> None:
        self._last = (phase, time.perf_counter(), phase.share)
        parts = filter(None, (f"{phase.name:<9} {phase.share:4.0%}  {phase.count}", phase.pace, phase.left))
        print(", ".join(parts), flush=True)


class Notebook(View):
    """A table that is updated in place."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._phases: list[Phase] = []
        self._at = 0.0

    def stop(self) -> None:
        """Show for good where it ended."""
        if self._phases:
            self._draw()

    def say(self, text: str) -> None:
        """A line above the table."""
        print(text, flush=True)

    def show(self, phases: list[Phase]) -> None:
        """Bring the table up to date, not too often."""
        self._phases = phases
        if time.perf_counter() - self._at >= _UPDATE:
            self._draw()

    def _draw(self) -> None:
        from IPython.display import HTML, display

        self._at = time.perf_counter()
        shown = HTML(as_html(self._phases))
        if self._handle is None:
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)


def as_html(phases: list[Phase]) -> str:
    """Phases as a table.

    Examples
    --------
    >>> as_html([Phase("draws", 10, 0, 10.0, 0.0, completed=5)]).count("<td>")
    5
    """
    rows = []
    for phase in phases:
        bar = f'<progress value="{phase.completed}" max="{phase.total}"></progress>'
        cells = (html.escape(phase.name), bar, phase.count, phase.pace, phase.left)
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f"<table>{''.join(rows)}</table>"
