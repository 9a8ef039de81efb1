"""The evidence of a ladder against exact answers, in its own standard errors."""

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.result import evidence
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
    np.testing.assert_allclose(evidence.mbar(b, energy), np.log(1 + b) - np.log(2), atol=0.01)
    down, up = evidence._stones(b, energy)
    np.testing.assert_allclose([down, up], np.log(1.1 / 2), atol=0.02)
    np.testing.assert_allclose(evidence._from_all(b, energy), np.log(1 / 2), atol=0.02)


def test_what_has_no_evidence_is_refused(tree):
    refused(lambda: mintmc.log_evidence(3), TypeError, "tree must be")
    refused(lambda: mintmc.log_evidence(run(temper="posterior", draws=50)), "temper='likelihood'")
    on_batches = tree.copy()
    on_batches["ladder"]["batch_size"][-1] = 10
    refused(lambda: mintmc.log_evidence(on_batches), "all data on every rung")
