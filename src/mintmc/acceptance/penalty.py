"""The penalty that makes a noisy Metropolis test exact (Ceperley & Dewing 1999).

If the estimated log ratio r is normal around the true one with variance s2, then accepting with min(1, exp(r - s2/2))
satisfies detailed balance: the mean acceptance A(D) = Phi((D - s2/2)/s) + e^D Phi(-(D + s2/2)/s) of a true log ratio D
obeys A(D) = e^D A(-D). With s2 estimated from m values, exp(-s2/2) is replaced by the series below, whose mean
is exp(-s2/2). Without a penalty the chain runs hotter than it says, by about the factor of ``implied_temperature``.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.scipy.stats import norm


def penalty(noise: Array, m: int) -> Array:
    """What to subtract from a log ratio whose noise was estimated from m values."""
    # As floats: a whole number beyond 32 bits would not reach the program.
    return noise / 2 + noise**2 / (4.0 * (m + 1)) + noise**3 / (3.0 * (m + 1) * (m + 3))


def implied_temperature(noise: Array) -> Array:
    """Factor by which a test without penalty heats the target, for moves that change the energy little.

    The slope of log A(D) - log A(-D) at D = 0 without penalty is 2e/(1/2 + e), e = exp(s2/2) Phi(-s).

    Examples
    --------
    >>> round(float(implied_temperature(1.0)), 2)
    1.46
    """
    tail = jnp.exp(noise / 2 + norm.logcdf(-jnp.sqrt(noise)))
    return (0.5 + tail) / (2 * tail)
