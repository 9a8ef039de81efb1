"""The Metropolis decision: accept with probability min(1, exp(log ratio))."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Decision(NamedTuple):
    """What was decided, and why."""

    accepted: Array
    acceptance_rate: Array
    log_ratio_noise: Array
    is_defined: Array  # False if the ratio was NaN; such a move is rejected and counted
    data_touched: Array | None = None  # where it varies from step to step
    extras: dict[str, Array] = {}  # noqa: RUF012  numbers of this test alone, recorded by name


def log_uniform(key: Array, dtype: Any) -> Array:
    """The logarithm of a uniform number."""
    return jnp.log(jax.random.uniform(key, dtype=dtype))


def decide(log_uniform: Array, log_ratio: Array, noise: Array) -> Decision:
    """Accept if ``log_uniform`` (the log of a uniform number) lies below the log ratio."""
    # Code under jit cannot raise, and accepting an undefined move would poison the chain.
    is_defined = ~jnp.isnan(log_ratio)
    log_accept = jnp.where(is_defined, log_ratio, -jnp.inf)
    rate = jnp.exp(jnp.minimum(log_accept, 0))
    return Decision(log_uniform < log_accept, rate, noise, is_defined)
