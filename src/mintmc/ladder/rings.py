"""Rings: a partition of the states by energy, and what is kept of a rung's past states in each cell.

A jump picks a state of the hotter rung's ring uniformly, so which ring a state belongs to must be a fixed function of
the state: its exact energy where the hotter rung reads all data, and otherwise its energy on a *fixed* random subset.
A fresh estimate at the jump alone would put a state into another ring than it was filed in, and break the jump's
reversibility.

Each ring keeps a uniform sample of all states that ever belonged to it, of bounded size (reservoir sampling; Vitter
1985).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.energy import Density, Referenced
from mintmc.ladder.kept import Kept
from mintmc.ladder.ladder import Ladder

MOST_RINGS = 2**16
"""Far more than energies can be told apart by."""


@dataclass(frozen=True)
class QuantileRings:
    """Edges at quantiles of the energies that a rung shows at first, then fixed; finer towards low energies.

    Only low energies are of use to the colder rung, so ring j of r ends at the quantile (j/r)^2.

    Examples
    --------
    >>> import mintmc
    >>> mintmc.QuantileRings(10)
    QuantileRings(count=10)
    """

    count: int = 20

    def __post_init__(self) -> None:
        check.plain(self)
        check.integer("count", self.count, 1, most=MOST_RINGS)


@dataclass(frozen=True)
class SpacedRings:
    """The paper's rule: edges H_1, H_2, ... above ``lowest`` with (H_{k+1} - H_k) / T_k = c, a ring for every rung.

    Examples
    --------
    >>> import mintmc
    >>> ladder = mintmc.Ladder([1, 2, 4])
    >>> mintmc.SpacedRings(c=10).edges(ladder)
    (10.0, 30.0)
    """

    c: float = 10.0
    lowest: float = 0.0

    def __post_init__(self) -> None:
        check.plain(self)
        check.number("c", self.c, 0)
        check.number("lowest", self.lowest, -np.inf)

    def edges(self, ladder: Ladder) -> tuple[float, ...]:
        """H_1, ..., H_K."""
        steps = self.c * np.asarray(ladder.temperatures[:-1])
        return tuple(float(edge) for edge in self.lowest + np.cumsum(steps))


RingRule = QuantileRings | SpacedRings | Sequence[float]
"""How rings are laid: a rule, or the edges themselves (energies above that of the reference state)."""


def fixed_edges(rule: RingRule, ladder: Ladder) -> tuple[float, ...] | None:
    """The edges between rings, where they are known beforehand; None if they come from a rung's first energies."""
    if isinstance(rule, QuantileRings):
        return None
    if isinstance(rule, SpacedRings):
        return rule.edges(ladder)
    return tuple(float(edge) for edge in rule)


def ring_count(rule: RingRule, ladder: Ladder) -> int:
    """The number of rings on every rung."""
    edges = fixed_edges(rule, ladder)
    if edges is not None:
        return len(edges) + 1
    assert isinstance(rule, QuantileRings)
    return rule.count


def check_rings(rule: Any) -> RingRule:
    """Refuse edges that are no edges; returns the rule."""
    if isinstance(rule, (QuantileRings, SpacedRings)):
        return rule
    given = check.listed("rings", rule, "QuantileRings, SpacedRings or a sequence of edges")
    if len(given) >= MOST_RINGS:
        raise ValueError(f"rings must have fewer than {MOST_RINGS} edges, got {check.shown(rule)}")
    edges = [check.number("rings", edge, -np.inf) for edge in given]
    if not edges or any(b <= a for a, b in pairwise(edges)):
        raise ValueError(f"rings must be strictly increasing edges, got {check.shown(edges)}")
    return tuple(edges)


