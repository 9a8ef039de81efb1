"""The moves of an audit: proposed from states that were drawn, with what every row says at both ends."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.compiled import identity
from mintmc.energy import Tempered
from mintmc.flat import FlatTarget
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.proposals import Tuning

_TABLE = 2**17
"""Rows among which batches are drawn; all if there are no more."""
BLOCK = 2**14
MOST_BLOCKS = 2**10
"""Of more rows than these blocks hold, so many blocks spread over all of them stand for the rest."""


class Trial(NamedTuple):
    """States that were drawn, and how the chain moves from them."""

    kernel: MetropolisKernel  # on batches
    thetas: np.ndarray  # (pairs, d)
    tunings: list[Any]  # Tuning, one for each
    draws: np.ndarray | None  # (draws, d) that tell location and scale; None takes `thetas`
    controls: list[Any] | None = None  # Expansion, one for each, where the target is controlled


class Pairs(NamedTuple):
    """The two ends of every move, on every row of a table."""

    there: np.ndarray  # (pairs, d)
    others: np.ndarray  # (pairs,) log prior and proposal ratios, and whatever else needs no batch
    table: np.ndarray  # (pairs, rows, 2)
    variance: np.ndarray  # (pairs,) of the differences of all rows
    skewness: np.ndarray  # (pairs,) of the differences of all rows
    kurtosis: np.ndarray
    impossible: np.ndarray  # (pairs, 2) whether the likelihood is zero at either end
    undefined: int


def propose(target: FlatTarget, trial: Trial, key: Array) -> Pairs:
    """A move from every state, and the log-likelihoods of all rows at both ends."""
    kernel, posterior = trial.kernel, target.posterior
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    data: Any = posterior.data

    def move(key: Array, theta: Array, tuning: Tuning, batch: Any) -> tuple[Array, Array]:
        numbers = kernel.proposal.randomness(key, kernel.dim, kernel.dtype)
        here = kernel.visit(theta, batch)
        there, log_q = kernel.proposal.move(numbers, here, lambda at: kernel.visit(at, batch), tuning)
        return there.theta, log_q + kernel.target.informed(batch).known(theta, there.theta)

    mover = target.compiled(("audited move", identity(kernel)), lambda: jax.jit(move))
    moved = []
    for i, (theta, tuning) in enumerate(zip(trial.thetas, trial.tunings, strict=True)):
        batch = {} if trial.controls is None else {"control": trial.controls[i]}
        if kernel.proposal.uses_gradient:
            batch["gradient"] = data.take(rng.choice(posterior.n, kernel.batch_size, replace=False))
        moved.append(mover(jax.random.fold_in(key, i), jnp.asarray(theta, kernel.dtype), tuning, batch))
    there, others = (np.stack([np.asarray(part[i]) for part in moved]) for i in range(2))
    ends = jnp.asarray(np.concatenate([trial.thetas, there]), kernel.dtype)
    kept, moments = _on_all_rows(target, kernel.target, ends, trial.controls, rng)
    count = len(there)
    return Pairs(
        there=there,
        others=others.astype(float),
        table=np.stack([kept[:count], kept[count:]], axis=-1),
        variance=moments.variance,
        skewness=moments.skewness,
        kurtosis=moments.kurtosis,
        impossible=np.isneginf(moments.lowest).reshape(2, count).T,
        undefined=int(np.isnan(moments.lowest[:count]).sum()),
    )


class _Moments(NamedTuple):
    variance: np.ndarray
    skewness: np.ndarray
    kurtosis: np.ndarray  # excess
    lowest: np.ndarray  # log-likelihood of a row, by state; NaN if one is


def _on_all_rows(
    target: FlatTarget, tempered: Tempered, ends: Array, controls: list[Any] | None, rng: np.random.Generator
) -> tuple[Any, _Moments]:
    """Log-likelihoods (state, row) of a random table of rows, and moments of the differences over all rows.

    Of a controlled target, log-likelihoods less their expansions.
    """
    data: Any = target.posterior.data
    n, count, size = target.n, len(ends) // 2, min(BLOCK, target.n)
    known, of_end = _distinct(controls, count)

    def at_all(rows: Any, ends: Array, known: Any) -> Array:
        def at(end: tuple[Array, Array]) -> Array:
            theta, which = end
            given = {"control": jax.tree.map(lambda leaf: leaf[which], known)}
            return tempered.informed(given).levels(theta, rows)

        levels: Array = jax.lax.map(at, (ends, of_end))
        return levels

    kind = ("at several states", type(tempered), None if controls is None else tuple(of_end.tolist()), len(ends))
    evaluate = target.compiled(kind, lambda: jax.jit(at_all))
    firsts = np.arange(0, n, size)
    if len(firsts) > MOST_BLOCKS:
        firsts = firsts[np.linspace(0, len(firsts) - 1, MOST_BLOCKS).astype(int)]
    lasts = np.minimum(firsts + size, n)
    read = np.concatenate([np.arange(first, last) for first, last in zip(firsts, lasts, strict=True)])
    where = np.sort(rng.choice(read, min(len(read), _TABLE), replace=False))
    kept = np.empty((len(ends), len(where)), np.float32)
    sums, lowest = np.zeros((5, count)), np.full(len(ends), np.inf)
    centre = None
    for first in firsts:
        # The last block is moved up to end at row n; what it shares with its neighbour is left out.
        start = min(int(first), n - size)
        values = np.asarray(evaluate(data.read(start, start + size), ends, known))[:, first - start :]
        inside = slice(*np.searchsorted(where, [first, first + size]))
        kept[:, inside] = values[:, where[inside] - first]
        lowest = np.minimum(lowest, values.min(axis=1))
        with np.errstate(invalid="ignore", over="ignore"):
            differences = values[count:].astype(float) - values[:count]
            centre = differences.mean(axis=1, keepdims=True) if centre is None else centre
            differences -= centre
            squares = differences**2
            powers = (np.ones_like(squares), differences, squares, squares * differences, squares**2)
            sums += [power.sum(axis=1) for power in powers]
    with np.errstate(invalid="ignore", divide="ignore"):
        variance, skewness, kurtosis = _shape(sums)
    return kept[:, rng.permutation(len(where))], _Moments(variance, skewness, kurtosis, lowest)


def _distinct(controls: list[Any] | None, count: int) -> tuple[Any, Array]:
    """The expansions that differ, stacked, and which of them each of the 2 * count ends goes by."""
    if controls is None:
        return None, jnp.zeros(2 * count, jnp.int32)
    by_id = {id(control): control for control in controls}
    order = {name: i for i, name in enumerate(by_id)}
    which = [order[id(control)] for control in controls]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *by_id.values()), jnp.asarray(which + which, jnp.int32)


def _shape(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Variance, skewness and excess kurtosis from sums of powers 0 to 4."""
    m1, m2, m3, m4 = sums[1:] / sums[0]
    variance = np.maximum(m2 - m1**2, 1e-30)
    third = m3 - 3 * m1 * m2 + 2 * m1**3
    fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
    return variance * sums[0] / np.maximum(sums[0] - 1, 1), third / variance**1.5, fourth / variance**2 - 3
