"""All modes that a set of starts leads to.

From every start L-BFGS goes down, first on a random part of the rows (n^(3/4) of them, scaled up to n), then, once for
all starts that came to the same place, on all data. Two ends are one mode if no barrier stands between them: the energy
on the straight line from one to the other rises less than ``BARRIER`` above the higher end. Curvature is not asked:
singular models are flat to second order at their modes, and their ends lie scattered over one valley.

How many modes were not seen is estimated from how many were seen once (f1) and twice (f2): Chao's f1 (f1 - 1) /
(2 (f2 + 1)), as for species.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from mintmc.modes.find import part_of
from mintmc.modes.newton import lbfgs
from mintmc.modes.search import NoModeError, Search
from mintmc.posterior import FlatTarget

BARRIER = 5.0
"""Nats: a chain at T = 1 crosses lower ones."""
_NEAREST = 3
"""Modes, by distance, that an end is compared with."""
_BETWEEN = 9
"""Points of the line between two ends at which the energy is asked."""
_STEPS = 200
_SHAKE = 0.05
"""Of the distance between ends: how far a saddle point is shaken."""


class Found(NamedTuple):
    """Modes, the lowest first."""

    theta: np.ndarray  # (modes, d)
    energy: np.ndarray  # (modes,)
    starts: np.ndarray  # (modes,) how many starts led there
    lost: int  # starts that led nowhere
    rows_read: int

    @property
    def unseen(self) -> float:
        """An estimate of the number of modes that no start led to."""
        once, twice = (int((self.starts == times).sum()) for times in (1, 2))
        return once * (once - 1) / (2 * (twice + 1))


class _Valley(NamedTuple):
    theta: np.ndarray
    energy: float
    starts: int


def gather(
    flat: FlatTarget, starts: Sequence[Any], *, seed: int = 0, advance: Callable[[], Any] = lambda: None
) -> Found:
    """Go down from every start, and tell the modes from each other; ``advance`` is called after each descent."""
    part = part_of(flat, seed)
    on_part, on_all = Search(part or flat, 2**31), Search(flat, 2**31)
    valleys: list[_Valley] = []
    lost = 0
    for start in starts:
        end = _descended(on_part, np.asarray(start, float), 1)
        lost += end is None
        valleys = valleys if end is None else _joined(on_part, valleys, end)
        advance()
    if part is not None:
        coarse, valleys = valleys, []
        for valley in coarse:
            end = _descended(on_all, valley.theta, valley.starts)
            lost += valley.starts if end is None else 0
            valleys = valleys if end is None else _joined(on_all, valleys, end)
            advance()
    valleys.sort(key=lambda valley: valley.energy)
    dim = flat.dim
    return Found(
        np.array([valley.theta for valley in valleys]).reshape(-1, dim),
        np.array([valley.energy for valley in valleys]),
        np.array([valley.starts for valley in valleys], int),
        lost,
        on_all.rows_read + (on_part.rows_read if part is not None else 0),
    )


def _descended(search: Search, start: np.ndarray, starts: int) -> _Valley | None:
    """Where L-BFGS leads; None if that is no state of finite density."""
    theta = jnp.asarray(start, search.best.dtype)
    try:
        first = search.first(theta)
    except NoModeError:
        return None
    end = lbfgs(search, theta, first, _STEPS)
    energy = search.energy(end.x)
    return _Valley(np.asarray(end.x), energy, starts) if np.isfinite(energy) else None


def _joined(search: Search, valleys: list[_Valley], new: _Valley) -> list[_Valley]:
    """The valleys with one more end: in one that is known, or in a new one."""
    order = np.argsort([np.linalg.norm(valley.theta - new.theta) for valley in valleys])[:_NEAREST]
    for i in order:
        known = valleys[i]
        if _barrier(search, known, new) < BARRIER:
            lower = min(known, new, key=lambda valley: valley.energy)
            return [*valleys[:i], lower._replace(starts=known.starts + new.starts), *valleys[i + 1 :]]
    return [*valleys, new]


def _barrier(search: Search, one: _Valley, other: _Valley) -> float:
    """How far the energy rises on the way from the higher of two ends to the other."""
    highest = max(one.energy, other.energy)
    for share in (np.arange(_BETWEEN) + 1) / (_BETWEEN + 1):
        rise = search.energy((1 - share) * one.theta + share * other.theta) - highest
        if not rise < BARRIER:
            return float("inf")
    return 0.0
