"""JAX's random bits, laid out so that XLA's CPU compiler makes one kernel of them.

Threefry (Salmon et al. 2011) mixes a key and a counter in twenty rounds. JAX writes them as a loop for CPUs, to keep
programs short; since then XLA compiles a loop into some ten kernels of its own, so that random numbers took three
quarters of the time to compile a step, and twice as long to draw. Here the rounds stand one after the other. Bits are
the same (``jax_threefry_partitionable``, JAX's default). Such keys serve all functions of ``jax.random`` but
``poisson``, which takes JAX's own keys alone; so do functions that a user has written, which may call it (``as_jax``).
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.random import define_prng_impl

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def unrolled(key: Array) -> Array:
    """The same key, for programs.

    Examples
    --------
    >>> key = jax.random.key(0)
    >>> bool(jax.random.normal(unrolled(key)) == jax.random.normal(key))
    True
    """
    result: Array = jax.random.wrap_key_data(jax.random.key_data(key), impl=_IMPL)
    return result


def as_jax(key: Array) -> Array:
    """The same key as JAX's own; a key that is one already stays as it is.

    Examples
    --------
    >>> bool(jax.random.poisson(as_jax(unrolled(jax.random.key(0))), 5.0) >= 0)
    True
    """
    if jax.random.key_impl(key) != _IMPL:
        return key
    result: Array = jax.random.wrap_key_data(jax.random.key_data(key), impl="threefry2x32")
    return result


def _mixed(key: Array, high: Array, low: Array) -> tuple[Array, Array]:
    """Twenty rounds on the two halves of a counter."""
    words = key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY)
    high, low = high + words[0], low + words[1]
    for five in range(5):
        for by in _ROTATIONS[five % 2]:
            high = high + low
            low = high ^ ((low << by) | (low >> (32 - by)))
        high = high + words[(five + 1) % 3]
        low = low + words[(five + 2) % 3] + jnp.uint32(five + 1)
    return high, low


def _counted(key: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The two halves of what the numbers 0, 1, ... become."""
    if math.prod(shape) >= 2**32:
        raise ValueError(f"at most 2^32 random numbers can be drawn at once, got shape {shape}")
    numbers = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
    return _mixed(key, jnp.zeros_like(numbers), numbers)


def _seed(seed: Array) -> Array:
    # That of JAX, which knows about seeds of 64 bits.
    return jax.random.key_data(jax.random.key(seed))


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    return jnp.stack(_counted(key, shape), axis=-1)


def _fold_in(key: Array, number: Array) -> Array:
    number = jnp.asarray(number, jnp.uint32)
    return jnp.stack(_mixed(key, jnp.zeros_like(number), number))


def _random_bits(key: Array, width: int, shape: tuple[int, ...]) -> Array:
    high, low = _counted(key, shape)
    if width == 64:
        return (high.astype(jnp.uint64) << 32) | low.astype(jnp.uint64)
    return (high ^ low).astype(np.dtype(f"uint{width}"))


_IMPL = define_prng_impl(
    key_shape=(2,),
    seed=jax.jit(_seed),
    split=jax.jit(_split, static_argnums=1),
    random_bits=jax.jit(_random_bits, static_argnums=(1, 2)),
    fold_in=jax.jit(_fold_in),
    name="mintmc-threefry2x32",
    tag="mintmc",
)
