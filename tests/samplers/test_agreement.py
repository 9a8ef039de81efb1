"""Samplers of the posterior itself agree with full-batch HMC on logistic regression in 5 dimensions, n = 10,000."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from truth import LIMIT, distance_between

pytestmark = pytest.mark.slow  # four long chains; each sampler is judged on smaller problems beside its own tests
N, DIM = 10_000, 5


def log_likelihood(weights, row):
    return jax.nn.log_sigmoid(row["y"] * jnp.dot(row["x"], weights))


def log_prior(weights):
    return -0.5 * jnp.sum(weights**2)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, DIM)).astype(np.float32) / np.sqrt(DIM)
    y = np.where(rng.random(N) < 1 / (1 + np.exp(-x @ np.linspace(-1, 1, DIM))), 1.0, -1.0).astype(np.float32)
    return {"x": x, "y": y}


@pytest.fixture(scope="module")
def posterior(data):
    return mintmc.Posterior(log_likelihood, data, log_prior)


@pytest.fixture(scope="module")
def reference(posterior):
    sampler = mintmc.MetropolisHastings(mintmc.Hamiltonian(steps=5, preconditioner="diagonal"))
    tree = mintmc.sample(posterior, sampler, init=np.zeros(DIM), draws=4000, seed=1, progress=False)
    return tree["posterior"]["theta"].values


def walk(step):
    return mintmc.RandomWalk(step_size=step)


def samplers(data, mode):
    x, y = data["x"], data["y"]
    remainder = mintmc.logistic_remainder(x)
    tuned = mintmc.JaakkolaJordan.tuned(x, y, mode)
    return {
        # name: (sampler, draws, thin); the posterior's standard deviation is 0.05, and each method's step suits it
        "BarkerMH": (mintmc.BarkerMH(500, proposal=walk(0.02)), 6000, 5),
        "ConfidenceMH with proxy": (
            mintmc.ConfidenceMH(proxy=mintmc.TaylorProxy(remainder, centre=mode), proposal=walk(0.03)),
            6000,
            5,
        ),
        "FireflyMC, tuned": (mintmc.FireflyMC(tuned, proposal=walk(0.03)), 6000, 5),
        "TunaMH": (mintmc.TunaMH.logistic(x, proposal=walk(0.01)), 6000, 20),
        "ScalableMH": (mintmc.ScalableMH(mintmc.RegressionBounds.logistic(x)), 6000, 1),
        "MINT with control": (mintmc.MINT(100, temperature=1.0, control=mintmc.Taylor()), 6000, 1),
    }


@pytest.mark.parametrize(
    "name", ["BarkerMH", "ConfidenceMH with proxy", "FireflyMC, tuned", "TunaMH", "ScalableMH", "MINT with control"]
)
def test_moments_agree_with_hmc(data, posterior, reference, name):
    mode = reference.mean(axis=(0, 1))
    sampler, draws, thin = samplers(data, mode)[name]
    tree = mintmc.sample(posterior, sampler, init=mode, draws=draws, warmup=500, thin=thin, seed=2, progress=False)
    theta = tree["posterior"]["theta"].values
    for i in range(DIM):
        for power in (1, 2):
            # 5 long batches a chain: the walks of these methods are slow.
            moments = ((t[..., i] - mode[i]) ** power for t in (theta, reference))
            assert distance_between(*moments, batches=5) < LIMIT, (i, power)
    if "bound_violations" in tree["sample_stats"]:
        assert int(tree["sample_stats"]["bound_violations"].sum()) == 0
