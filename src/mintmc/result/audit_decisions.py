"""The decisions of an audit: a chain's own acceptance test, asked about known moves on many random batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.acceptance.minibatch import Recycled
from mintmc.compiled import identity
from mintmc.data import Stream, Uniform
from mintmc.energy import Model, Tempered
from mintmc.flat import FlatTarget
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.proposals import Point

_RUNS = 8
"""Pieces of a shuffled table that a batch is made of: one piece would give few different batches where m is near n."""
_BESIDE = 64
"""Batches that are worked on side by side."""


class Counts(NamedTuple):
    """What the test decided on random batches, by pair, one way."""

    rate: Any  # mean acceptance
    square: Any  # mean of its square
    noise: Any  # mean of what the batches say it is
    without_variance: Any  # share of batches
    level: Any  # of recycled estimates: log E exp(level there - exact level); 0 elsewhere


def repeats_of(kernel: MetropolisKernel) -> int:
    """Batches on which each move is decided: enough for an error of a few per cent."""
    if "stream" in kernel.test.roles:
        return 256
    return 512 if kernel.batch_size <= 2**12 else 256


def decider(
    flat: FlatTarget, kernel: MetropolisKernel, n_eff: float, rows: int, repeats: int, count: int
) -> Callable[[np.ndarray, np.ndarray, np.ndarray, int], Counts]:
    """A function that lets the acceptance test decide every pair of a table on random batches, one way."""
    test, size, dtype = kernel.test, min(kernel.batch_size, rows), kernel.dtype
    # The pair is a model of its own: its data are what the rows say at either end. Prior and proposal are in `others`.
    model = Model(lambda at, row: jnp.where(at[0] > 0, row[1], row[0]), lambda at: jnp.zeros(()), rows, rows)
    target, uniform = Tempered(model, rows / n_eff), Uniform(rows)
    here, there = Point(jnp.zeros(1, dtype)), Point(jnp.ones(1, dtype))

    def batch(table: Array, tickets: dict[str, Array]) -> dict[str, Any]:
        return {
            role: Stream(uniform, table, ticket) if role == "stream" else table[_numbers(ticket, size, rows)]
            for role, ticket in tickets.items()
        }

    def once(table: Array, others: Array, least: Array, numbers: Any, tickets: dict[str, Array]) -> Counts:
        given, zero = batch(table, tickets), jnp.zeros((), dtype)
        memory = test.remember(here.theta, given, target)
        if isinstance(test, Recycled):
            level = test.remember(there.theta, given, target)
            return Counts(zero, zero, level.noise, zero, level.value - n_eff * table[:, 1].mean())
        info, _ = test.decide(numbers, here, there, others, memory, given, target)
        # A test that grows its batch does not know the probability of its decision.
        rate = (info["accepted"] if test.touches is None else info["acceptance_rate"]).astype(dtype)
        return Counts(rate, rate**2, info["log_ratio_noise"], info["log_ratio_noise"] < least, zero)

    def pair(args: tuple[Array, Array, Array, Any, dict[str, Array]]) -> Counts:
        table, others, least, numbers, tickets = args
        decided = jax.lax.map(lambda given: jax.vmap(partial(once, table, others, least))(*given), (numbers, tickets))
        means = jax.tree.map(lambda leaf: leaf.mean(dtype=dtype), decided)
        result: Counts = means._replace(level=jax.nn.logsumexp(decided.level) - np.log(repeats))
        return result

    kind = ("audited decisions", identity(test), size, n_eff, rows, repeats)
    decide_all = flat.compiled(kind, lambda: jax.jit(lambda *args: jax.lax.map(pair, args)))
    # A test that reads as it needs would wait for the longest of those beside it.
    beside = 1 if "stream" in test.roles else _BESIDE
    shape = (count, repeats // beside, beside)

    def decide(table: np.ndarray, others: np.ndarray, least: np.ndarray, way: int) -> Counts:
        keys = jax.random.split(jax.random.key(way), shape)
        numbers = flat.compiled(
            ("audited numbers", identity(test)), lambda: _over(lambda key: test.randomness(key, dtype), len(shape))
        )(keys)
        rng = np.random.default_rng(way)
        tickets_of = flat.compiled(("audited tickets", rows), lambda: _over(uniform.ticket, len(shape)))
        tickets = {
            role: tickets_of(keys) if role == "stream" else _places(rng, shape, size, rows) for role in test.roles
        }
        arrays = (given.astype(dtype) for given in (table, others, least))
        counts = decide_all(*arrays, numbers, tickets)
        result: Counts = jax.tree.map(lambda leaf: np.asarray(leaf, float), counts)
        return result

    return decide


def _over(function: Callable[[Array], Any], dims: int) -> Callable[[Array], Any]:
    """The function of one key as a function of an array of keys."""
    for _ in range(dims):
        function = jax.vmap(function)
    return jax.jit(function)


def _runs(size: int, rows: int) -> tuple[int, int]:
    """How many pieces of a shuffled table a batch is made of, and how long they are."""
    runs = max(1, min(_RUNS, size // _RUNS))
    length = -(-size // runs)
    return (runs, length) if runs * length <= rows else (1, size)


def _places(rng: np.random.Generator, shape: tuple[int, ...], size: int, rows: int) -> np.ndarray:
    """Where the pieces of batches begin: anywhere, but they do not overlap."""
    runs, length = _runs(size, rows)
    free = np.sort(rng.integers(0, rows - runs * length + 1, (*shape, runs)), axis=-1)
    turn = rng.integers(0, rows, (*shape, 1))
    return ((free + np.arange(runs) * length + turn) % rows).astype(np.int32)


def _numbers(places: Array, size: int, rows: int) -> Array:
    """The rows of a batch."""
    _, length = _runs(size, rows)
    return ((places[:, None] + jnp.arange(length)) % rows).ravel()[:size]
