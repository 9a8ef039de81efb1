"""How long each part of a run took, also over several sessions."""

from __future__ import annotations

import time


class Clock:
    """Counts the seconds of one part at a time, the first to begin with."""

    PARTS = ("compile", "warmup", "sampling")

    def __init__(self) -> None:
        self._spent = dict.fromkeys(self.PARTS, 0.0)
        self._part: str | None = self.PARTS[0]
        self._begun = time.perf_counter()

    def add(self, seconds: dict[str, float]) -> None:
        """What earlier sessions of the run took."""
        self._spent = {part: spent + seconds[part] for part, spent in self._spent.items()}

    def start(self, part: str | None) -> None:
        """From now on count for this part."""
        self._spent = self.seconds()
        self._part, self._begun = part, time.perf_counter()

    def stop(self) -> None:
        """From now on count for none."""
        self.start(None)

    def seconds(self) -> dict[str, float]:
        """Of each part until now."""
        running = time.perf_counter() - self._begun
        return {part: spent + (running if part == self._part else 0.0) for part, spent in self._spent.items()}
