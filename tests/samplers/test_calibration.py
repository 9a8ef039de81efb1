"""Simulation-based calibration (Talts et al. 2018) of MINT: ranks of the truth among draws are uniform.

theta* ~ N(0, 1); the data are n values with mean theta* + N(0, T/n) and unit variance about it, so that the likelihood
raised to the power 1/T is the law of that mean, and theta* is a draw from the tempered posterior of its own data.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

import mintmc
from mintmc.data import Shuffled, open_batches
from mintmc.proposals import Tuning
from truth import gaussian_log_likelihood

N, M, N_EFF = 2000, 200, 180  # n_eff / m = 0.9, where noise matters most
DATA_SETS, DRAWS, THIN, BINS = 1024, 63, 15, 16


def ranks(sampler, seed):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=DATA_SETS)
    x = rng.normal(size=(DATA_SETS, N))
    x += (truth + rng.normal(size=DATA_SETS) / N_EFF**0.5 - x.mean(axis=1))[:, None]
    posterior = mintmc.Posterior(gaussian_log_likelihood, x[0], lambda theta: -0.5 * theta**2)
    kernel = sampler.kernel(posterior.flat(0.0))
    batching = Shuffled(N)
    tuning = Tuning(jnp.asarray(2.4 / N_EFF**0.5), None)

    def one(key, rows, mean):
        def step(state, key):
            tickets = {role: batching.ticket(jax.random.fold_in(key, 1)) for role in kernel.batches}
            batch = open_batches(kernel.batches, batching, rows, tickets)
            return kernel.step(jax.random.fold_in(key, 0), state, batch, tuning)[0], None

        def draw(state, key):
            state, _ = jax.lax.scan(step, state, jax.random.split(key, THIN))
            return state, kernel.position(state)[0]

        state = kernel.init(mean[None], {})
        # The first tenth is forgotten.
        return jax.lax.scan(draw, state, jax.random.split(key, DRAWS + 7))[1][7:]

    rows = jnp.asarray(np.concatenate([x, x[:, :M]], axis=1), jnp.float32)
    keys = jax.random.split(jax.random.key(seed), DATA_SETS)
    draws = jax.jit(jax.vmap(one))(keys, rows, rows[:, :N].mean(axis=1))
    return (np.asarray(draws) < truth[:, None]).sum(axis=1)


@pytest.mark.parametrize("penalty", [True, False])
def test_ranks_are_uniform_with_the_penalty_and_not_without(penalty):
    sampler = mintmc.MINT(M, temperature=N / N_EFF, temper="likelihood", penalty=penalty)
    counts = np.histogram(ranks(sampler, seed=2), bins=BINS, range=(0, DRAWS + 1))[0]
    p_value = chisquare(counts).pvalue
    # A right sampler falls below once in a thousand; the broken twin is twice as wide as it says.
    assert p_value > 1e-3 if penalty else p_value < 1e-6
