"""Reading a random order of the data as far as a decision needs: the loop that all growing tests share.

Values are merged block by block into a running mean and sum of squares (Chan, Golub & LeVeque 1979), which does not
cancel in float32 as sum(d^2) - sum(d)^2/b would.

A variance is only as well known as there are values that make it up: a batch without a rare event has sample variance
0, and one with a single such event hardly any better. ``Moments.witnesses`` counts them, and a test that stops on an
estimated variance reads on until there are ``MIN_WITNESSES`` (or all data are read).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import count
from mintmc.acceptance.base import decided
from mintmc.apart import apart
from mintmc.data import Rows, Stream
from mintmc.statistics import Info

MIN_WITNESSES = 5.0
"""With 5 the variance is known to within a factor of about 1.5. Of 50 normal values there are 9.5, of 20 about 5.5."""


class Moments(NamedTuple):
    """Number, mean, sum of squared deviations and range of the values read so far."""

    read: Array
    mean: Array
    squares: Array
    lowest: Array
    highest: Array

    @classmethod
    def none(cls, dtype: jnp.dtype) -> Moments:
        """Of no values."""
        zero = jnp.zeros((), dtype)
        return cls(jnp.zeros((), jnp.int32), zero, zero, zero + jnp.inf, zero - jnp.inf)

    @property
    def largest(self) -> Array:
        """The largest size of a value."""
        return jnp.maximum(-self.lowest, self.highest)

    @property
    def witnesses(self) -> Array:
        """How many values as far out as the farthest would make up the variance; 0 if they differ by rounding only."""
        farthest = jnp.maximum(self.highest - self.mean, self.mean - self.lowest)
        differ = self.highest - self.lowest > 16 * jnp.finfo(self.mean.dtype).eps * self.largest
        return jnp.where(differ, self.squares / jnp.where(differ, farthest**2, 1), 0)

    @property
    def variance(self) -> Array:
        """The sample variance."""
        return self.squares / jnp.maximum(self.read - 1, 1)

    def noise_of_mean(self, n: int) -> Array:
        """Variance of the mean over the choice of the values out of n, without replacement: 0 if all are read."""
        return self.variance / jnp.maximum(self.read, 1) * (1 - self.read / n)

    def merge(self, values: Array, new: Array) -> Moments:
        """The moments with the first ``new`` > 0 of some more values."""

        def moments(values: Array, new: Array) -> tuple[Array, Array, Array, Array]:
            wanted = jnp.arange(values.size) < new
            mean = jnp.where(wanted, values, 0).sum() / new
            squares = jnp.where(wanted, (values - mean) ** 2, 0).sum()
            return mean, squares, values.min(where=wanted, initial=jnp.inf), values.max(where=wanted, initial=-jnp.inf)

        mean, squares, lowest, highest = apart(moments, values, new)
        total = self.read + new
        gap = mean - self.mean
        share = new / total
        return Moments(
            total,
            self.mean + gap * share,
            self.squares + squares + gap**2 * self.read * share,
            jnp.minimum(self.lowest, lowest),
            jnp.maximum(self.highest, highest),
        )


def decided_by_mean(log_ratio: Array, moments: Moments, threshold: Array, n: int, oracle: int) -> Info:
    """What is recorded of a decision by which side of a threshold the mean lies on; an oracle read ``oracle`` rows."""
    is_defined = ~jnp.isnan(log_ratio)
    info = decided(
        accepted=is_defined & (moments.mean > threshold),
        acceptance_rate=jnp.where(is_defined, jnp.exp(jnp.minimum(log_ratio, 0)), 0),
        log_ratio_noise=float(n) ** 2 * moments.noise_of_mean(n),
        is_defined=is_defined,
    )
    read = count.times(2, moments.read)
    return info | {"data_touched": count.add(read, count.of(oracle)), "oracle_touched": count.of(oracle)}


class _Reading(NamedTuple):
    moments: Moments
    look: Array
    next_look: Array
    done: Array


def read_until(
    stream: Stream,
    values_of: Callable[[Rows], Array],
    n: int,
    block: int,
    next_look: Callable[[Array, Array], Array],
    is_sure: Callable[[Moments, Array], Array],
    dtype: jnp.dtype,
) -> tuple[Moments, Array]:
    """Read rows until a look at them decides, or all are read; returns the moments and the number of looks.

    ``next_look(look, read)`` is the number of rows at which to look next, ``is_sure(moments, look)`` the test (look =
    1, 2, ...).
    """

    def body(reading: _Reading) -> _Reading:
        moments = reading.moments
        # The last block before a look (or before row n) is read only in part.
        new = jnp.minimum(block, reading.next_look - moments.read)
        moments = moments.merge(values_of(stream.take(moments.read, block)), new)
        looking = moments.read >= reading.next_look
        look = reading.look + looking
        done = looking & (is_sure(moments, look) | (moments.read >= n))
        following = jnp.where(looking, jnp.minimum(next_look(look, moments.read), n), reading.next_look)
        return _Reading(moments, look, following, done)

    none = jnp.zeros((), jnp.int32)
    first = jnp.minimum(next_look(none, none), n).astype(jnp.int32)
    start = _Reading(Moments.none(dtype), none, first, jnp.zeros((), bool))
    end = jax.lax.while_loop(lambda reading: ~reading.done, body, start)
    return end.moments, end.look
