"""Whole numbers beyond 32 bits under ``jit``: two words of 32 bits, high * 2^24 + low.

Sums of them are exact, so they do not depend on how a run is cut into stretches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

_BITS = 24
_UNITS = 2**20


class Count(NamedTuple):
    """A number of things."""

    high: Any
    low: Any


def nothing() -> Count:
    """None of them yet."""
    return Count(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def add(count: Count, more: Array | Count) -> Count:
    """Count more: a count, or at most 2^31 - 2^24."""
    more = more if isinstance(more, Count) else Count(0, jnp.asarray(more, jnp.int32))
    low = count.low + more.low
    return Count(count.high + more.high + (low >> _BITS), low & (2**_BITS - 1))


def of(number: int) -> Count:
    """A count that is known beforehand.

    Examples
    --------
    >>> int(total(add(of(3_000_000_000), 5)))
    3000000005
    """
    return Count(jnp.asarray(number >> _BITS, jnp.int32), jnp.asarray(number & (2**_BITS - 1), jnp.int32))


def times(factor: int, rows: Array) -> Count:
    """``factor`` (at most 64) times a number of at most 31 bits, without overflow.

    Examples
    --------
    >>> int(total(times(3, jnp.asarray(2_000_000_000))))
    6000000000
    """
    high, low = rows >> _BITS, rows & (2**_BITS - 1)
    return add(Count(factor * high, jnp.zeros_like(low)), factor * low)


def multiple(number: int, factor: Array) -> Count:
    """``number``, known beforehand, times a factor of at most 2^16 that is not.

    Examples
    --------
    >>> int(total(multiple(3_000_000_000, jnp.asarray(65_536)))) == 3_000_000_000 * 65_536
    True
    """
    half = _BITS // 2
    high, low = number >> _BITS, number & (2**_BITS - 1)
    middle = (low >> half) * factor
    result = add(Count(high * factor + (middle >> half), (middle & (2**half - 1)) << half), nothing())
    return add(result, (low & (2**half - 1)) * factor)


def add_rate(count: Count, rate: Array) -> Count:
    """Count a number in [0, 1], in millionths; what is undefined counts as 0."""
    return add(count, jnp.round(jnp.nan_to_num(rate) * _UNITS).astype(jnp.int32))


def total(count: Any) -> np.ndarray:
    """What was counted, on the host; a plain array is taken as it is.

    Examples
    --------
    >>> count = nothing()
    >>> for _ in range(3):
    ...     count = add(count, 2_000_000_000)
    >>> int(total(count))
    6000000000
    """
    if not isinstance(count, Count):
        return np.asarray(count).astype(np.int64)
    result: np.ndarray = np.asarray(count.high).astype(np.int64) * 2**_BITS + np.asarray(count.low)
    return result


def rate_total(count: Count) -> np.ndarray:
    """The sum of the numbers that were counted as rates."""
    return total(count) / _UNITS
