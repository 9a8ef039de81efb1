"""R-hat while a run goes on, at next to no cost: of some draws of some parameters, and not often.

Draws are kept as they are made, every so many of them: whenever there are too many, every second one is dropped. So
what is kept is spread evenly over the run, whatever its length, and nothing is read from a store but once, after a
run was resumed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from mintmc.result.mixing import rhat
from mintmc.run.protocol import Run

NEEDS = ("scipy.special",)
"""What is imported when it first looks."""
_DRAWS, _NUMBERS = (1000, 4000), 2**20
"""Of all chains together, at most: fewer where there are many parameters. R-hat of few is above 1 by chance."""
_PARAMETERS = 1000
"""Looked at, at most: of more, every so many."""
_FEWEST = 20
"""Draws of a chain from which on chains are compared."""
_SECONDS, _SHARE = 2.0, 0.01
"""Between two looks, at least, and the part of the time that they may take."""
_PER_NUMBER = 4e-7
"""Seconds that a look takes for each number, about, before one was timed."""


class Glimpse:
    """Keeps some draws of a run, and knows the R-hat of them.

    Parameters
    ----------
    stored
        Called after a run was resumed: the first so many draws in its store, (chain, draw, d), every so many of them.
    """

    def __init__(self, stored: Callable[[int, int], np.ndarray]):
        self._stored = stored
        self._kept: np.ndarray | None = None  # (chain, draw, parameter), every ``_step`` draws from the first on
        self._step = 1
        self._seen = 0
        self._rhat, self._cost = np.nan, 0.0
        self._begun = self._at = time.perf_counter()

    def rhat(self, run: Run, is_last: bool) -> float:
        """The largest R-hat of a parameter as last computed; NaN if it is not known, as of one chain."""
        if run.drawn > self._seen and len(run.waiting) > 1:
            self._keep(run)
            if self._is_due(is_last):
                begun = time.perf_counter()
                assert self._kept is not None
                found = rhat(self._kept)
                self._rhat = float(np.nanmax(found)) if np.isfinite(found).any() else np.nan
                self._at = time.perf_counter()
                self._cost = self._at - begun
        return self._rhat

    def _is_due(self, is_last: bool) -> bool:
        kept = self._kept
        if kept is None or kept.shape[1] < _FEWEST:
            return False
        cost = self._cost or kept.size * _PER_NUMBER
        passed = time.perf_counter() - (self._at if self._cost else self._begun)
        return passed * _SHARE >= cost and (is_last or not self._cost or passed >= _SECONDS)

    def _keep(self, run: Run) -> None:
        """Add the draws that were made since last time."""
        waiting = run.waiting
        first = run.drawn - waiting.shape[1]
        columns = slice(None, None, -(-waiting.shape[2] // _PARAMETERS))
        if self._kept is None:
            self._kept = waiting[:, :0, columns]
            if first > 0:
                while self._is_much(waiting, first // self._step):
                    self._step *= 2
                self._kept, self._seen = self._stored(first, self._step)[:, :, columns], first
        new = waiting[:, self._seen - first :][:, -self._seen % self._step :: self._step, columns]
        self._kept, self._seen = np.concatenate([self._kept, new], axis=1), run.drawn
        while self._is_much(waiting, self._kept.shape[1]):
            self._kept, self._step = self._kept[:, ::2].copy(), 2 * self._step

    def _is_much(self, waiting: np.ndarray, draws: int) -> bool:
        most = min(max(_NUMBERS // min(waiting.shape[2], _PARAMETERS), _DRAWS[0]), _DRAWS[1])
        return draws * len(waiting) > most and draws > 2 * _FEWEST
