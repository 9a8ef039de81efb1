"""How far a run is, how fast, how well it accepts, and how long it will still take.

A display knows the phases of a run; who shows them depends on where: bars in a terminal, lines now and then in a file,
a table in a notebook.
"""

from __future__ import annotations

import time
from threading import Lock
from types import TracebackType

from mintmc.run.phase import Chains, Phase, View


class Display:
    """Progress of warm-up and draws; silent if not ``enabled``."""

    def __init__(self, enabled: bool):
        self._view, self._phases, self._lock = view_for(enabled), list[Phase](), Lock()
        self.is_shown = enabled

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

    def tell(self, name: str, chains: Chains) -> None:
        """Say how each chain does in the phase of that name."""
        for phase in reversed(self._phases):
            if phase.name == name:
                phase.chains = chains
                self._view.show(self._phases)
                return


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
