"""The compiled programs of one chain: a stretch of warm-up, and a stretch of draws.

Two programs serve a whole run, whatever its length: the stretch to run is an argument. Randomness is keyed by
the index of the step and drawn in aligned blocks, so a chain does not depend on how it is cut into stretches, on the
number of chains or on the machine's cores: one chain is always one program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import count, statistics
from mintmc.compiled import identity
from mintmc.data import Batch, Batching, Rows, open_batches
from mintmc.kernels.base import Kernel
from mintmc.proposals import Tuning
from mintmc.run import adapt
from mintmc.statistics import Info

_STEPS_AT_ONCE = 512
_NUMBERS_AT_ONCE = 2**18


class Totals(NamedTuple):
    """Sums over a stretch of steps: exact, so that it does not matter where a stretch ends."""

    acceptance: count.Count
    touched: count.Count


@dataclass(frozen=True)
class Programs:
    """Functions of one chain, ready to be compiled; ``first`` and ``last`` count draws (steps of warm-up).

    Parameters
    ----------
    kernel, batching
        One step, and how its batches are drawn.
    thin, most_draws
        Steps of a draw, and draws that one call records at most.
    warmup
        Steps of warm-up.
    dim
        The number of parameters.
    """

    kernel: Kernel
    batching: Batching
    thin: int
    most_draws: int
    warmup: int
    dim: int

    def identity_of(self, program: str) -> Any:
        """Something hashable that tells a program from others: another warm-up is no other program of draws."""
        depends: dict[str, tuple[Any, ...]] = {
            "init": (),
            "warm": (self._block, self.warmup),
            "draw": (self._block, self._together, self.thin, self.most_draws),
        }
        return program, identity((self.kernel, self.batching, *depends[program]))

    def init(self, key: Array, theta: Array, rows: Rows) -> Any:
        """The first state."""
        return self.kernel.init(theta, self._batch(self._first_randomness(key)[1], rows))

    def warm(
        self, state: Any, adaptation: Any, key: Array, first: Array, last: Array, rows: Rows
    ) -> tuple[Any, Any, Totals]:
        """Steps of warm-up, from each of which the adaptation learns."""
        kernel, ends = self.kernel, jnp.asarray(adapt.window_ends(self.warmup))

        def body(i: Array, randomness: Any, carry: tuple[Any, Any, Totals]) -> tuple[Any, Any, Totals]:
            state, adaptation, totals = carry
            state, info = self._advance(randomness, state, rows, adapt.tuning(adaptation, final=False))
            if kernel.proposal is not None:
                adaptation = adapt.update(adaptation, kernel.proposal, *kernel.learns_from(state, info), ends[i])
            return state, adaptation, _add(totals, info)

        nothing = Totals(count.nothing(), count.nothing())
        result: tuple[Any, Any, Totals] = _loop(
            partial(self._randomness, key), first, last, self._block, 1, body, (state, adaptation, nothing)
        )
        return result

    def draw(
        self, state: Any, tuning: Tuning | None, key: Array, first: Array, last: Array, rows: Rows
    ) -> tuple[Any, Info]:
        """Draws, each of ``thin`` steps, and what is recorded of them."""
        declared, thin, together = self.kernel.statistics, self.thin, self._together
        one = partial(self._advance, rows=rows, tuning=tuning)

        def several(randomness: Any, state: Any) -> tuple[Any, Info]:
            """Steps whose rows are read together, fewer than a draw has."""
            tickets = self._read(key, randomness[1][0] // together, together)
            return self._summed(one, (randomness[0], tickets), state, together)

        def body(i: Array, randomness: Any, carry: tuple[Any, Info]) -> tuple[Any, Info]:
            state, record = carry
            if thin == 1:
                state, sums = one(randomness, state)
            elif together < thin:
                randomness = jax.tree.map(lambda leaf: leaf.reshape(-1, together, *leaf.shape[1:]), randomness)
                state, sums = self._summed(several, randomness, state, thin // together)
            else:
                state, sums = self._summed(one, randomness, state, thin)
            info = statistics.reduce(declared, sums, thin)
            new = statistics.packed(declared, self.kernel.position(state), info)
            put = partial(jax.lax.dynamic_update_index_in_dim, index=i - first, axis=0)
            return state, jax.tree.map(put, record, new)

        def example() -> Info:
            after, info = one(self._first_randomness(key), state)
            info = info if thin == 1 else statistics.nothing(declared, info)
            return statistics.packed(declared, self.kernel.position(after), info)

        shapes = jax.eval_shape(example)
        empty = jax.tree.map(lambda leaf: jnp.zeros((self.most_draws, *leaf.shape), leaf.dtype), shapes)
        of_block = partial(self._randomness, key, with_rows=together == thin)
        result: tuple[Any, Info] = _loop(of_block, first, last, self._block, thin, body, (state, empty))
        return result

    @property
    def _block(self) -> int:
        """Draws whose randomness is drawn at once."""
        block = max(1, min(_STEPS_AT_ONCE, _NUMBERS_AT_ONCE // (self.thin * self.dim)))
        if not self.batching.by_block:
            return block
        return max(1, min(block, self.batching.steps_at_once(self.kernel.batches) // self.thin))

    @property
    def _together(self) -> int:
        """Steps of a draw that are made at once: all, unless their rows would take too much memory."""
        if not self.batching.by_block:
            return self.thin
        at_once = self.batching.steps_at_once(self.kernel.batches)
        return max(steps for steps in range(1, min(self.thin, at_once) + 1) if self.thin % steps == 0)

    def _read(self, key: Array, number: Array, steps: int) -> dict[str, Rows]:
        return self.batching.tickets(key, number, steps, self.kernel.batches)

    def _randomness_of_step(self, key: Array) -> tuple[Any, Any]:
        roles = self.kernel.batches
        keys = jax.random.split(key, 1 + len(roles))
        tickets = {role: self.batching.ticket(k) for role, k in zip(roles, keys[1:], strict=True)}
        return self.kernel.randomness(keys[0]), tickets

    def _randomness(self, key: Array, number: Array, steps: int, with_rows: bool = True) -> tuple[Any, Any]:
        """The randomness of a block of steps, and their batches (``with_rows``) or the numbers of the steps."""
        numbers = number * steps + jnp.arange(steps)
        randomness, tickets = jax.vmap(lambda step: self._randomness_of_step(jax.random.fold_in(key, step)))(numbers)
        if self.batching.by_block:
            tickets = self._read(key, number, steps) if with_rows else numbers
        return randomness, tickets

    def _first_randomness(self, key: Array) -> tuple[Any, Any]:
        randomness, tickets = self._randomness_of_step(key)
        if self.batching.by_block:
            tickets = jax.tree.map(lambda leaf: leaf[0], self._read(key, jnp.zeros((), jnp.int32), 1))
        return randomness, tickets

    def _batch(self, tickets: dict[str, Any], rows: Rows) -> Batch:
        return open_batches(self.kernel.batches, self.batching, rows, tickets)

    def _advance(self, randomness: Any, state: Any, rows: Rows, tuning: Tuning | None) -> tuple[Any, Info]:
        return self.kernel.advance(randomness[0], state, self._batch(randomness[1], rows), tuning)

    def _summed(self, advance: Callable[[Any, Any], Any], randomness: Any, state: Any, steps: int) -> tuple[Any, Info]:
        """So many steps, and what they report summed up."""
        declared = self.kernel.statistics
        at = partial(jax.tree.map, lambda leaf, i: leaf[i])

        def one(i: Array, carry: tuple[Any, Info]) -> tuple[Any, Info]:
            state, sums = carry
            state, info = advance(at(randomness, jax.tree.map(lambda _: i, randomness)), state)
            return state, statistics.merge(declared, sums, info)

        # From nothing, not from the first step: a step that stands in the program twice is compiled twice.
        first = jax.eval_shape(lambda: advance(at(randomness, jax.tree.map(lambda _: 0, randomness)), state)[1])
        result: tuple[Any, Info] = jax.lax.fori_loop(0, steps, one, (state, statistics.nothing(declared, first)))
        return result


def _loop(
    randomness_of: Callable[..., Any],
    first: Array,
    last: Array,
    block: int,
    thin: int,
    body: Callable[..., Any],
    carry: Any,
) -> Any:
    """Run ``body(i, randomness, carry)`` for draws first <= i < last, with randomness drawn a block at a time."""

    def run_block(j: Array, carry: Any) -> Any:
        start = j * block
        randomness = randomness_of(j, block * thin)
        if thin > 1:
            randomness = jax.tree.map(lambda leaf: leaf.reshape(block, thin, *leaf.shape[1:]), randomness)

        def run_one(i: Array, carry: Any) -> Any:
            here = partial(jax.lax.dynamic_index_in_dim, index=i - start, keepdims=False)
            return body(i, jax.tree.map(here, randomness), carry)

        return jax.lax.fori_loop(jnp.maximum(first, start), jnp.minimum(last, start + block), run_one, carry)

    return jax.lax.fori_loop(first // block, (last + block - 1) // block, run_block, carry)


def _add(totals: Totals, info: Info) -> Totals:
    touched = totals.touched
    if "data_touched" in info:
        touched = count.add(touched, info["data_touched"])
    return Totals(count.add_rate(totals.acceptance, info["acceptance_rate"]), touched)
