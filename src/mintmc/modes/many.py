"""All modes that a set of starts leads to.

From every start L-BFGS goes down, first on a random part of the rows (n^(3/4) of them, scaled up to n), then, once for
all starts that came to the same place, on all data. Two ends are one mode if no barrier stands between them: the energy
on the straight line from one to the other rises less than ``BARRIER`` above the higher end. Curvature is not asked:
singular models are flat to second order at their modes, and their ends lie scattered over one valley.

How many modes were not seen is estimated from how many were seen once (f1) and twice (f2): Chao's f1 (f1 - 1) /
(2 (f2 + 1)), as for species. Starts from one hot chain are alike, so it is asked of chains, too: how many modes did one
chain alone, or two, lead to. And where there are many modes: of how many chains does each lie on the way, as a
beta-binomial distribution, and how likely is it to lie on that of none. The largest answer counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from mintmc.flat import FlatTarget
from mintmc.modes.find import part_of
from mintmc.modes.newton import lbfgs
from mintmc.modes.search import NoModeError, Search

BARRIER = 5.0
"""Nats: a chain at T = 1 crosses lower ones."""
_NEAREST = 3
"""Modes, by distance, that an end is compared with."""
_BETWEEN = 9
"""Points of the line between two ends at which the energy is asked."""
_STEPS = 200
_AT_A_TIME, _FEWEST = 32, 256
"""Starts that are gone down from before it asks whether all modes were reached twice, and the fewest of them."""
_MANY, _ITERATIONS = 8, 50
"""Modes of which it can be asked how often chains come by, and how often it is."""
_HIDDEN = 0.9
"""Share of the modes that are not seen, from which on their number is no estimate any more."""
_ENOUGH = 0.1
"""Modes that may be missing when it ends before the last start."""
_MATTERS = (10.0, 2.0)
"""Nats, and nats a parameter, above the lowest mode: one that is higher has weight only if it is e^2 times as wide in
every direction."""
_BARREN = 4
"""Descents of a hot chain to no mode before it is left: too hot, it has gone where nothing leads back from."""
_TOO_HIGH = 20.0
"""Nats a parameter above the lowest mode: what is higher has no weight, whatever its width."""


class Found(NamedTuple):
    """Modes, the lowest first."""

    theta: np.ndarray  # (modes, d)
    energy: np.ndarray  # (modes,)
    starts: np.ndarray  # (modes,) how many starts led there
    lost: int  # starts that led nowhere
    rows_read: int
    chains: np.ndarray | None = None  # (modes,) how many hot chains led there
    origins: int = 0  # hot chains that led to any mode
    is_sample: bool = True  # whether starts came from hot chains, and not from somebody who knew where to begin

    @property
    def unseen(self) -> float:
        """An estimate of the number of modes with weight that no start led to; NaN if the starts are no sample."""
        if not self.is_sample:
            return float("nan")
        counted = self.matters(self.energy.min(initial=np.inf))
        if self.chains is None:
            return _chao(self.starts[counted])
        return _unseen(self.starts[counted], self.chains[counted], self.origins)

    def matters(self, lowest: float) -> np.ndarray:
        """Which of them may have weight beside one of an energy."""
        return np.asarray(self.energy < lowest + _MATTERS[0] + _MATTERS[1] * self.theta.shape[1])


def _chao(times: np.ndarray) -> float:
    once, twice = (int((times == number).sum()) for number in (1, 2))
    return once * (once - 1) / (2 * (twice + 1))


def _unseen(starts: np.ndarray, chains: np.ndarray, origins: int) -> float:
    return max(_chao(starts), _chao(chains), _missed(chains, origins) if len(chains) >= _MANY else 0.0)


def _missed(chains: np.ndarray, origins: int) -> float:
    """How many modes no chain led to, if each mode lies on the way of a beta-binomial number of them.

    0 where hardly any mode would be seen at all: any number would fit what was, and Chao's least number must do.
    """
    known, unseen = len(chains), 0.0
    for _ in range(_ITERATIONS):
        # Moments with those that were not seen among them.
        total = known + unseen
        share = chains.sum() / total / origins
        variance = ((chains - share * origins) ** 2).sum() / total + unseen / total * (share * origins) ** 2
        even = origins * share * (1 - share)
        alike = np.clip((variance / max(even, 1e-9) - 1) / max(origins - 1, 1), 1e-6, 1 - 1e-6)
        a, b = share * (1 / alike - 1), (1 - share) * (1 / alike - 1)
        at = np.arange(origins)
        none = float(np.exp(np.sum(np.log(b + at + 1e-300) - np.log(a + b + at))))
        if none > _HIDDEN:
            return 0.0
        unseen = known * none / (1 - none)
    return unseen


class _Valley(NamedTuple):
    theta: np.ndarray
    energy: float
    starts: int
    chains: frozenset[int]  # from which starts came

    @property
    def is_sure(self) -> bool:
        """Whether it was reached twice, and not by one chain alone."""
        return self.starts > 1 and len(self.chains) > 1


def _is_all(valleys: list[_Valley]) -> bool:
    """Whether hardly any mode can be missing."""
    starts, chains = (np.array(times) for times in zip(*((v.starts, len(v.chains)) for v in valleys), strict=True))
    origins = len(frozenset().union(*(valley.chains for valley in valleys)))
    return all(valley.is_sure for valley in valleys) and _unseen(starts, chains, origins) < _ENOUGH


def gather(
    flat: FlatTarget,
    starts: np.ndarray,
    *,
    chains: np.ndarray | None = None,
    seed: int = 0,
    is_enough: bool = False,
    advance: Callable[[], Any] = lambda: None,
    pool: Any = None,
) -> Found:
    """Go down from every start, and tell the modes from each other.

    Parameters
    ----------
    flat, starts
        The posterior, and flat vectors.
    chains
        Which hot chain each start is from; None if they are independent.
    seed
        Of the part of the rows that is gone down on first.
    is_enough
        Whether to end before the last start if every mode was reached twice.
    advance
        Called after each descent.
    pool
        Workers for several descents at a time.
    """
    run = map if pool is None else pool.map
    part = part_of(flat, seed)
    on_part, on_all = Search(part or flat, 2**31), Search(flat, 2**31)
    valleys: list[_Valley] = []
    lost = done = 0
    origin = np.arange(len(starts)) if chains is None else chains
    left = Counter[int]()  # descents that a chain has led to no mode
    low: list[_Valley] = []
    for first in range(0, len(starts), _AT_A_TIME):
        led = frozenset().union(*(valley.chains for valley in low))
        numbers = range(first, min(first + _AT_A_TIME, len(starts)))
        some = [number for number in numbers if origin[number] in led or left[int(origin[number])] < _BARREN]
        ends = run(lambda number: _descended(on_part, np.asarray(starts[number], float)), some)
        for number, end in zip(some, ends, strict=True):
            chain = int(origin[number])
            left[chain] += 1
            end = end and end._replace(chains=frozenset([chain]))
            lost += end is None
            valleys = valleys if end is None else _joined(on_part, valleys, end)
            advance()
        done += len(some)
        low = _low(valleys, flat.dim)
        if is_enough and done >= _FEWEST and low and _is_all(low):
            break
    reached = sum(valley.starts for valley in valleys)
    if part is not None:
        valleys = _on_all_rows(on_all, _low(valleys, flat.dim), run)
    valleys = sorted(_low(valleys, flat.dim), key=lambda valley: valley.energy)
    lost += reached - sum(valley.starts for valley in valleys)
    dim = flat.dim
    return Found(
        np.array([valley.theta for valley in valleys]).reshape(-1, dim),
        np.array([valley.energy for valley in valleys]),
        np.array([valley.starts for valley in valleys], int),
        lost,
        on_all.rows_read + (on_part.rows_read if part is not None else 0),
        None if chains is None else np.array([len(valley.chains) for valley in valleys], int),
        len(frozenset().union(*(valley.chains for valley in valleys))),
    )


def _on_all_rows(search: Search, coarse: list[_Valley], run: Callable[..., Iterable[Any]]) -> list[_Valley]:
    """Valleys that were found on a part of the rows, followed to their ends on all."""
    valleys: list[_Valley] = []
    ends = run(lambda valley: _descended(search, valley.theta), coarse)
    for valley, end in zip(coarse, ends, strict=True):
        end = end and end._replace(starts=valley.starts, chains=valley.chains)
        valleys = valleys if end is None else _joined(search, valleys, end)
    return valleys


def _low(valleys: list[_Valley], dim: int) -> list[_Valley]:
    """Those that are not too high to have weight."""
    highest = _TOO_HIGH * (1 + dim) + min((valley.energy for valley in valleys), default=0.0)
    return [valley for valley in valleys if valley.energy < highest]


def unknown(flat: FlatTarget, found: Found, known: np.ndarray) -> np.ndarray:
    """Which of the modes that were found are none of those that are known (modes, d)."""
    search = Search(flat, 2**31)
    valleys = [_Valley(theta, search.energy(theta), 1, frozenset()) for theta in known]
    new = [_Valley(theta, energy, 1, frozenset()) for theta, energy in zip(found.theta, found.energy, strict=True)]
    return np.array([len(_joined(search, valleys, valley)) > len(valleys) for valley in new], bool)


def _descended(search: Search, start: np.ndarray) -> _Valley | None:
    """Where L-BFGS leads; None if that is no state of finite density."""
    theta = jnp.asarray(start, search.best.dtype)
    try:
        first = search.first(theta)
    except NoModeError:
        return None
    end = lbfgs(search, theta, first, _STEPS)
    energy = search.energy(end.x)
    return _Valley(np.asarray(end.x), energy, 1, frozenset()) if np.isfinite(energy) else None


def _joined(search: Search, valleys: list[_Valley], new: _Valley) -> list[_Valley]:
    """The valleys with one more end: in one that is known, or in a new one."""
    order = np.argsort([np.linalg.norm(valley.theta - new.theta) for valley in valleys])[:_NEAREST]
    for i in order:
        known = valleys[i]
        if _is_one_valley(search, known, new):
            lower = min(known, new, key=lambda valley: valley.energy)
            joined = lower._replace(starts=known.starts + new.starts, chains=known.chains | new.chains)
            return [*valleys[:i], joined, *valleys[i + 1 :]]
    return [*valleys, new]


def _is_one_valley(search: Search, one: _Valley, other: _Valley) -> bool:
    """Whether no barrier stands between two ends."""
    highest = BARRIER + max(one.energy, other.energy)
    shares = (np.arange(_BETWEEN) + 1) / (_BETWEEN + 1)
    return all(search.energy((1 - share) * one.theta + share * other.theta) < highest for share in shares)
