"""Batches read from a file, fresh for every step, a block of steps at a time.

Rows that were shuffled on disk are read in *runs* of neighbours. The file is cut into as many cells as a batch has
runs, a run lies anywhere in its cell, and the whole is turned round by a random offset. Which places are read has
nothing to do with the shuffle, so over shuffles a batch is an exactly uniform subset; and for the one shuffle there is,
every row is in a batch equally often.

What one shuffle cannot give is every pair of rows equally often: neighbours always come together. With runs of r of n
rows, the variance of a batch's mean is therefore off, as long as the file lives, by a relative error of about

    sqrt(4 r / (3 n))

(the mean square of the r sample autocovariances that enter it). Runs are made so short that this is at most 1%.
Slices as long as the batch would err by 28% at n/m = 17 (in memory they do no harm: there the shuffle changes).

The next block of the same chain is read in the background while the current one is computed. Only NumPy works there:
a compiled program that waits for this one must not be waited for.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

import numpy as np

_ERROR = 0.01  # of a batch's variance, for the one shuffle that a file has
_BYTES_KEPT = 2**29  # blocks that were read: of every chain and rung the current one and the next


def run_length(n: int, size: int) -> int:
    """Neighbouring rows to read at a time for a batch of ``size``, which it divides."""
    longest = min(size, max(1, int(_ERROR**2 * 3 * n / 4)))
    return next(length for length in range(longest, 0, -1) if size % length == 0)


def run_starts(rng: np.random.Generator, n: int, size: int, length: int, count: int) -> np.ndarray:
    """Where the runs of ``count`` batches begin, (count, runs); after row n - 1 comes row 0."""
    runs = size // length
    cell = n // runs
    within = rng.integers(cell - length + 1, size=(count, runs))
    return (rng.integers(n, size=(count, 1)) + cell * np.arange(runs) + within) % n


class ReadAhead:
    """Blocks by the key of a chain and their number; the next one of the same key is read in the background."""

    def __init__(self, read: Callable[[Any, int], Any], bytes_per_block: int):
        self._read = read
        self._room = max(2, _BYTES_KEPT // max(2 * bytes_per_block, 1))
        self._jobs: OrderedDict[Any, dict[int, Future]] = OrderedDict()
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1)

    def __call__(self, key: Any, number: int) -> Any:
        """One block. It is kept until another is asked for: a chain may stop in its middle, and go on later."""
        with self._lock:
            jobs = self._jobs.pop(key, {})
        job = jobs.get(number)
        if job is None or job.cancel():  # nobody is reading it yet
            job = Future()
            job.set_result(self._read(key, number))
        block = job.result()
        ahead = jobs.get(number + 1) or self._pool.submit(self._read, key, number + 1)
        with self._lock:
            self._jobs[key] = {number: job, number + 1: ahead}
            if len(self._jobs) > self._room:
                self._jobs.popitem(last=False)
        return block
