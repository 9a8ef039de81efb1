"""A live line that says how far a run is, how fast, and how well it accepts."""

from __future__ import annotations

from types import TracebackType

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)


class Display:
    """Progress of warm-up and draws, counted in draws of all chains; silent if not ``enabled``."""

    def __init__(self, enabled: bool):
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:8}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[acceptance]}"),
            TimeRemainingColumn(),
            disable=not enabled,
        )

    def __enter__(self) -> Display:
        self._progress.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def phase(self, name: str, total: int | None, done: int = 0) -> TaskID:
        """Start a new line, of which a part may be done already."""
        return self._progress.add_task(name, total=total, completed=done, done=done, rate="", acceptance="")

    def advance(self, phase: TaskID, draws: int, acceptance: float) -> None:
        """Say that more draws are done, and at which mean acceptance."""
        task = next(task for task in self._progress.tasks if task.id == phase)
        elapsed = task.elapsed or 0.0
        rate = (task.completed - task.fields["done"] + draws) / elapsed if elapsed else 0.0
        self._progress.update(
            phase, advance=draws, rate=f"{rate:,.0f} draws/s", acceptance=f"acceptance {acceptance:.2f}"
        )
