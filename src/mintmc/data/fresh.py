"""Batches read from a file, fresh for every step, a block of steps at a time.

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

_BYTES_KEPT = 2**29  # blocks that were read: of every chain and rung the current one and the next


class ReadAhead:
    """Blocks by the key of a chain and their number; the next one of the same key is read in the background."""

    def __init__(self, read: Callable[[Any, int], Any], bytes_per_block: int):
        self._read = read
        self._room = max(2, _BYTES_KEPT // max(2 * bytes_per_block, 1))
        self._jobs: OrderedDict[Any, dict[int, Future[Any]]] = OrderedDict()
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
