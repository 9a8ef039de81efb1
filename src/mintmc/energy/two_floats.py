"""Sums in two floats: a sum of 1e6 float32 numbers that keeps what rounding takes from it."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum, and what rounding took from it (Knuth)."""
    total = a + b
    added = total - a
    return total, (a - (total - added)) + (b - added)


def join(numbers: Array) -> Array:
    """Join the sums (total, rest, gradient) of 2^k neighbouring parts: the same tree, however they are shared out."""
    while numbers.shape[0] > 1:
        one, other = numbers[::2], numbers[1::2]
        total, error = two_sum(one[:, 0], other[:, 0])
        plain = (one + other)[:, 1:].at[:, 0].add(error)
        numbers = jnp.concatenate([total[:, None], plain], axis=1)
    return numbers[0]


def fold(total: Array, rest: Array) -> tuple[Array, Array]:
    """Sum the lanes of (total + rest), along their last axis, pairwise into one two-float number."""
    while total.shape[-1] > 1:
        if total.shape[-1] % 2:
            total, rest = (jnp.concatenate([lane, jnp.zeros_like(lane[..., :1])], -1) for lane in (total, rest))
        half = total.shape[-1] // 2
        total, error = two_sum(total[..., :half], total[..., half:])
        rest = rest[..., :half] + rest[..., half:] + error
    return total[..., 0], rest[..., 0]
