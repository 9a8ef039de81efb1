"""Random streams: one for each purpose, chain and rung, so that none depends on how a run is cut up or shared out."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array


class Purpose:
    """What a key is for: the first thing folded into the seed."""

    init, start, warmup, draw, pilot, refine = range(6)


def key_of(seed: int, *path: int) -> Array:
    """The key of a purpose, a chain, a rung; the same whatever ``jax_default_prng_impl`` is."""
    key = jax.random.key(seed, impl="threefry2x32")
    for part in path:
        key = jax.random.fold_in(key, part)
    return key


def ints(*values: int) -> list[Array]:
    """Whole numbers as a compiled program takes them."""
    return [jnp.asarray(value, jnp.int32) for value in values]
