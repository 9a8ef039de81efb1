"""MH-SS, Metropolis-Hastings with scalable subsampling (Prado, Nemeth & Sherlock 2024): exact, on a handful of rows.

With d_i = l_i(theta') - l_i(theta), w_i its expansion at a centre (``control/taylor.py``), e_i = d_i - w_i what that
leaves, and bounds |e_i| <= c_i M(theta, theta') (``control/bounds.py``), all over T at a temperature T:

1. Rate r = M sum c_i. If r >= n, the move is decided on all data, as any other: the rule is the same on the way back.
2. First stage: go on with probability min(1, exp(sum w_i + log prior and proposal ratio)), else reject. No row is read.
3. B ~ Poisson(r) rows are drawn, with probabilities proportional to c_i. With phi_i = c_i M + min(0, -e_i), row i is
   kept with probability phi_i / (c_i M), and the move accepted with probability min(1, product over kept rows of
   (phi_i + e_i) / phi_i).

Row i is so kept Poisson(phi_i) times, and on the way back Poisson(phi_i + e_i) times, as then -e_i takes the place of
e_i. In the ratio of these laws the exponentials make up for exp(sum e_i), which is what the first stage lacks, and the
powers of the means remain: the product. Detailed balance holds for every centre; a bad one costs rows. A row with |e_i|
> c_i M breaks it, and is counted.

The rows that are drawn are the points of a Poisson process of rate 1 that lie below r. Its gaps, and the row and the
uniform number of each point, do not depend on the state: those of the first few points are drawn in bulk for many
steps, and only a step that needs more draws them itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import count
from mintmc.acceptance.base import AcceptanceTest, decided
from mintmc.acceptance.words import random_words, uniform
from mintmc.control import Controlled
from mintmc.control.alias import Weighted
from mintmc.data import Batch, Rows
from mintmc.energy import Tempered
from mintmc.proposals import Point
from mintmc.statistics import DATA_TOUCHED, Info, Statistic, counted

_FIRST = 4
"""Points that are drawn in bulk, whether or not they are needed."""
_BLOCK = 64
"""Points that a step draws at a time if it needs more."""


class Points(NamedTuple):
    """Neighbouring points of a Poisson process of rate 1, each with a row."""

    gaps: Array  # from the point before
    row: Array
    uniform: Array  # whether the row is kept


class Randomness(NamedTuple):
    """All random numbers of one decision."""

    first: Array  # log of a uniform number, for each stage
    second: Array
    points: Points
    more: Array  # the key, for further points


class Sums(NamedTuple):
    """What is summed over the rows read."""

    log_ratio: Array
    read: Array
    kept: Array
    violations: Array


@dataclass(frozen=True, eq=False)
class Scalable(AcceptanceTest):
    """The test of MH-SS."""

    rows: Weighted  # rows and their c_i
    distance: Callable[[Array, Array, Array], Array]  # here, there, centre -> M, at T = 1
    roles: ClassVar[tuple[str, ...]] = ("all",)
    statistics: ClassVar[tuple[Statistic, ...]] = (
        DATA_TOUCHED,
        counted("rows_read"),
        counted("kept"),
        counted("bound_violations"),
        counted("on_all_data", "steps"),
    )
    rests_on_bounds: ClassVar[bool] = True
    touches: ClassVar[None] = None

    def randomness(self, key: Array, dtype: Any) -> Randomness:
        """Two uniform numbers, the first points, and a key for more."""
        first, second = jnp.log(uniform(random_words(key, 0, 1)[0], dtype))
        return Randomness(first, second, self._points(key, 1, _FIRST, dtype), key)

    def decide(
        self, randomness: Randomness, here: Point, there: Point, log_q: Any, memory: Any, batch: Batch, target: Tempered
    ) -> tuple[Info, Any]:
        """On all data, or in two stages."""
        assert isinstance(target, Controlled)
        info = self._decide(randomness, here.theta, there.theta, log_q, batch, target)
        return info, memory

    def _decide(
        self, noise: Randomness, here: Array, there: Array, log_q: Any, batch: Batch, target: Controlled
    ) -> Info:
        n, T, rows = target.model.n, target.temperature, batch["all"]
        size = self.distance(here, there, batch["control"].centre) / T
        rate = size * self.rows.total
        # A rate that is not a number makes the ratio so.
        known = jnp.where(rate >= 0, target.known(here, there) + log_q, jnp.nan)
        on_all = rate >= n
        goes_on = (noise.first < known) & ~on_all
        # One branch of three: on a short step, to choose costs as much as to compute.
        branch = jnp.where(on_all, 2, (goes_on & (noise.points.gaps[0] < rate)).astype(jnp.int32))
        sums = jax.lax.switch(
            branch,
            [
                lambda: _nothing(here.dtype),
                lambda: self._read(noise, rate, here, there, size, rows, target),
                lambda: _nothing(here.dtype)._replace(log_ratio=_full_ratio(here, there, rows, target)),
            ],
        )
        # All data decide with the first uniform number and leave nothing to the second, as does reading no row.
        ratio = jnp.where(on_all, sums.log_ratio + log_q, known)
        left = jnp.where(on_all, 0, sums.log_ratio)
        is_defined = ~(jnp.isnan(ratio) | jnp.isnan(left))
        first, second = noise.first < ratio, noise.second < left
        # What the second stage would have said if the first had not rejected is not known: on average this is right.
        rate_of = jnp.where(on_all, ratio, jnp.where(goes_on, left, -jnp.inf))
        info = decided(
            accepted=is_defined & first & second,
            acceptance_rate=jnp.where(is_defined, jnp.exp(jnp.minimum(rate_of, 0)), 0),
            log_ratio_noise=jnp.zeros_like(ratio),
            is_defined=is_defined,
        )
        few = count.times(2 + target.beside, sums.read)
        return info | {
            "data_touched": jax.tree.map(lambda all_, few: jnp.where(on_all, all_, few), count.of(2 * n), few),
            "rows_read": jnp.where(on_all, n, sums.read),
            "kept": sums.kept,
            "bound_violations": sums.violations,
            "on_all_data": on_all.astype(jnp.int32),
        }

    def _read(
        self, noise: Randomness, rate: Array, here: Array, there: Array, size: Array, rows: Rows, target: Controlled
    ) -> Sums:
        """What the rows at all points below ``rate`` say, read in blocks."""
        sum_up = partial(_sum_block, here=here, there=there, size=size, rows=rows, weighted=self.rows, target=target)

        def more(carry: tuple[Array, Array, Sums]) -> tuple[Array, Array, Sums]:
            i, left, sums = carry
            points = self._points(noise.more, i, _BLOCK, here.dtype)
            left, block = sum_up(points, left)
            return i + 1, left, jax.tree.map(jnp.add, sums, block)

        first = (jnp.full((), 2, jnp.int32), *sum_up(noise.points, rate))
        return jax.lax.while_loop(lambda carry: carry[1] > 0, more, first)[2]

    def _points(self, key: Array, block: Array | int, number: int, dtype: Any) -> Points:
        """The points of a block; words of block 0 are for the two stages."""
        words = random_words(key, block, 2 * number).reshape(2, number, 2)
        gaps, kept = uniform(words[0, :, 0], dtype), uniform(words[0, :, 1], dtype)
        return Points(-jnp.log1p(-gaps), self.rows.pick(words[1]), kept)


def kept_mean(residual: Array, bound: Array) -> Array:
    """phi: how often a row of residual e and bound c M is kept on average."""
    return bound - jnp.maximum(residual, 0)


def log_weight(residual: Array, bound: Array) -> Array:
    """What a kept row adds to the log ratio: log (phi + e) / phi."""
    mean = kept_mean(residual, bound)
    return jnp.log(mean + residual) - jnp.log(mean)


def _sum_block(
    points: Points,
    left: Array,
    here: Array,
    there: Array,
    size: Array,
    rows: Rows,
    weighted: Weighted,
    target: Controlled,
) -> tuple[Array, Sums]:
    """What is left of the rate after these points, and what the rows at those before its end say."""
    at = jnp.cumsum(points.gaps)
    is_read = at < left
    residual, rounding = residuals(target, here, there, target.model.rows_at(rows, points.row))
    bound = weighted.each[points.row] * size
    # A difference of two rounded numbers may exceed its bound by their rounding, which is nobody's fault.
    is_violated = ~(jnp.abs(residual) <= bound + rounding)
    residual = jnp.clip(residual, -bound, bound)
    kept = is_read & (points.uniform * bound < kept_mean(residual, bound))
    # A likelihood that is not a number makes the ratio so, whether or not the row would have been kept.
    counted = is_read & (kept | jnp.isnan(residual))
    sums = Sums(
        jnp.where(counted, log_weight(residual, bound), 0).sum(),
        *(jnp.sum(which, dtype=jnp.int32) for which in (is_read, kept, is_read & is_violated)),
    )
    return left - at[-1], sums


def residuals(target: Controlled, here: Array, there: Array, rows: Rows) -> tuple[Array, Array]:
    """e_i / T of some rows, and how far off rounding may have put them."""
    # One after the other: for so few rows, the product of two matrices takes longer than two of a matrix and a vector.
    before, after = target.levels(here, rows), target.levels(there, rows)
    rounding = 8 * jnp.finfo(here.dtype).eps * (jnp.abs(before) + jnp.abs(after))
    return (after - before) / target.temperature, rounding / target.temperature


def _nothing(dtype: Any) -> Sums:
    zero = jnp.zeros((), jnp.int32)
    return Sums(jnp.zeros((), dtype), zero, zero, zero)


def _full_ratio(here: Array, there: Array, rows: Rows, target: Controlled) -> Array:
    return target.log_ratio(target.model.density(here, rows), target.model.density(there, rows))
