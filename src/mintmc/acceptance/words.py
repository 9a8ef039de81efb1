"""Random words in the middle of a step: threefry-2x32 (Salmon et al. 2011) in counter mode, as one kernel.

Nearly all randomness of a chain is drawn in bulk before its steps. What a step draws itself, because how much it needs
depends on the state, comes from here: the same generator as JAX's own, which on a CPU is a loop of five rounds of a
dozen kernels each, 20 microseconds for a handful of words.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def random_words(key: Array, block: Array | int, number: int) -> Array:
    """``number`` independent pairs of random words, uint32 of shape (number, 2), of a key and the number of a block."""
    lanes = jnp.arange(number, dtype=jnp.uint32)
    # Keys are made by the same generator, so counters of their own keep these words apart from any other use.
    seed = jax.random.key_data(key)[:2]
    return jnp.stack(threefry(seed[0], seed[1], jnp.full_like(lanes, jnp.asarray(block, jnp.uint32)), lanes), axis=-1)


def threefry(key0: Array, key1: Array, x0: Array, x1: Array) -> tuple[Array, Array]:
    """Twenty rounds on two words."""
    keys = (key0, key1, key0 ^ key1 ^ jnp.uint32(_PARITY))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = ((x1 << rotation) | (x1 >> (32 - rotation))) ^ x0
        x0, x1 = x0 + keys[(group + 1) % 3], x1 + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return x0, x1


def uniform(words: Array, dtype: Any) -> Array:
    """Numbers in [0, 1) of words."""
    return (words >> 8).astype(dtype) * jnp.asarray(2.0**-24, dtype)
