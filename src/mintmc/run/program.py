"""The compiled programs of one chain: a stretch of warm-up, and a stretch of draws.

Two programs serve a whole run, whatever its length: the stretch to run is an argument. Randomness is keyed by
the index of the step and drawn in aligned blocks, so a chain does not depend on how it is cut into stretches, on the
number of chains or on the machine's cores: one chain is always one program.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.data import Batch, Batching, Fresh, Rows, open_batches
from mintmc.energy import Density
from mintmc.kernels.base import Info, Kernel
from mintmc.proposals import Tuning
from mintmc.result.tree import STATISTICS
from mintmc.run import adapt, count


class Record(NamedTuple):
    """What is kept of a stretch of draws, with a leading axis of draws."""

    numbers: Array  # theta, then STATISTICS: one write instead of five
    data_touched: Array | count.Count | None
    density: Density | None
    extras: dict[str, Array]
    snapshot: dict[str, Array]

    @classmethod
    def of(cls, theta: Array, info: Info) -> Record:
        """The record of one draw."""
        statistics = jnp.stack([getattr(info, name) for name in STATISTICS]).astype(theta.dtype)
        numbers = jnp.concatenate([theta, statistics])
        return cls(numbers, info.data_touched, info.density, info.extras, info.snapshot)

    @property
    def theta(self) -> Array:
        """The states."""
        return self.numbers[..., : -len(STATISTICS)]

    @property
    def touched(self) -> np.ndarray:
        """Data read for each draw, on the host."""
        return count.total(self.data_touched)

    @property
    def statistics(self) -> Array:
        """``STATISTICS``, in their order."""
        return self.numbers[..., -len(STATISTICS) :]


class Totals(NamedTuple):
    """Sums over a stretch of steps: exact, so that it does not matter where a stretch ends."""

    acceptance: count.Count
    touched: count.Count


class Programs(NamedTuple):
    """Functions of one chain, ready to be compiled. ``first`` and ``last`` count draws (steps of warm-up)."""

    init: Callable[[Array, Array, Rows], Any]  # key, theta, rows -> state
    warm: Callable[..., tuple[Any, adapt.Adaptation, Totals]]
    draw: Callable[..., tuple[Any, Record]]


def build(kernel: Kernel, batching: Batching, thin: int, capacity: int, warmup: int, dim: int) -> Programs:
    """The programs that run ``kernel`` for at most ``capacity`` draws at a time."""
    ends = jnp.asarray(adapt.window_ends(warmup))
    block = max(1, min(512, 2**18 // (thin * dim)))
    # Steps of a draw that are made at once: all, unless their rows, read from disk, would take too much memory.
    together = thin
    if isinstance(batching, Fresh):
        at_once = batching.steps_at_once(kernel.batches)
        block = max(1, min(block, at_once // thin))
        together = max(steps for steps in range(1, min(thin, at_once) + 1) if thin % steps == 0)

    def read(key: Array, number: Array, steps: int) -> dict[str, Rows]:
        assert isinstance(batching, Fresh)
        return batching.tickets(key, number, steps, kernel.batches)

    def noise_of_step(key: Array) -> tuple[Any, Any]:
        keys = jax.random.split(key, 1 + len(kernel.batches))
        tickets = {role: batching.ticket(k) for role, k in zip(kernel.batches, keys[1:], strict=True)}
        return kernel.randomness(keys[0]), tickets

    def noise_of(key: Array, number: Array, steps: int, with_rows: bool = True) -> tuple[Any, Any]:
        numbers = number * steps + jnp.arange(steps)
        noise, tickets = jax.vmap(lambda step: noise_of_step(jax.random.fold_in(key, step)))(numbers)
        if isinstance(batching, Fresh):
            tickets = read(key, number, steps) if with_rows else numbers
        return noise, tickets

    def first_noise(key: Array) -> tuple[Any, Any]:
        noise, tickets = noise_of_step(key)
        if isinstance(batching, Fresh):
            tickets = jax.tree.map(lambda leaf: leaf[0], read(key, jnp.zeros((), jnp.int32), 1))
        return noise, tickets

    def batch_of(tickets: dict[str, Any], rows: Rows) -> Batch:
        return open_batches(kernel.batches, batching, rows, tickets)

    def advance(noise: Any, state: Any, rows: Rows, tuning: Tuning | None) -> tuple[Any, Info]:
        return kernel.advance(noise[0], state, batch_of(noise[1], rows), tuning)

    def init(key: Array, theta: Array, rows: Rows) -> Any:
        return kernel.init(theta, batch_of(first_noise(key)[1], rows))

    def warm(state, adaptation, key, first, last, rows):
        def body(i, noise, carry):
            state, adaptation, totals = carry
            state, info = advance(noise, state, rows, adapt.tuning(adaptation, final=False))
            if kernel.proposal is not None:
                adaptation = adapt.update(adaptation, kernel.proposal, *kernel.learns_from(state, info), ends[i])
            return state, adaptation, _add(totals, info)

        return _loop(partial(noise_of, key), first, last, block, 1, body, (state, adaptation, _no_totals()))

    def draw(state, tuning, key, first, last, rows):
        one = partial(advance, rows=rows, tuning=tuning)

        def several(noise, state):
            """Steps whose rows are read together, fewer than a draw has."""
            tickets = read(key, noise[1][0] // together, together)
            return _summed(one, (noise[0], tickets), state, together)

        def body(i, noise, carry):
            state, record = carry
            if thin == 1:
                state, sums = one(noise, state)
            elif together < thin:
                noise = jax.tree.map(lambda leaf: leaf.reshape(-1, together, *leaf.shape[1:]), noise)
                state, sums = _summed(several, noise, state, thin // together)
            else:
                state, sums = _summed(one, noise, state, thin)
            info = _averaged(sums, thin)
            new = Record.of(kernel.position(state), info)
            put = partial(jax.lax.dynamic_update_index_in_dim, index=i - first, axis=0)
            return state, jax.tree.map(put, record, new)

        def example() -> Record:
            after, info = advance(first_noise(key), state, rows, tuning)
            return Record.of(kernel.position(after), info if thin == 1 else _counted(info))

        shapes = jax.eval_shape(example)
        empty = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), shapes)
        of_block = partial(noise_of, key, with_rows=together == thin)
        return _loop(of_block, first, last, block, thin, body, (state, empty))

    return Programs(init, warm, draw)


def _loop(noise_of, first, last, block, thin, body, carry):
    """Run ``body(i, noise, carry)`` for draws first <= i < last, with noise drawn a block at a time."""

    def run_block(j, carry):
        start = j * block
        noise = noise_of(j, block * thin)
        if thin > 1:
            noise = jax.tree.map(lambda leaf: leaf.reshape(block, thin, *leaf.shape[1:]), noise)

        def run_one(i, carry):
            here = partial(jax.lax.dynamic_index_in_dim, index=i - start, keepdims=False)
            return body(i, jax.tree.map(here, noise), carry)

        return jax.lax.fori_loop(jnp.maximum(first, start), jnp.minimum(last, start + block), run_one, carry)

    return jax.lax.fori_loop(first // block, (last + block - 1) // block, run_block, carry)


def _summed(advance, noise, state, steps):
    """So many steps, and what they report summed up."""
    at = partial(jax.tree.map, lambda leaf, i: leaf[i])

    def one(i, carry):
        state, sums = carry
        state, info = advance(at(noise, jax.tree.map(lambda _: i, noise)), state)
        return state, _merge(sums, info)

    state, info = advance(at(noise, jax.tree.map(lambda _: 0, noise)), state)
    return jax.lax.fori_loop(1, steps, one, (state, _counted(info)))


def _counted(info: Info) -> Info:
    """The same with data counted as sums are."""
    if info.data_touched is None or isinstance(info.data_touched, count.Count):
        return info
    return info._replace(data_touched=count.add(count.nothing(), info.data_touched))


def _averaged(sums, thin):
    """What is reported of one draw: counts add up over its ``thin`` steps, everything else is averaged."""
    if thin == 1:
        return sums
    extras = {name: v if jnp.issubdtype(v.dtype, jnp.integer) else v / thin for name, v in sums.extras.items()}
    return sums._replace(
        acceptance_rate=sums.acceptance_rate / thin, log_ratio_noise=sums.log_ratio_noise / thin, extras=extras
    )


def _merge(before: Info, now: Info) -> Info:
    touched: Any = before.data_touched
    if now.data_touched is not None:
        touched = count.add(touched, now.data_touched)
    return now._replace(
        acceptance_rate=before.acceptance_rate + now.acceptance_rate,
        log_ratio_noise=before.log_ratio_noise + now.log_ratio_noise,
        is_defined=before.is_defined & now.is_defined,
        data_touched=touched,
        extras=jax.tree.map(jnp.add, before.extras, now.extras),
    )


def _no_totals() -> Totals:
    return Totals(count.nothing(), count.nothing())


def _add(totals: Totals, info: Info) -> Totals:
    touched = totals.touched if info.data_touched is None else count.add(totals.touched, info.data_touched)
    return Totals(count.add_rate(totals.acceptance, info.acceptance_rate), touched)
