"""Reading a random order of the data as far as a decision needs: the loop that all growing tests share.

Values are merged block by block into a running mean and sum of squares (Chan, Golub & LeVeque 1979), which does not
cancel in float32 as sum(d^2) - sum(d)^2/b would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.data import Rows, Stream
from mintmc.energy import apart


class Moments(NamedTuple):
    """Number, mean, sum of squared deviations and largest size of the values read so far."""

    read: Array
    mean: Array
    squares: Array
    largest: Array

    @property
    def variance(self) -> Array:
        """The sample variance."""
        return self.squares / jnp.maximum(self.read - 1, 1)

    def noise_of_mean(self, n: int) -> Array:
        """Variance of the mean over the choice of the values out of n, without replacement: 0 if all are read."""
        return self.variance / jnp.maximum(self.read, 1) * (1 - self.read / n)

    def merge(self, values: Array, new: Array) -> Moments:
        """The moments with the first ``new`` > 0 of some more values."""

        def moments(values: Array, new: Array) -> tuple[Array, Array, Array]:
            wanted = jnp.arange(values.size) < new
            mean = jnp.where(wanted, values, 0).sum() / new
            return mean, jnp.where(wanted, (values - mean) ** 2, 0).sum(), jnp.where(wanted, jnp.abs(values), 0).max()

        mean, squares, largest = apart(moments, values, new)
        total = self.read + new
        gap = mean - self.mean
        share = new / total
        return Moments(
            total,
            self.mean + gap * share,
            self.squares + squares + gap**2 * self.read * share,
            jnp.maximum(self.largest, largest),
        )


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
    decided: Callable[[Moments, Array], Array],
    dtype: jnp.dtype,
) -> tuple[Moments, Array]:
    """Read rows until a look at them decides, or all are read; returns the moments and the number of looks.

    ``next_look(look, read)`` is the number of rows at which to look next, ``decided(moments, look)`` the test (look =
    1, 2, ...).
    """

    def body(reading: _Reading) -> _Reading:
        moments = reading.moments
        # The last block before a look (or before row n) is read only in part.
        new = jnp.minimum(block, reading.next_look - moments.read)
        moments = moments.merge(values_of(stream.take(moments.read, block)), new)
        looking = moments.read >= reading.next_look
        look = reading.look + looking
        done = looking & (decided(moments, look) | (moments.read >= n))
        following = jnp.where(looking, jnp.minimum(next_look(look, moments.read), n), reading.next_look)
        return _Reading(moments, look, following, done)

    zero, none = jnp.zeros((), dtype), jnp.zeros((), jnp.int32)
    first = jnp.minimum(next_look(none, none), n).astype(jnp.int32)
    start = _Reading(Moments(none, zero, zero, zero), none, first, jnp.zeros((), bool))
    end = jax.lax.while_loop(lambda reading: ~reading.done, body, start)
    return end.moments, end.look
