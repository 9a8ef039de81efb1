"""A decision is made once: what a state is made of, and what is recorded of it, all come from the same end of a move.

Where kernels compute a decision anew from sums that were added up in another order, one in some thousand states has the
parameters of one end and the energy of the other, and a chain stays there.
"""

import jax
import numpy as np
import pytest

import mintmc

RNG = np.random.default_rng(0)
N = 20_000
X = RNG.normal(size=(N, 8)).astype(np.float32)
Y = (RNG.random(N) < 0.4).astype(np.float32)
POSTERIOR = mintmc.Posterior(
    lambda beta, row: row["y"] * (row["x"] @ beta) - jax.nn.softplus(row["x"] @ beta), {"x": X, "y": Y}
)


def exact_energy(beta):
    eta = X.astype(float) @ beta.astype(float)
    return -np.sum(Y * eta - np.logaddexp(0, eta))


@pytest.mark.parametrize("proposal", [mintmc.RandomWalk(), mintmc.Hamiltonian(steps=5)])
def test_energies_are_those_of_their_states(proposal):
    settings = {"init": np.zeros(8), "draws": 600, "warmup": 300, "chains": 2, "progress": False}
    tree = mintmc.sample(POSTERIOR, mintmc.MetropolisHastings(proposal), **settings)
    theta, energy = tree.posterior["theta"].values.reshape(-1, 8), tree.sample_stats["energy"].values.ravel()
    exact = np.array([exact_energy(each) for each in theta])
    # float32 likelihoods of 20,000 rows: each is off by 3e-8 of itself at random, energies differ by several units.
    assert np.ptp(exact) > 5
    np.testing.assert_allclose(energy, exact, atol=2e-3)


@pytest.mark.parametrize("estimator", ["common", "recycled"])
def test_a_move_is_recorded_as_it_was_decided(estimator):
    temperature = 1e3 if estimator == "recycled" else 50.0
    sampler = mintmc.MINT(500, temperature=temperature, estimator=estimator)
    settings = {"init": np.zeros(8), "draws": 100_000, "warmup": 500, "chains": 1, "progress": False}
    tree = mintmc.sample(POSTERIOR, sampler, **settings)
    theta, accepted = tree.tempered_posterior["theta"].values[0], tree.sample_stats["accepted"].values[0]
    moved = theta[1:] != theta[:-1]
    assert 0.05 < accepted.mean() < 0.95
    # All coordinates or none; a coordinate may be the same by chance of rounding.
    np.testing.assert_array_equal(moved.mean(axis=1) > 0.5, accepted[1:])
    assert moved[accepted[1:]].mean() > 0.999
    assert not moved[~accepted[1:]].any()