def subset_size(batch_size: int, n: int, rings: int) -> int:
    """Rows of the fixed subset that tells apart the rings of a rung with such batches; 0 where none is needed.

    Its energies then err by about two thirds of their spread. A smaller subset blurs the rings, a larger one costs more
    than it gains.
    """
    return 0 if batch_size == n or rings == 1 else max(2, batch_size // 3)


class States(NamedTuple):
    """States of a rung, with any leading axes; what is None is not known."""

    theta: Any
    gradient: Any = None  # of -h, h what is tempered; where the rung reads all data, for a gradient proposal
    density: Density | None = None  # where the rung reads all data

    def packed(self) -> np.ndarray:
        """Each state as one row of numbers, parameters first."""
        numbers = [np.asarray(number)[..., None] for number in jax.tree.leaves(self.density)]
        gradient = [] if self.gradient is None else [self.gradient]
        return np.concatenate([self.theta, *gradient, *numbers], axis=-1)

    @classmethod
    def unpacked(cls, rows: Array, dim: int, with_jacobian: bool = False) -> States:
        """What was packed, of states with so many parameters."""
        rest = rows.shape[-1] - dim
        numbers = len(Density._fields) - (not with_jacobian)
        gradient = rows[..., dim : 2 * dim] if rest > numbers else None
        density = Density(*(rows[..., -i] for i in range(numbers, 0, -1))) if rest else None
        return cls(rows[..., :dim], gradient, density)


class FrozenRings(NamedTuple):
    """The rings of a hotter rung as a step reads them: frozen within a round."""

    edges: Array  # (rings - 1,) energies above the reference
    filled: Array  # (rings,) states kept
    states: Array  # (rings, capacity, numbers of a packed state)
    subset: Referenced | None  # the fixed rows that tell rings apart where the rung reads batches


def ring_of(energy: Array, edges: Array) -> Array:
    """The index of the ring that an energy belongs to."""
    return jnp.searchsorted(edges, energy, side="right")


class Rings:
    """What is kept of one rung's past states; changes between rounds only.

    Parameters
    ----------
    edges
        Energies between rings; None to take them from quantiles of the first states filed.
    rings, capacity
        Number of rings and the states that each keeps at most.
    like
        A packed state.
    path
        Of a file to keep the states in; None keeps them in memory.
    is_new
        Whether the file is to be made.
    """

    def __init__(
        self,
        edges: Sequence[float] | None,
        rings: int,
        capacity: int,
        like: np.ndarray,
        path: Path | None = None,
        is_new: bool = True,
    ):
        self.edges = None if edges is None else np.asarray(edges, np.float32)
        self.capacity = capacity
        self.seen = np.zeros(rings, np.int64)
        self.kept = Kept((rings * capacity, like.size), like.dtype, path, is_new)

    def file(self, energies: np.ndarray, states: np.ndarray, rng: np.random.Generator) -> None:
        """Add packed states, each to the ring of its energy, so that every ring stays a uniform sample of its past."""
        if self.edges is None:
            rings = len(self.seen)
            self.edges = np.quantile(energies, (np.arange(1, rings) / rings) ** 2).astype(np.float32)
        member = np.searchsorted(self.edges, energies.astype(np.float32), side="right")
        place = np.empty(len(member), np.int64)
        for ring in np.unique(member):
            new = np.flatnonzero(member == ring)
            # The t-th state of a ring draws a place among the first t; what falls beyond the capacity is dropped.
            place[new] = self.seen[ring] + np.arange(len(new))
            full = new[place[new] >= self.capacity]
            place[full] = rng.integers(0, place[full] + 1)
            self.seen[ring] += len(new)
        stays = place < self.capacity
        self.kept.write((member * self.capacity + place)[stays], states[stays])

    @property
    def known_edges(self) -> np.ndarray:
        """The edges; NaN before they are known."""
        return np.full(len(self.seen) - 1, np.nan, np.float32) if self.edges is None else self.edges

    def checkpoint(self) -> tuple[np.ndarray, ...]:
        """All that is not in the file."""
        return self.known_edges, self.seen, *self.kept.unsettled(), self.kept.checksum

    def restore(self, checkpoint: tuple[np.ndarray, ...]) -> None:
        """Go on from a checkpoint and the file that belongs to it."""
        edges, self.seen, places, values, checksum = checkpoint
        self.edges = None if np.isnan(edges).any() else edges
        self.kept.restore(places, values, checksum)

    def frozen(self, subset: Referenced | None) -> FrozenRings:
        """The rings as a step reads them."""
        edges = np.zeros(len(self.seen) - 1, np.float32) if self.edges is None else self.edges
        filled = np.minimum(self.seen, self.capacity).astype(np.int32)
        states = self.kept.on_device(len(self.seen), self.capacity, self.kept.rows.shape[1])
        return FrozenRings(jnp.array(edges), jnp.array(filled), states, subset)
