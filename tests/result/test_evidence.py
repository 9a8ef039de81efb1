"""The evidence of a ladder against exact answers, in its own standard errors."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import mintmc
from mintmc.result import stepping_stones
from mintmc.result.mbar import mbar
from mistakes import refused
from truth import LIMIT

N, DIM = 50, 2
RNG = np.random.default_rng(1)
X = (RNG.normal(size=(N, DIM)) + np.array([0.5, -1.0])).astype(np.float32)
HALF_LOG = 0.5 * np.log(2 * np.pi)


def log_likelihood(mean, x):
    return jnp.sum(-0.5 * (x - mean) ** 2 - HALF_LOG)


def log_prior(mean):
    return jnp.sum(-0.5 * mean**2 - HALF_LOG)


POSTERIOR = mintmc.Posterior(log_likelihood, X, log_prior)
SUMS = X.sum(axis=0, dtype=float)
EXACT = float(
    np.sum(-N * HALF_LOG - 0.5 * np.log1p(N) - 0.5 * ((X.astype(float) ** 2).sum(axis=0) - SUMS**2 / (1 + N)))
)


def run(temperatures=(1, 3, 10, 30, 100, 1000), kind=mintmc.ParallelTempering, temper="likelihood", **settings):
    given = {"draws": 8000, "warmup": 500, "chains": 2, "progress": False} | settings
    return mintmc.sample(POSTERIOR, kind(mintmc.Ladder(temperatures), temper=temper), init=np.zeros(DIM), **given)


@pytest.fixture(scope="module")
def tree():
    return run()


def test_the_evidence_of_a_conjugate_model(tree):
    found = mintmc.log_evidence(tree)
    assert abs(found.log_evidence - EXACT) < LIMIT * found.error
    assert found.error < 0.05
    assert abs(found.down - EXACT) < 0.2
    assert abs(found.up - EXACT) < 0.2
    assert found.warnings == ()
    assert str(found).startswith(f"log evidence {found.log_evidence:.3f} ±")


@pytest.mark.slow
def test_of_an_equi_energy_sampler():
    found = mintmc.log_evidence(run(kind=mintmc.EquiEnergy))
    assert abs(found.log_evidence - EXACT) < max(LIMIT * found.error, 0.1)


def test_a_reference_that_is_forgotten_is_caught(tree):
    """The broken twin: energies are counted from another state than is said."""
    twin = tree.copy()
    twin["ladder"].attrs["reference_energy"] += 1.0
    found = mintmc.log_evidence(twin)
    assert abs(found.log_evidence - EXACT) > LIMIT * found.error


def test_rungs_that_do_not_overlap_are_told():
    found = mintmc.log_evidence(run((1, 2000), draws=2000))
    assert any("do not overlap" in warning for warning in found.warnings)


def test_a_ladder_that_does_not_reach_the_prior_is_told():
    found = mintmc.log_evidence(run((1, 1.5), draws=2000))
    assert any("does not reach the prior" in warning for warning in found.warnings)


def test_free_energies_of_known_energies():
    """Exponential energies: Z(b) = 1 / (1 + b), sampled exactly."""
    b = np.array([1.0, 0.5, 0.1])
    rng = np.random.default_rng(2)
    energy = rng.exponential(1 / (1 + b)[:, None], size=(3, 50_000))
    found = mbar(b[:, None] * energy.ravel(), np.full(3, 50_000), np.zeros(3))
    np.testing.assert_allclose(found, np.log(1 + b) - np.log(2), atol=0.01)
    np.testing.assert_allclose(stepping_stones.stepping_stones(b, energy), np.log(1.1 / 2), atol=0.02)
    np.testing.assert_allclose(stepping_stones.from_all(b, energy), np.log(1 / 2), atol=0.02)


B = np.array([1.0, 0.5, 0.1])


def exchanged(rng, draws=500, chains=2, persistence=0.8):
    """Exponential energies of three rungs that go up and down together, slowly: (rung, chain, draw)."""
    noise = rng.normal(size=(chains, draws)) * np.sqrt(1 - persistence**2)
    noise[:, 0] /= np.sqrt(1 - persistence**2)
    for t in range(1, draws):
        noise[:, t] += persistence * noise[:, t - 1]
    return -norm.logsf(noise) / (1 + B)[:, None, None]


def test_the_error_is_that_of_draws_which_depend_on_each_other():
    """Over time and over rungs; the broken twin takes every rung's draws in an order of its own."""
    rng = np.random.default_rng(5)
    runs = [exchanged(rng) for _ in range(120)]
    spread = np.std([stepping_stones.from_all(B, energy.reshape(3, -1)) for energy in runs], ddof=1)

    def told(energies):
        return np.sqrt(np.mean([stepping_stones._error(B, energy) ** 2 for energy in energies]))

    # The spread of 120 values is known to 6.5%; slow chains of 500 draws tell their own error a little too small.
    assert 0.8 < told(runs) / spread < 1.2
    assert told(rng.permuted(energy, axis=2) for energy in runs) / spread < 0.5


