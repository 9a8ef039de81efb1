"""How a batch of m of the n observations is drawn, in time that depends on m alone.

*shuffled*: a slice at a random offset into a shuffled copy that wraps around. Each batch is a uniform random
subset over the choice of shuffle and offset; the copy is reshuffled now and then so that the n possible slices change.
Contiguous reads make it nearly free.

*uniform*: the first m values of a keyed pseudo-random permutation of 0..n-1, so every batch is a fresh subset
without replacement. The permutation is a Feistel network over Z_a x Z_b with a*b just above n (Black & Rogaway
2002); the few values that fall outside are walked along their cycle until they are back inside. Where n is so small
that the network's few values show, it is a permutation proper, n random numbers sorted.

*runs*: rows that were shuffled on disk (``mintmc.data.prepare``) and lie in a memory map: short runs of neighbours in a
permuted order, read where they lie, without a copy.

*fresh*: any other data on disk. The rows of a block of steps are read at once (``mintmc.data.fresh``), and a ticket is
the rows themselves.

*from disk*: the same for tests that read on until they are sure: a step asks for its rows as far as it needs them.

A *ticket* is the randomness of one batch; ``take`` reads ``size`` rows from position ``start`` of its order. Tickets do
not depend on the state of the chain, so the runner draws them in bulk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.data.array import Rows
from mintmc.data.disk import DiskData
from mintmc.data.fresh import ReadAhead

BATCHINGS = ("shuffled", "uniform")
_ROUNDS = 8
_EXACT_BELOW = 128  # rows that are put in order one by one
_BYTES_AT_ONCE = 2**23  # of a block of steps: to read them in any order may take a pass over the file
_FEW = 16  # runs: copied one by one, they are read faster than in a gather
_ERROR = 0.02  # of a batch's variance, for the one shuffle that a prepared file has


class Batching(Protocol):
    """A way of drawing batches."""

    @property
    def by_block(self) -> bool:
        """Whether the rows of a block of steps are read at once: by ``tickets`` instead of ``ticket``."""
        return False

    def ticket(self, key: Array) -> Any:
        """The randomness of one batch."""
        ...

    def take(self, rows: Rows, ticket: Any, start: int | Array, size: int) -> Rows:
        """``size`` rows of the batch's random order, from position ``start`` on."""
        ...

    def tickets(self, key: Array, block: Array, steps: int, sizes: Mapping[str, int]) -> dict[str, Any]:
        """The rows of a block of so many steps, by role; only where batches are read by the block."""
        return {}

    def steps_at_once(self, sizes: Mapping[str, int]) -> int:
        """Steps whose rows are small enough to be read at once, where they are read by the block."""
        return 1


class Stream(NamedTuple):
    """A random order of all rows, to be read from the front as far as a test needs."""

    batching: Batching
    rows: Rows
    ticket: Any

    def take(self, start: int | Array, size: int) -> Rows:
        """``size`` rows from position ``start`` on; what lies beyond row n begins again from the front."""
        return self.batching.take(self.rows, self.ticket, start, size)


class Supplied(NamedTuple):
    """Rows, and whatever else a step reads as it is, by the part it plays."""

    rows: Rows
    others: Mapping[str, Any]


Batch = Mapping[str, Any]
"""What a step reads, by the part it plays: "all" is all n rows (and maybe some again), "stream" a Stream that is read
in pieces of the size asked for, and any other role ("test", "gradient") a batch of rows."""


def open_batches(sizes: Mapping[str, int], batching: Batching, rows: Rows, tickets: Mapping[str, Any]) -> Batch:
    """The batches of one step from their tickets; ``rows`` may be Supplied."""
    rows, others = rows if isinstance(rows, Supplied) else (rows, {})
    batch: dict[str, Any] = dict(others)
    for role, size in sizes.items():
        if role == "all":
            # A shuffled copy repeats some rows at its end; to cut them off would copy all data at every step.
            batch[role] = rows
        elif role == "stream":
            batch[role] = Stream(batching, rows, tickets[role])
        else:
            batch[role] = batching.take(rows, tickets[role], 0, size)
    return batch


@dataclass(frozen=True)
class Shuffled(Batching):
    """Slices of a shuffled copy; ``rows`` must repeat its first ``size`` rows (or more) at the end."""

    n: int

    def ticket(self, key: Array) -> Array:
        """A uniform offset into the shuffled copy."""
        return jax.random.randint(key, (), 0, self.n)

    def take(self, rows: Rows, ticket: Array, start: int | Array, size: int) -> Rows:
        """A contiguous slice."""
        begin = ticket if isinstance(start, int) and start == 0 else (ticket + start) % self.n
        return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, begin, size), rows)


@dataclass(frozen=True)
class Uniform(Batching):
    """Rows gathered in the order of a permutation."""

    n: int

    def ticket(self, key: Array) -> Array:
        """A permutation, or the round keys of one."""
        if self.n < _EXACT_BELOW:
            return jax.random.permutation(key, self.n)
        return jax.random.bits(key, (_ROUNDS,), jnp.uint32)

    def at(self, ticket: Array, places: Array) -> Array:
        """The numbers of the rows at these places of the order, each below n."""
        return ticket[places] if self.n < _EXACT_BELOW else permute(ticket, places, self.n)

    def order(self, ticket: Array, start: int | Array, size: int) -> Array:
        """The numbers of ``size`` rows from place ``start`` on."""
        return self.at(ticket, (start + jnp.arange(size)) % self.n)

    def take(self, rows: Rows, ticket: Array, start: int | Array, size: int) -> Rows:
        """A gather of distinct rows."""
        order = self.order(ticket, start, size)
        return jax.tree.map(lambda leaf: leaf[order], rows)


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
        return self.source.within(read, shapes, jax.random.key_data(key), block)

    def steps_at_once(self, sizes: Mapping[str, int]) -> int:
        """Steps whose rows are small enough to be read at once."""
        rows = sum(size for role, size in sizes.items() if role != "all")
        return max(1, _BYTES_AT_ONCE // max(rows * self.source.bytes_per_row, 1))

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
        return self._readers[kind](tuple(np.asarray(key).tolist()), int(block))


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


def permute(round_keys: Array, index: Array, n: int) -> Array:
    """Images of ``index`` under a pseudo-random permutation of 0..n-1 given by its round keys."""
    left_size = math.isqrt(n - 1) + 1
    right_size = -(-n // left_size)

    def shuffle_once(value: Array) -> Array:
        left, right = value // right_size, value % right_size
        for i in range(_ROUNDS):
            if i % 2 == 0:
                left = (left + _hash(right, round_keys[i]) % left_size) % left_size
            else:
                right = (right + _hash(left, round_keys[i]) % right_size) % right_size
        return left * right_size + right

    def walk(value: Array) -> Array:
        return jnp.where(value < n, value, shuffle_once(value))

    first = shuffle_once(index.astype(jnp.uint32))
    return jax.lax.while_loop(lambda value: jnp.any(value >= n), walk, first)


def _hash(value: Array, key: Array) -> Array:
    """A 32-bit avalanche of (value, key): multiply and xor-shift (Mueller's integer hash)."""
    mixed = (value * jnp.uint32(0x9E3779B9)) ^ key
    for _ in range(2):
        mixed = (mixed ^ (mixed >> 16)) * jnp.uint32(0x45D9F3B)
    return mixed ^ (mixed >> 16)
