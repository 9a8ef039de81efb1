"""How batches are drawn from observations on disk.

*runs*: rows that were shuffled on disk (``mintmc.data.prepare``) and lie in a memory map: short runs of neighbours in a
permuted order, read where they lie, without a copy.

*fresh*: any other data on disk. The rows of a block of steps are read at once (``mintmc.data.fresh``), and a ticket is
the rows themselves.

*from disk*: the same for tests that read on until they are sure: a step asks for its rows as far as it needs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.data.batch import Batching, Uniform
from mintmc.data.columns import Rows
from mintmc.data.disk import DiskData
from mintmc.data.fresh import ReadAhead

_BYTES_AT_ONCE = 2**23  # of a block of steps: to read them in any order may take a pass over the file
_FEW = 16  # runs: copied one by one, they are read faster than in a gather
_ERROR = 0.02  # of a batch's variance, for the one shuffle that a prepared file has


@dataclass(frozen=True)
class Runs(Batching):
    """Runs of ``length`` neighbours, in the order of a permutation of all runs, from a random offset on.

    Which places are read has nothing to do with the shuffle on disk, so over shuffles a batch is an exactly uniform
    subset; and for the one shuffle there is, every row is in a batch equally often. What one shuffle cannot give is
    every pair of rows equally often: neighbours come together. With runs of r of n rows, the variance of a batch's mean
    is therefore off, as long as the file lives, by a relative error of about

        sqrt(4 r / (3 n))

    (the mean square of the r sample autocovariances that enter it); ``Runs.of`` makes them so short that this is at
    most 2%. Slices as long as the batch would err by 28% at n/m = 17 (in memory they do no harm: there the shuffle
    changes).

    ``beside`` is what a batch needs to know of its rows besides, see ``Posterior.referenced``.
    """

    n: int
    length: int
    beside: Callable[[Rows], Any] = lambda rows: rows

    @classmethod
    def of(cls, n: int, sizes: Collection[int], beside: Callable[[Rows], Any] = lambda rows: rows) -> Runs:
        """For batches of these sizes, each of which is a whole number of runs."""
        size = math.gcd(*sizes)
        longest = max(1, min(size, int(_ERROR**2 * 3 * n / 4)))
        return cls(n, next(length for length in range(longest, 0, -1) if size % length == 0), beside)

    @property
    def whole(self) -> Uniform:
        """The order of the runs. The few rows that are left over come last."""
        return Uniform(self.n // self.length)

    def ticket(self, key: Array) -> tuple[Array, Array]:
        """The offset, and the order of the runs."""
        turn, order = jax.random.split(key)
        return jax.random.randint(turn, (), 0, self.n), self.whole.ticket(order)

    def order(self, ticket: tuple[Array, Array], start: int | Array, size: int) -> Array:
        """The numbers of ``size`` rows from place ``start`` on: (size,), or (runs, length) from place 0 on."""
        turn, runs = ticket
        if isinstance(start, int) and start == 0 and size % self.length == 0 and size <= self.whole.n * self.length:
            first = self.whole.at(runs, jnp.arange(size // self.length)).astype(jnp.uint32) * self.length
            places = first[:, None] + jnp.arange(self.length, dtype=jnp.uint32)
        else:
            place = (jnp.asarray(start, jnp.uint32) + jnp.arange(size, dtype=jnp.uint32)) % self.n
            run = jnp.minimum(place // self.length, self.whole.n - 1)
            moved = self.whole.at(runs, run).astype(jnp.uint32) * self.length + place % self.length
            places = jnp.where(place < self.whole.n * self.length, moved, place)
        turned = places + turn.astype(jnp.uint32)
        return jnp.where(turned < self.n, turned, turned - self.n).astype(jnp.int32)

    def take(self, rows: Rows, ticket: tuple[Array, Array], start: int | Array, size: int) -> Rows:
        """A gather, or a copy run by run where they are few and none goes on at the front."""
        order = self.order(ticket, start, size)

        def gathered() -> Rows:
            at = partial(jax.tree.map, lambda leaf: leaf.at[order].get(mode="promise_in_bounds"))
            return (
                jax.tree.map(lambda leaf: leaf.reshape(size, *leaf.shape[2:]), at(rows)) if order.ndim > 1 else at(rows)
            )

        def copied() -> Rows:
            run = partial(jax.lax.dynamic_slice_in_dim, slice_size=self.length)
            return jax.tree.map(lambda leaf: jnp.concatenate([run(leaf, first) for first in order[:, 0]]), rows)

        if order.ndim == 1 or len(order) > _FEW:
            return self.beside(gathered())
        return self.beside(jax.lax.cond(jnp.any(order[:, 0] > self.n - self.length), gathered, copied))


@dataclass(frozen=True)
class Fresh(Batching):
    """Rows read from a file for a block of steps at once; each step of each chain has its own.

    ``beside`` is what a batch needs to know of its rows besides, see ``Posterior.referenced``.
    """

    source: DiskData
    beside: Callable[[Rows], Any] = lambda rows: rows
    _readers: dict[Any, ReadAhead] = field(default_factory=dict)
    by_block: ClassVar[bool] = True

    def ticket(self, key: Array) -> None:
        """Nothing yet: ``tickets`` reads those of all steps of a block."""

    def tickets(self, key: Array, block: Array, steps: int, sizes: Mapping[str, int]) -> dict[str, Rows]:
        """The batches of a block of so many steps, by role, with a leading axis of steps.

        They depend on the key, the block's number and its length alone.
        """
        sizes = {role: size for role, size in sizes.items() if role != "all"}
        if not sizes:
            return {}
        read = partial(self._read, (steps, tuple(sizes.items())))
        shapes = {role: self.source.shapes(steps, size) for role, size in sizes.items()}
        result: dict[str, Rows] = self.source.within(read, shapes, jax.random.key_data(key), block)
        return result

    def steps_at_once(self, sizes: Mapping[str, int]) -> int:
        """Steps whose rows are small enough to be read at once."""
        rows = sum(size for role, size in sizes.items() if role != "all")
        result: int = max(1, _BYTES_AT_ONCE // max(rows * self.source.bytes_per_row, 1))
        return result

    def take(self, rows: Rows, ticket: Rows, start: int | Array, size: int) -> Rows:
        """The rows that were read."""
        return self.beside(ticket)

    def _read(self, kind: tuple[int, tuple[tuple[str, int], ...]], key: Any, block: Any) -> dict[str, Rows]:
        """Run by the host."""
        steps, sizes = kind

        def read(words: tuple[int, ...], block: int) -> dict[str, Rows]:
            rng = np.random.default_rng([*words, block])
            return {role: self.source.batches(rng, size, steps) for role, size in sizes}

        if kind not in self._readers:
            rows = steps * sum(size for _, size in sizes)
            self._readers.setdefault(kind, ReadAhead(read, rows * self.source.bytes_per_row))
        result: dict[str, Rows] = self._readers[kind](tuple(np.asarray(key).tolist()), int(block))
        return result


@dataclass(frozen=True)
class FromDisk(Batching):
    """Rows read from a file when a step asks for them."""

    source: DiskData

    def ticket(self, key: Array) -> Array:
        """That of a permutation."""
        return Uniform(self.source.n).ticket(key)

    def take(self, rows: Rows, ticket: Array, start: int | Array, size: int) -> Rows:
        """Read by the host."""
        source = self.source
        return source.within(source.take, source.shapes(size), Uniform(source.n).order(ticket, start, size))
