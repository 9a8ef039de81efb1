"""Langevin and Hamiltonian on mini-batches agree with tempered MCMC on logistic regression in 20 dimensions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from truth import LIMIT, distance_between

pytestmark = pytest.mark.slow  # four long chains of each; every proposal is judged in kernels/test_invariance.py

N, M, DIM, TEMPERATURE = 20_000, 2000, 20, 100.0  # n_eff = 200


def log_likelihood(theta, row):
    return jax.nn.log_sigmoid(row["y"] * jnp.dot(row["x"], theta))


def log_prior(theta):
    return -0.5 * jnp.sum(theta**2)


@pytest.fixture(scope="module")
def posterior():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, DIM)) * np.linspace(0.5, 2.0, DIM)
    y = np.where(rng.random(N) < 1 / (1 + np.exp(-x @ rng.normal(size=DIM) * 0.5)), 1.0, -1.0)
    return mintmc.Posterior(log_likelihood, {"x": x, "y": y}, log_prior)


def draws_of(posterior, sampler, draws, seed):
    tree = mintmc.sample(
        posterior, sampler, init=np.zeros(DIM), draws=draws, chains=4, warmup=1500, seed=seed, progress=False
    )
    return tree["tempered_posterior"]["theta"].values


@pytest.fixture(scope="module")
def reference(posterior):
    proposal = mintmc.Hamiltonian(steps=4, preconditioner="diagonal")
    return draws_of(posterior, mintmc.MetropolisHastings(proposal, temperature=TEMPERATURE), 4000, seed=3)


def worst_distance(draws, reference):
    """The largest distance of a mean or of the total variance, in standard errors of the difference."""
    centre = reference.mean(axis=(0, 1))

    def moments(theta):
        return *np.moveaxis(theta, -1, 0), np.sum((theta - centre) ** 2, axis=-1)

    # 8 long batches a chain: states are correlated over up to a hundred steps.
    return max(distance_between(*pair, batches=8) for pair in zip(moments(draws), moments(reference), strict=True))


PROPOSALS = {
    "Langevin": mintmc.Langevin(preconditioner="diagonal"),
    "Hamiltonian": mintmc.Hamiltonian(steps=3, preconditioner="diagonal"),
    "Hamiltonian, dense": mintmc.Hamiltonian(steps=3, preconditioner="dense"),
}


@pytest.mark.parametrize("name", PROPOSALS)
def test_moments_agree_with_full_batch(posterior, reference, name):
    sampler = mintmc.MINT(batch_size=M, temperature=TEMPERATURE, proposal=PROPOSALS[name])
    assert worst_distance(draws_of(posterior, sampler, 12_000, seed=4), reference) < LIMIT


def test_a_temperature_that_is_off_by_a_tenth_is_caught(posterior, reference):
    sampler = mintmc.MINT(batch_size=M, temperature=1.1 * TEMPERATURE, proposal=PROPOSALS["Hamiltonian"])
    assert worst_distance(draws_of(posterior, sampler, 12_000, seed=4), reference) > LIMIT
