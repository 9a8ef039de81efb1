"""How a batch of m of the n observations is drawn, in time that depends on m alone.

*shuffled*: a slice at a random offset into a shuffled copy that wraps around, or some that lie apart where the batch is
a large part of the data. Each batch is a uniform random subset over the choice of shuffle and offset; the copy is
reshuffled now and then so that the n possible slices change. Contiguous reads make it nearly free.

*uniform*: the first m values of a keyed pseudo-random permutation of 0..n-1, so every batch is a fresh subset
without replacement. The permutation is a Feistel network over Z_a x Z_b with a*b just above n (Black & Rogaway
2002); the few values that fall outside are walked along their cycle until they are back inside. Where n is so small
that the network's few values show, it is a permutation proper, n random numbers sorted.

How rows on disk are drawn is in ``mintmc.data.disk_batch``.

A *ticket* is the randomness of one batch; ``take`` reads ``size`` rows from position ``start`` of its order. Tickets do
not depend on the state of the chain, so the runner draws them in bulk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.apart import apart
from mintmc.data.columns import Rows, cut_out, gathered, pieced

BATCHINGS = ("shuffled", "uniform")
_ROUNDS = 8
_EXACT_BELOW = 128  # rows that are put in order one by one
_ERROR_OF_SLICES = 0.15  # of a batch's variance, for one of the shuffles of a run


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
    """Slices of a shuffled copy; ``rows`` must repeat its first ``size`` rows (or more) at the end.

    Which places are read has nothing to do with the shuffle, so over shuffles a batch is a uniform subset. But as long
    as one shuffle lasts, the variance of the mean of a slice of m rows is off by a relative error of about
    sqrt(4 m / (3 n)), the same for all chains: 28% at n/m = 17, of which the variance of MINT's draws gets a third.
    ``Shuffled.of`` therefore cuts a batch that is a large part of the data into pieces so short that this is at most
    15%. Each lies at a random place in a part of the copy of its own, so that pieces never overlap.
    """

    n: int
    pieces: int = 1

    @classmethod
    def of(cls, n: int, sizes: Mapping[str, int]) -> Shuffled:
        """For batches of these roles and sizes; a stream is read in one piece, however far."""
        drawn = [size for role, size in sizes.items() if role != "all"]
        return cls(n) if "stream" in sizes else cls(n, max((_pieces(n, size) for size in drawn), default=1))

    def ticket(self, key: Array) -> Any:
        """A uniform offset into the shuffled copy, and where in its part each piece lies."""
        if self.pieces == 1:
            return jax.random.randint(key, (), 0, self.n)
        turn, places = jax.random.split(key)
        return jax.random.randint(turn, (), 0, self.n), jax.random.uniform(places, (self.pieces,), jnp.float32)

    def take(self, rows: Rows, ticket: Any, start: int | Array, size: int) -> Rows:
        """A contiguous slice, or some that lie apart."""
        if self.pieces == 1:
            begin = ticket if isinstance(start, int) and start == 0 else (ticket + start) % self.n
            return cut_out(rows, begin, size)
        turn, places = ticket
        count = min(self.pieces, _pieces(self.n, size))
        part, length = self.n // count, -(-size // count)
        within = jnp.minimum((places[:count] * (part - length + 1)).astype(jnp.int32), part - length)
        begins = (turn + part * jnp.arange(count) + within) % self.n
        return apart(partial(pieced, length=length, size=size), rows, begins)


def _pieces(n: int, size: int) -> int:
    """Into how many pieces a batch must be cut; 1 where they would not fit beside each other."""
    count = min(size, max(1, math.ceil(4 * size / (3 * n * _ERROR_OF_SLICES**2))))
    return count if -(-size // count) <= n // count else 1


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
        return gathered(rows, order)


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
    result: Array = mixed ^ (mixed >> 16)
    return result