def test_what_a_moment_says_is_what_the_value_becomes_without_it():
    energy = exchanged(np.random.default_rng(6), draws=400, persistence=0.0)
    said = stepping_stones.parts(B, energy)
    assert abs(said.mean()) < 1e-6
    without = np.delete(energy, 7, axis=2).reshape(3, -1)
    change = stepping_stones.from_all(B, energy.reshape(3, -1)) - stepping_stones.from_all(B, without)
    np.testing.assert_allclose(change, said[:, 7].sum() / said.size, rtol=0.02)


def test_rungs_with_nothing_in_common_have_an_infinite_error():
    rng = np.random.default_rng(7)
    energy = np.stack([rng.exponential(1.0, (2, 100)), 1e6 + rng.exponential(1.0, (2, 100))])
    assert stepping_stones._error(np.array([1.0, 1e-3]), energy) == np.inf


LOG_Z = 2.5


def two_normals(x):
    """Weights 0.3 and 0.7, standard deviations 1 and 0.3, times exp(2.5)."""
    wide, narrow = -0.5 * jnp.sum((x + 9) ** 2), -0.5 * jnp.sum(((x - 9) / 0.3) ** 2)
    parts = jnp.logaddexp(jnp.log(0.3) + wide, jnp.log(0.7 / 0.3**2) + narrow)
    return LOG_Z + parts - jnp.log(2 * jnp.pi)


@pytest.fixture(scope="module")
def leapt():
    posterior = mintmc.Posterior.from_density(two_normals)
    return mintmc.sample(posterior, mintmc.Leaps(), init=np.zeros(2), draws=3000, warmup=300, progress=False)


def test_leaps_tell_the_evidence_of_every_mode(leapt):
    found = mintmc.log_evidence(leapt)
    assert abs(found.log_evidence - LOG_Z) < LIMIT * found.error
    assert found.error < 0.05
    assert found.gap < 0.2
    weights = np.where(leapt.modes.mean_theta[:, 0] < 0, 0.3, 0.7)
    np.testing.assert_allclose(found.by_mode, LOG_Z + np.log(weights), atol=0.2)
    assert not found.warnings


def test_a_bridge_to_another_density_is_off(leapt):
    twin = leapt.copy()
    twin["sample_stats"]["log_fit"] = leapt.sample_stats.log_fit + 1.0
    found = mintmc.log_evidence(twin)
    assert abs(found.log_evidence - LOG_Z) > LIMIT * found.error


def test_a_change_of_variables_does_not_change_the_evidence():
    """A gamma density, 2 in all, of a parameter that is the exponential of ours."""
    posterior = mintmc.Posterior.from_density(lambda x: 2 * x - jnp.exp(x), log_jacobian=lambda x: x)
    tree = mintmc.sample(posterior, mintmc.Leaps(), init=0.0, draws=2000, warmup=300, progress=False)
    found = mintmc.log_evidence(tree)
    assert abs(found.log_evidence - np.log(2)) < LIMIT * found.error < 0.2


def test_what_has_no_evidence_is_refused(tree):
    refused(lambda: mintmc.log_evidence(3), TypeError, "tree must be")
    refused(lambda: mintmc.log_evidence(run(temper="posterior", draws=50)), "temper='likelihood'")
    on_batches = tree.copy()
    on_batches["ladder"]["batch_size"][-1] = 10
    refused(lambda: mintmc.log_evidence(on_batches), "all data on every rung")
    x = np.random.default_rng(0).normal(size=200)
    posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    leaps = mintmc.Leaps(control=mintmc.Taylor(), batch_size=50)
    with_control = mintmc.sample(posterior, leaps, init=0.0, draws=20, warmup=30, chains=1, progress=False)
    refused(lambda: mintmc.log_evidence(with_control), "on all data")
