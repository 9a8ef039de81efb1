"""What is known of a run while it runs: what ``callback`` is told after each stretch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mintmc.flat import FlatTarget
from mintmc.result.mixing import ess_bulk, rhat
from mintmc.result.reading import flat_draws, judged_step
from mintmc.run.protocol import Run
from mintmc.store.run_store import open_run


@dataclass(frozen=True, eq=False)
class SoFar:
    """What is known of a run after a stretch of it. ``ess`` and ``rhat`` are computed when they are asked for.

    Ask while the callback runs: later the draws that they are computed from are others.
    """

    phase: str
    """"warm-up" or "draws"."""
    drawn: int
    """Draws of each chain that were made."""
    draws: int
    """Draws that were asked for; with ``until``, at most."""
    warmed: int
    """How far warm-up is: steps, or rounds where a ladder starts rung by rung."""
    warmup: int
    """How far it goes."""
    acceptance: np.ndarray
    """Mean acceptance rate of each chain in the stretch; on a ladder, of the coldest rung that moved."""
    seconds: float
    """That the run has taken, earlier sessions included."""
    look: Callable[[], np.ndarray] = field(repr=False)
    """The draws that are judged, (chain, draw, parameter), as the flat vectors that chains move."""

    @cached_property
    def ess(self) -> float:
        """The smallest bulk ESS of a parameter; NaN of fewer than four draws."""
        return float(np.min(ess_bulk(self.look())))

    @cached_property
    def rhat(self) -> float:
        """The largest R-hat of a parameter; NaN of fewer than four draws, or of one chain."""
        return float(np.max(rhat(self.look())))


def draws_so_far(run: Run, target: FlatTarget, folder: Path | None, least: float = 0.0) -> np.ndarray:
    """All draws that were made, (chain, draw, d), of many every so many: those in the store and those not yet there.

    At least ``least`` of all chains together, if there are so many.
    """
    waiting = run.waiting
    chains, count, dim = waiting.shape
    saved = run.drawn - count
    step = judged_step(chains, max(run.drawn, 1), dim, least)
    late = waiting[:, -saved % step :: step]
    if saved == 0 or folder is None:
        return late
    return np.concatenate([stored_draws(folder, target, saved, step), late], axis=1)


def stored_draws(folder: Path, target: FlatTarget, count: int, step: int) -> np.ndarray:
    """The first ``count`` draws of a store, (chain, draw, d), every so many of them."""
    with open_run(folder) as tree:
        chains = tree["sample_stats"].sizes["chain"]
        return flat_draws(tree, target.names, slice(0, count, step)).reshape(chains, -1, target.dim)


def quantities(draws: np.ndarray, target: FlatTarget, names: Sequence[str] | None) -> np.ndarray:
    """Draws as an array (chain, draw, number) of the quantities that are named; of all parameters if none is."""
    if names is None:
        return draws
    shown: dict[str, Any] = target.shown(draws)
    return np.concatenate([shown[name].reshape(*draws.shape[:2], -1) for name in names], axis=2)
