"""Who may end a run before all its draws are made: a goal that is reached, or the user's callback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mintmc.run.sofar import SoFar, quantities
from mintmc.run.task import Task
from mintmc.run.until import is_look, next_look
from mintmc.store.encode import encode

_SUSPECTS = 16
"""Parameters that are looked at before all others."""


class Stops:
    """Asks whether to go on, and remembers who said no.

    Parameters
    ----------
    goal
        ``Ess``, ``RHat`` or None.
    callback
        Called after every stretch; returns False to stop.
    """

    def __init__(self, goal: Any = None, callback: Callable[[SoFar], Any] | None = None):
        self.goal, self.callback = goal, callback
        self.said = ""
        self.is_reached = False
        self._suspects: np.ndarray | None = None  # the parameters that were worst when all were last looked at

    @property
    def record(self) -> dict[str, Any]:
        """For the store: what was asked for, and what has ended the run."""
        return {"goal": encode(self.goal), "stopped": self.said, "is_reached": self.is_reached}

    @property
    def needs(self) -> tuple[str, ...]:
        """What is imported when it first looks."""
        return () if self.goal is None else ("scipy.fft", "scipy.special")

    def next_end(self, drawn: int, draws: int) -> int:
        """How many draws to make before the next look."""
        return draws if self.goal is None else min(draws, next_look(drawn))

    def reached(self, task: Task, drawn: int, look: Callable[[float], np.ndarray]) -> bool:
        """Whether the goal is reached, if this is a number of draws at which that is asked."""
        if self.goal is None or drawn >= task.draws or not is_look(drawn):
            return False
        draws = quantities(look(self.goal.draws_needed), task.target, self.goal.var_names)
        if self._falls_short(draws):
            return False
        shortfalls = self.goal.shortfalls(draws)
        self._suspects = np.argsort(-np.nan_to_num(shortfalls, nan=np.inf), kind="stable")[:_SUSPECTS]
        value = self.goal.value(float(np.max(shortfalls)))
        self.is_reached = self.goal.is_met(value)
        if self.is_reached:
            self.said = f"stopped early: {self.goal.said(value)} ({drawn:,} of at most {task.draws:,} draws a chain)"
        return self.is_reached

    def _falls_short(self, draws: np.ndarray) -> bool:
        """Whether one of the parameters that were worst does: the goal is then not reached, whatever the others do."""
        if self._suspects is None or len(self._suspects) == draws.shape[2]:
            return False
        return not self.goal.is_met(self.goal.value(float(np.max(self.goal.shortfalls(draws[:, :, self._suspects])))))

    def called(self, so_far: Callable[[], SoFar]) -> bool:
        """Tell the callback; whether it wants to stop."""
        if self.callback is None:
            return False
        told = so_far()
        answer = self.callback(told)
        if isinstance(answer, (bool, np.bool_)) and not answer and told.drawn < told.draws:
            self.said = f"stopped early: by callback ({told.drawn:,} of {told.draws:,} draws a chain)"
            return True
        return False


def is_finished(done: dict[str, Any], draws: int, audit: bool, goal: Any) -> bool:
    """Whether a store has all that is asked for."""
    is_whole = done["drawn"] == draws or bool(done.get("is_reached") and done.get("goal") == encode(goal))
    return done["drawn"] > draws or (is_whole and (done.get("audited") or not audit))
