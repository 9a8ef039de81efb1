"""How a sample is judged: its distance from the exact answer in Monte Carlo standard errors."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mintmc.compiled import identity
from mintmc.data import Uniform, open_batches

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


def mostly_slow(cases, *quick):
    """All cases, of which only the quick ones are for every day; the others say the same of a variant."""
    missing = set(quick) - set(cases)
    assert not missing, missing
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]


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


def apply_kernel(kernel, posterior, thetas, tuning, steps: int, seed: int):
    """Apply a kernel a few times to independent states, each with its own keys and batches; returns the states.

    Batches are uniform subsets: slices of one fixed shuffle would be only n/m different ones.
    """
    batching = Uniform(posterior.n)
    # A rest of states that fill no block would be compiled once more.
    block = max(size for size in range(1, 513) if len(thetas) % size == 0)

    def build(kernel_with):
        def apply(numbers, rows, tuning, steps, keys, thetas):
            kernel = kernel_with(numbers)

            def one(args):
                key, theta = args

                def step(i, state):
                    at = jax.random.fold_in(key, i)
                    batch = fresh_batches(at, kernel, batching, rows)
                    return kernel.step(jax.random.fold_in(at, 0), state, batch, tuning)[0]

                first = kernel.init(theta, fresh_batches(key, kernel, batching, rows))
                return kernel.position(jax.lax.fori_loop(0, steps, step, first))

            return jax.lax.map(one, (keys, thetas), batch_size=block)

        return apply

    program, numbers = _program(kernel, (), ("apply", block), build)
    keys = jax.random.split(jax.random.key(seed), len(thetas))
    return np.asarray(program(numbers, posterior.rows, tuning, jnp.asarray(steps), keys, jnp.asarray(thetas)))


def walk(kernel, posterior, starts, tuning=None, steps=2500, skip=200, numbers=(), keep=(), seed=1):
    """Flat states (chain, step, parameter) of chains on uniform batches, and statistics to keep (chain, step).

    The first states are left out, made on the way from the start. Chains are many and short, to be judged by their
    means. Kernels that differ in temperature and in ``numbers`` (names of settings) alone share one program.
    """
    batching = Uniform(max(posterior.n, 2))

    def build(kernel_with):
        def one(settings, rows, tuning, key, start):
            kernel = kernel_with(settings)

            def step(state, key):
                batch = fresh_batches(key, kernel, batching, rows)
                state, info = kernel.step(jax.random.fold_in(key, 0), state, batch, tuning)
                return state, (kernel.position(state), {name: info[name] for name in keep})

            keys = jax.random.split(key, skip + steps + 1)
            first = kernel.init(start, fresh_batches(keys[0], kernel, batching, rows))
            return jax.lax.scan(step, first, keys[1:])[1]

        return jax.vmap(one, (None, None, None, 0, 0))

    program, settings = _program(kernel, numbers, ("walk", steps, skip, keep), build)
    starts = jnp.asarray(starts, kernel.dtype)
    theta, kept = program(settings, posterior.rows, tuning, jax.random.split(jax.random.key(seed), len(starts)), starts)
    theta, kept = jax.tree.map(lambda leaf: np.asarray(leaf)[:, skip:], (theta, kept))
    return (theta.astype(float), kept) if keep else theta.astype(float)


_PROGRAMS: dict = {}


def _program(kernel, names, form, build):
    """A program for all kernels that differ in numbers alone, and the numbers of this one."""

    def kernel_with(numbers):
        temperature, others = numbers
        return replace(kernel, target=replace(kernel.target, temperature=temperature), **others)

    names = [name for name in names if getattr(kernel, name, None) is not None]
    others = {name: jnp.asarray(getattr(kernel, name)) for name in names}
    key = (form, identity(kernel_with((None, dict.fromkeys(names)))))
    if key not in _PROGRAMS:
        _PROGRAMS[key] = quickly_compiled(build(kernel_with))
    return _PROGRAMS[key], (jnp.asarray(kernel.target.temperature), others)
