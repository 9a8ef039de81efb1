"""Moves on batches, compared with all data: what the noise of the batches does to the law of a run.

Take a state that was drawn and a move proposed from it. On all data the move has the log ratio D. Over the choice of
batch the chain accepts it with probability A, and the way back with A'. If it left the tempered posterior invariant,
log A - log A' would be D. What is left,

    eps = log A - log A' - D,

is what the chain's own law, pi_T exp(g), adds between the two ends: eps = g(theta') - g(theta). In coordinates u in
which the draws have mean 0 and covariance 1, g(u) = b'u + c |u|^2/2 is fitted to the pairs (``result/tilt.py``). The
draws are then off by about b standard deviations, and their spread by the factor sqrt(1 + c).

This needs no theory of the test: A and A' are counted by letting the chain's own acceptance test decide on random
batches, of log-likelihoods that are known for every row. It sees what a normal theory cannot: batches without a rare
event, skewed differences, heavy tails, a variance that is underestimated whenever the ratio is overestimated. It does
not see whether a chain has found all modes, and it is as good as its pairs: a few dozen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
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
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.posterior import FlatTarget
from mintmc.proposals import Point, Tuning
from mintmc.result.tilt import Tilt, fit_tilt

MOST_PAIRS, FEWEST_PAIRS = 64, 16
_LIKELIHOODS = 2**26
"""To evaluate at most, unless the fewest pairs take more."""
_TABLE = 2**17
"""Rows among which batches are drawn; all if there are no more."""
_BLOCK = 2**14
_MOST_BLOCKS = 2**10
"""Of more rows than these blocks hold, so many blocks spread over all of them stand for the rest."""
_RUNS = 8
"""Pieces of a shuffled table that a batch is made of: one piece would give few different batches where m is near n."""
_BESIDE = 64
"""Batches that are worked on side by side."""


@dataclass(frozen=True)
class MoveAudit:
    """What the noise of batches does to the law of one chain, or of one rung."""

    temperature: float
    pairs: int
    bias: float  # the largest shift of a parameter's mean, in standard deviations
    bias_error: float
    parameter: int  # of the flat vector: the one that is shifted most
    spread: float  # relative error of the standard deviations
    spread_error: float
    log_ratio_noise: float  # variance of the log ratio over batches, on all data; weighted by acceptance, as all below
    noise_known: float  # the noise that batches estimate, over the true one
    without_variance: float  # share of the batches whose rows do not differ
    skewness: float  # of the log ratio over batches
    excess_kurtosis: float
    impossible: int  # states drawn whose likelihood on all data is zero
    impossible_moves: float  # moves to such states that batches would make
    undefined: int  # states drawn where it is not a number
    data_touched: int
    tails: float = 0.0  # what skewness and kurtosis leave of the penalty, in the logarithm of an acceptance

    def to_json(self) -> dict[str, float]:
        """As plain numbers."""
        return asdict(self)


class Trial(NamedTuple):
    """States that were drawn, and how the chain moves from them."""

    kernel: MetropolisKernel  # on batches
    thetas: np.ndarray  # (pairs, d)
    tunings: list[Any]  # Tuning, one for each
    draws: np.ndarray | None  # (draws, d) that tell location and scale; None takes `thetas`
    controls: list[Any] | None = None  # Expansion, one for each, where the target is controlled


class _Pairs(NamedTuple):
    """The two ends of every move, on every row of a table."""

    there: np.ndarray  # (pairs, d)
    others: np.ndarray  # (pairs,) log prior and proposal ratios, and whatever else needs no batch
    table: np.ndarray  # (pairs, rows, 2)
    variance: np.ndarray  # (pairs,) of the differences of all rows
    skewness: np.ndarray  # (pairs,) of the differences of all rows
    kurtosis: np.ndarray
    impossible: np.ndarray  # (pairs, 2) whether the likelihood is zero at either end
    undefined: int


class _Counts(NamedTuple):
    """What the test decided on random batches, by pair, one way."""

    rate: Any  # mean acceptance
    square: Any  # mean of its square
    noise: Any  # mean of what the batches say it is
    without_variance: Any  # share of batches
    level: Any  # of recycled estimates: log E exp(level there - exact level); 0 elsewhere


def pair_count(n: int) -> int:
    """Moves to audit: a few dozen, fewer where a pass over all data is dear."""
    return int(np.clip(_LIKELIHOODS // (2 * n), FEWEST_PAIRS, MOST_PAIRS))


def audit_moves(target: FlatTarget, trial: Trial, seed: int) -> MoveAudit:
    """Compare moves from some states with all data."""
    kernel, n = trial.kernel, target.n
    key = jax.random.key(seed)
    pairs = _propose(target, trial, key)
    rows = pairs.table.shape[1]
    repeats = _repeats(kernel)
    n_eff = n / float(kernel.target.temperature)
    with np.errstate(invalid="ignore"):
        differences = pairs.table[..., 1].astype(float) - pairs.table[..., 0]
        exact = n_eff * differences.mean(axis=1) + pairs.others
        noise = n_eff**2 * pairs.variance / kernel.batch_size * (1 - kernel.batch_size / n)
    decide = _decider(target, kernel, n_eff, rows, repeats, len(exact))
    # A variance that is a millionth of what it should be is rounding.
    forward = decide(pairs.table, pairs.others, 1e-6 * noise, 0)
    backward = decide(pairs.table[..., ::-1], -pairs.others, 1e-6 * noise, 1)
    tilt = _tilt(trial, pairs.there, exact, forward, backward, repeats)
    weight = np.where(np.isfinite(exact) & np.isfinite(noise), forward.rate, 0)
    mean = partial(_weighted_mean, weight=weight)
    unseen = 1 - kernel.batch_size / n
    skewness = np.abs(pairs.skewness) / kernel.batch_size**0.5 * unseen**0.5
    kurtosis = pairs.kurtosis / kernel.batch_size * unseen
    tails = skewness * noise**1.5 / 6 + np.maximum(kurtosis, 0) * noise**2 / 24
    return MoveAudit(
        temperature=float(kernel.target.temperature),
        pairs=len(exact),
        bias=tilt.bias,
        bias_error=tilt.bias_error,
        parameter=tilt.parameter,
        spread=tilt.spread,
        spread_error=tilt.spread_error,
        log_ratio_noise=mean(noise),
        noise_known=mean(forward.noise) / max(mean(noise), 1e-30),
        without_variance=mean(forward.without_variance),
        skewness=mean(skewness),
        excess_kurtosis=mean(kurtosis),
        impossible=int(pairs.impossible[:, 0].sum()),
        impossible_moves=float(forward.rate[pairs.impossible[:, 1]].sum()),
        undefined=pairs.undefined,
        data_touched=(2 + kernel.target.beside) * len(exact) * min(n, _MOST_BLOCKS * _BLOCK),
        tails=mean(tails),
    )


def _tilt(
    trial: Trial, there: np.ndarray, exact: np.ndarray, forward: _Counts, backward: _Counts, repeats: int
) -> Tilt:
    """Fit g to what the decisions leave unexplained."""
    one, one_error = _log_mean(forward.rate, forward.square, repeats)
    other, other_error = _log_mean(backward.rate, backward.square, repeats)
    if isinstance(trial.kernel.test, Recycled):
        # A pseudo-marginal chain: its law is that of E exp(level), whatever it accepts.
        eps, variance = forward.level - backward.level, np.full(len(exact), 2 / repeats)
    else:
        eps, variance = one - other - exact, one_error + other_error
    # A move that is hopeless on all data, and that no batch would make, says nothing.
    useful = np.isfinite(eps) & ((np.abs(exact) < np.log(repeats)) | (np.minimum(one, other) > -np.log(repeats)))
    draws = trial.thetas if trial.draws is None else trial.draws
    # The flow between the ends, less where it is known badly.
    weights = np.exp(one) / (variance + np.average(eps[useful] ** 2, weights=np.exp(one)[useful]))
    given = (eps[useful], variance[useful], weights[useful])
    return fit_tilt(draws, trial.thetas[useful], there[useful], *given)


def _log_mean(mean: np.ndarray, square: np.ndarray, repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """The logarithm of a mean rate and its error variance; half a count more, so that a rate of 0 has them too."""
    rate = (repeats * mean + 0.5) / (repeats + 1)
    spread = np.maximum(square - mean**2, 0) + 0.25 / repeats
    return np.log(rate), spread / rate**2 / repeats


def _propose(target: FlatTarget, trial: Trial, key: Array) -> _Pairs:
    """A move from every state, and the log-likelihoods of all rows at both ends."""
    kernel, posterior = trial.kernel, target.posterior
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    data: Any = posterior.data

    def move(key: Array, theta: Array, tuning: Tuning, batch: Any) -> tuple[Array, Array]:
        numbers = kernel.proposal.randomness(key, kernel.dim, kernel.dtype)
        here = kernel.visit(theta, batch)
        there, log_q = kernel.proposal.move(numbers, here, lambda at: kernel.visit(at, batch), tuning)
        return there.theta, log_q + kernel.target.informed(batch).known(theta, there.theta)

    propose = target.compiled(("audited move", identity(kernel)), lambda: jax.jit(move))
    moved = []
    for i, (theta, tuning) in enumerate(zip(trial.thetas, trial.tunings, strict=True)):
        batch = {} if trial.controls is None else {"control": trial.controls[i]}
        if kernel.proposal.uses_gradient:
            batch["gradient"] = data.take(rng.choice(posterior.n, kernel.batch_size, replace=False))
        moved.append(propose(jax.random.fold_in(key, i), jnp.asarray(theta, kernel.dtype), tuning, batch))
    there, others = (np.stack([np.asarray(part[i]) for part in moved]) for i in range(2))
    ends = jnp.asarray(np.concatenate([trial.thetas, there]), kernel.dtype)
    kept, moments = _on_all_rows(target, kernel.target, ends, trial.controls, rng)
    count = len(there)
    return _Pairs(
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
    n, count, size = target.n, len(ends) // 2, min(_BLOCK, target.n)
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
    if len(firsts) > _MOST_BLOCKS:
        firsts = firsts[np.linspace(0, len(firsts) - 1, _MOST_BLOCKS).astype(int)]
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


def _repeats(kernel: MetropolisKernel) -> int:
    """Batches on which each move is decided: enough for an error of a few per cent."""
    if "stream" in kernel.test.roles:
        return 256
    return 512 if kernel.batch_size <= 2**12 else 256


def _decider(
    flat: FlatTarget, kernel: MetropolisKernel, n_eff: float, rows: int, repeats: int, count: int
) -> Callable[[np.ndarray, np.ndarray, np.ndarray, int], _Counts]:
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

    def once(table: Array, others: Array, least: Array, numbers: Any, tickets: dict[str, Array]) -> _Counts:
        given, zero = batch(table, tickets), jnp.zeros((), dtype)
        memory = test.remember(here.theta, given, target)
        if isinstance(test, Recycled):
            level = test.remember(there.theta, given, target)
            return _Counts(zero, zero, level.noise, zero, level.value - n_eff * table[:, 1].mean())
        info, _ = test.decide(numbers, here, there, others, memory, given, target)
        # A test that grows its batch does not know the probability of its decision.
        rate = (info["accepted"] if test.touches is None else info["acceptance_rate"]).astype(dtype)
        return _Counts(rate, rate**2, info["log_ratio_noise"], info["log_ratio_noise"] < least, zero)

    def pair(args: tuple[Array, Array, Array, Any, dict[str, Array]]) -> _Counts:
        table, others, least, numbers, tickets = args
        decided = jax.lax.map(lambda given: jax.vmap(partial(once, table, others, least))(*given), (numbers, tickets))
        means = jax.tree.map(lambda leaf: leaf.mean(dtype=dtype), decided)
        result: _Counts = means._replace(level=jax.nn.logsumexp(decided.level) - np.log(repeats))
        return result

    kind = ("audited decisions", identity(test), size, n_eff, rows, repeats)
    decide_all = flat.compiled(kind, lambda: jax.jit(lambda *args: jax.lax.map(pair, args)))
    # A test that reads as it needs would wait for the longest of those beside it.
    beside = 1 if "stream" in test.roles else _BESIDE
    shape = (count, repeats // beside, beside)

    def decide(table: np.ndarray, others: np.ndarray, least: np.ndarray, way: int) -> _Counts:
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
        result: _Counts = jax.tree.map(lambda leaf: np.asarray(leaf, float), counts)
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


def _weighted_mean(values: np.ndarray, weight: np.ndarray) -> float:
    if weight.sum() == 0:
        return float("nan")
    return float(np.average(np.where(weight > 0, values, 0), weights=weight))
