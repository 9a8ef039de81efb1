"""How a sample is judged: its distance from the exact answer in Monte Carlo standard errors."""

import jax
import jax.numpy as jnp
import numpy as np

from mintmc.data import open_batches
from mintmc.experiments.report import mean_and_error
from mintmc.proposals import Tuning

LIMIT = 4.0
"""A right sampler exceeds 4 standard errors once in 16,000 checks."""


def distance(values: np.ndarray, exact: float) -> float:
    """Standard errors between the mean of (chain, draw) values and the exact mean."""
    mean, error = mean_and_error(np.asarray(values, dtype=float))
    return abs(mean - exact) / error


def gaussian_data(n: int, seed: int = 0) -> np.ndarray:
    """Observations of a unit normal, standardised so that the posterior mean is exactly 0."""
    x = np.random.default_rng(seed).normal(size=n)
    return ((x - x.mean()) / x.std()).astype(np.float32)


def gaussian_log_likelihood(mean, x):
    return -0.5 * (x - mean) ** 2


def apply_kernel(kernel, batching, rows, thetas, tuning: Tuning, steps: int, seed: int):
    """Apply a kernel to independent states, each with its own keys and batches; returns the states."""

    def one(key, theta):
        def batch(key):
            tickets = {
                role: batching.ticket(jax.random.fold_in(key, i)) for i, role in enumerate(kernel.batches, start=1)
            }
            return open_batches(kernel.batches, batching, rows, tickets)

        def step(state, key):
            return kernel.step(jax.random.fold_in(key, 0), state, batch(key), tuning)[0], None

        keys = jax.random.split(key, steps + 1)
        return kernel.position(jax.lax.scan(step, kernel.init(theta, batch(keys[0])), keys[1:])[0])

    keys = jax.random.split(jax.random.key(seed), len(thetas))
    return np.asarray(
        jax.jit(lambda keys, thetas: jax.lax.map(lambda a: one(*a), (keys, thetas), batch_size=512))(
            keys, jnp.asarray(thetas)
        )
    )
