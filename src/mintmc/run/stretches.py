"""The way of all chains through a run, in stretches.

A stretch takes about the same time as any other, records no more than one call may, and ends where the rows are
shuffled anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from mintmc.data import RowReader
from mintmc.run.protocol import Session
from mintmc.run.task import Task

_SECONDS = 0.4
FIRST = 16
"""Draws of the first stretch."""


def most_draws_of(dim: int) -> int:
    """Draws that one stretch records at most."""
    return max(64, min(2**16, 2**21 // (dim + 8)))


def next_size(size: int, seconds: float, most_draws: int) -> int:
    """Draws of the next stretch, from what the last one took."""
    fitting = int(size * _SECONDS / max(seconds, 1e-6))
    return max(1, min(most_draws, 8 * size, fitting))


class Stretches:
    """Where batches come from while the chains go on.

    Parameters
    ----------
    task, reader, batches
        What was asked for, where rows are, and the batches that a step reads.
    most_draws
        Draws that one stretch records at most.
    """

    def __init__(self, task: Task, reader: RowReader, batches: Mapping[str, int], most_draws: int):
        self.task, self.reader, self.most_draws = task, reader, most_draws
        self.largest = max((size for role, size in batches.items() if role != "all"), default=0)
        self.steps = reader.steps_per_shuffle(batches)  # between two shuffles
        self.epoch = -1
        self.acceptance = np.full(task.chains, np.nan)  # of each chain, in the last stretch
        self.size, self.phase = FIRST, None
        self._shuffle(0)

    def run(
        self,
        session: Session,
        phase: Any,
        first: int,
        end: int,
        room: Callable[[], int],
        thin: int,
        offset: int,
        run: Callable[[int, int, int], float],
    ) -> Iterator[int]:
        """Run all chains from ``first`` to ``end``, or until interrupted, in stretches of about the same time."""
        chains = self.task.chains
        if phase is not self.phase:  # of which a draw may take longer
            self.size, self.phase = FIRST, phase
        while first < end:
            at = offset + first * thin
            self._shuffle(at // self.steps)
            to_next_shuffle = self.steps - at % self.steps
            last = min(end, first + self.size, room(), first + -(-to_next_shuffle // thin))
            last = self.task.crew.agreed(first if session.interrupt.requested else last)
            if last == first:
                return
            begun = time.perf_counter()
            rates = list(session.pool.map(lambda chain, a=first, b=last: run(chain, a, b), range(chains)))
            seconds = time.perf_counter() - begun
            self.task.check_reads()
            session.display.advance(phase, (last - first) * chains, float(np.mean(rates)))
            self.acceptance = np.array(rates)
            self.size = next_size(last - first, seconds, self.most_draws)
            first = last
            yield last

    def _shuffle(self, epoch: int) -> None:
        """Have the rows of an epoch at hand."""
        if epoch != self.epoch:
            self.rows, self.epoch = self.task.crew.given(self.reader.rows(epoch, self.largest)), epoch
