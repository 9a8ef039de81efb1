"""Where progress is shown: bars in a terminal, lines in a file, a table in a notebook (which needs no widgets)."""

from __future__ import annotations

import html
import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.text import Text

from mintmc.run.phase import Chains, Phase, View

_SECONDS, _SHARE, _AT_LEAST = 10.0, 0.1, 1.0
"""A line after so much time, or so much of a phase, but not more often than this."""
_UPDATE = 0.5
"""Seconds between two updates of a notebook."""
_WIDE, _BAR, _SHORT_BAR = 110, 30, 12
"""Columns of a terminal that holds all there is to say of a phase, and of its bar there and elsewhere."""
_ROWS = 12
"""Chains that have a row of their own in a notebook."""


class Bars(View):
    """Live bars, a line for each phase, and one for the chains."""

    def __init__(self, console: Console):
        self._tasks: dict[int, TaskID] = {}
        is_wide = console.width >= _WIDE
        self._progress = _WithChains(
            SpinnerColumn(),
            TextColumn("{task.description:9}"),
            BarColumn(bar_width=_BAR if is_wide else _SHORT_BAR),
            *(
                TextColumn(f"{{task.fields[phase].{what}}}")
                for what in ("count", "pace" if is_wide else "speed", "left")
            ),
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


class _WithChains(Progress):
    """Bars, and below them what is known of each chain in the last phase that has any."""

    def get_renderables(self) -> Iterable[RenderableType]:
        """What is shown."""
        yield from super().get_renderables()
        told: list[Chains] = [task.fields["phase"].chains for task in self.tasks if task.fields["phase"].chains]
        if told:
            yield Text(f"  {told[-1].said}")


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
        rhat = math.nan if phase.chains is None else phase.chains.rhat
        agreed = "" if math.isnan(rhat) else f"R-hat {rhat:.3f}"
        parts = (f"{phase.name:<9} {phase.share:4.0%}  {phase.count}", phase.pace, agreed, phase.left)
        print(", ".join(filter(None, parts)), flush=True)


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
    """Phases as a table, and below it the chains, one by one, of the last that knows them.

    Examples
    --------
    >>> as_html([Phase("draws", 10, 0, 10.0, 0.0, completed=5)]).count("<td>")
    5
    >>> "R-hat so far: 1.020" in as_html([Phase("draws", 4, 0, 4.0, 0.0, chains=Chains(1, 2, [0.3, 0.2], 1.02))])
    True
    """
    rows = [
        (html.escape(phase.name), _bar(phase.completed, phase.total), phase.count, phase.pace, phase.left)
        for phase in phases
    ]
    told = [phase.chains for phase in phases if phase.chains is not None]
    return _table(rows) + (_chains(told[-1]) if told else "")


def _chains(chains: Chains) -> str:
    count = f"{chains.done:,}/{chains.of:,}"
    rows = [
        (f"chain {number}", _bar(chains.done, chains.of), count, "" if math.isnan(rate) else f"acceptance {rate:.2f}")
        for number, rate in enumerate(chains.acceptance)
    ]
    agreed = "" if math.isnan(chains.rhat) else f"<div>R-hat so far: {chains.rhat:.3f}</div>"
    told = _table(rows) + agreed if len(rows) <= _ROWS else f"<div>{chains.said}</div>"
    return f'<div style="margin-top: 0.75em">{told}</div>'


def _bar(done: int, of: int) -> str:
    return f'<progress value="{done}" max="{of}"></progress>'


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    lines = ("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{''.join(lines)}</table>"
