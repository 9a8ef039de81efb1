"""How a sample is judged: its distance from the exact answer in Monte Carlo standard errors."""

import jax
import jax.numpy as jnp
import numpy as np

from mintmc.data import open_batches
from mintmc.proposals import Tuning

LIMIT = 4.0
"""A right sampler exceeds 4 standard errors once in 16,000 checks."""


def mean_and_error(values: np.ndarray, batches: int = 20) -> tuple[float, float]:
    """The mean of (chain, draw) values, and its standard error from the spread of the means of long batches.

    The tests' own: a judge that came from the package could not find its mistakes.
    """
    values = np.asarray(values, float)
    length = values.shape[1] // batches
    means = [chain[i * length : (i + 1) * length].mean() for chain in values for i in range(batches)]
    return float(values.mean()), float(np.std(means, ddof=1) / len(means) ** 0.5)


def distance(values: np.ndarray, exact: float, batches: int = 20) -> float:
    """Standard errors between the mean of (chain, draw) values and the exact mean."""
    mean, error = mean_and_error(values, batches)
    return abs(mean - exact) / error


def distance_of_means(values: np.ndarray, exact: float) -> float:
    """The same for many short chains, each of which is one independent value."""
    means = np.asarray(values, float).mean(axis=1)
    return float(abs(means.mean() - exact) / (means.std(ddof=1) / len(means) ** 0.5))


def distance_between(values: np.ndarray, others: np.ndarray, batches: int = 20) -> float:
    """Standard errors between the means of two independent sets of (chain, draw) values."""
    (mean, error), (other, other_error) = (mean_and_error(each, batches) for each in (values, others))
    return abs(mean - other) / float(np.hypot(error, other_error))


def gaussian_data(n: int, seed: int = 0) -> np.ndarray:
    """Observations of a unit normal, standardised so that the posterior mean is exactly 0."""
    x = np.random.default_rng(seed).normal(size=n)
    return ((x - x.mean()) / x.std()).astype(np.float32)


def gaussian_log_likelihood(mean, x):
    return -0.5 * (x - mean) ** 2


def quickly_compiled(function):
    """Compiled with less effort, which most tests of a few steps would spend more time on than on the steps."""
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 1})


def fresh_batches(key, kernel, batching, rows):
    """The batches of one step, each from a key of its own; the key of the step itself is fold_in(key, 0)."""
    roles = enumerate(kernel.batches, start=1)
    tickets = {role: batching.ticket(jax.random.fold_in(key, i)) for i, role in roles}
    return open_batches(kernel.batches, batching, rows, tickets)


def apply_kernel(kernel, batching, rows, thetas, tuning: Tuning, steps: int, seed: int):
    """Apply a kernel to independent states, each with its own keys and batches; returns the states."""

    def one(args):
        key, theta = args

        def step(state, key):
            batch = fresh_batches(key, kernel, batching, rows)
            return kernel.step(jax.random.fold_in(key, 0), state, batch, tuning)[0], None

        keys = jax.random.split(key, steps + 1)
        first = kernel.init(theta, fresh_batches(keys[0], kernel, batching, rows))
        return kernel.position(jax.lax.scan(step, first, keys[1:])[0])

    keys = jax.random.split(jax.random.key(seed), len(thetas))
    # A rest of states that fill no block would be compiled once more.
    block = max(size for size in range(1, 513) if len(thetas) % size == 0)
    apply = quickly_compiled(lambda args: jax.lax.map(one, args, batch_size=block))
    return np.asarray(apply((keys, jnp.asarray(thetas))))
