"""In what order the rungs of a ladder start: the hottest first, each warmed up and fed before the next begins."""

from __future__ import annotations

from typing import NamedTuple

_OVERHEAD = 200
"""Of a step that reads next to nothing, in rows."""


class Round(NamedTuple):
    """What is done between two extensions of the rings, or a part of it."""

    number: int
    warming: int | None  # the rung that warms up, if any; colder ones have not begun
    drawing: range  # the rungs that make draws
    first: int  # step of warm-up, or draw of this phase
    last: int
    recorded: bool  # whether its draws count
    offset: int = 0  # draws of this round that were made before
    ends: bool = True  # whether the round is complete with it

    @property
    def work(self) -> int:
        """Draws and steps of warm-up that each chain makes in it, over all rungs."""
        return (self.last - self.first) * (len(self.drawing) + (self.warming is not None))


class Costs(NamedTuple):
    """About how long the parts of a round take, in rows read."""

    rows: list[int]  # of a step, by rung
    steps: list[int]  # of a draw, by rung

    def of_step(self, rung: int) -> int:
        """A step of warm-up."""
        return _OVERHEAD + self.rows[rung]

    def of_draw(self, rung: int) -> int:
        """A draw."""
        return self.of_step(rung) * self.steps[rung]

    def of_round(self, r: Round) -> int:
        """What each chain does in a round."""
        warming = 0 if r.warming is None else self.of_step(r.warming)
        return (r.last - r.first) * (warming + sum(self.of_draw(rung) for rung in r.drawing))

    def of_draws(self, draws: int) -> int:
        """Draws of all rungs of a chain."""
        return draws * sum(self.of_draw(rung) for rung in range(len(self.rows)))


def warmup_rounds(rungs: int, warmup: int, feed: int, length: int) -> list[Round]:
    """All rounds before the draws that count: every rung's warm-up, and the draws that feed the next."""
    phases: list[tuple[int | None, range, int]] = []
    for newcomer in reversed(range(rungs)):
        phases.append((newcomer, range(0), warmup))
        if newcomer > 0:
            phases.append((None, range(newcomer, newcomer + 1), feed))
    rounds: list[Round] = []
    for warming, drawing, total in phases:
        for first in range(0, total, length):
            rounds.append(Round(len(rounds), warming, drawing, first, min(first + length, total), False))
    return rounds


def draw_round(before: int, rungs: int, length: int, drawn: int, limit: int) -> Round:
    """The next round of draws that count, after ``before`` rounds of warm-up; it makes none beyond ``limit``."""
    number = drawn // length
    end = (number + 1) * length
    last = min(end, limit)
    return Round(before + number, None, range(rungs), drawn, last, True, drawn - number * length, last == end)
