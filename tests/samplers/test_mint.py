"""MINT samples what it says: the tempered posterior of a Gaussian mean, n = 1e5, m = 1000, where all is known."""

import json

import numpy as np
import pytest

import mintmc
from truth import LIMIT, distance, gaussian_data, gaussian_log_likelihood

N, M = 100_000, 1000
ALPHAS = [0.5, 0.8, 0.95, 0.995]


@pytest.fixture(scope="module")
def posterior():
    return mintmc.Posterior(gaussian_log_likelihood, gaussian_data(N))


def run(posterior, draws=60_000, **settings):
    sampler = mintmc.MINT(batch_size=M, **settings)
    tree = mintmc.sample(posterior, sampler, init=0.0, draws=draws, chains=8, seed=1, progress=False)
    # In units of the tempered posterior: standard normal if all is right.
    return tree, tree["tempered_posterior"]["theta"].values * np.sqrt(N / tree.attrs["temperature"])


@pytest.mark.parametrize("alpha", ALPHAS)
def test_with_penalty_the_variance_is_that_of_the_tempered_posterior(posterior, alpha):
    _, z = run(posterior, alpha=alpha)
    assert np.mean(z**2) == pytest.approx(1.0, abs=0.03)
    assert distance(z**2, 1.0) < LIMIT
    assert distance(z, 0.0) < LIMIT


@pytest.mark.slow
def test_a_batch_whose_square_does_not_fit_32_bits(posterior):
    sampler = mintmc.MINT(60_000, alpha=0.9)
    tree = mintmc.sample(posterior, sampler, init=0.0, draws=2000, warmup=500, chains=4, seed=1, progress=False)
    z = tree["tempered_posterior"]["theta"].values * np.sqrt(N / tree.attrs["temperature"])
    assert distance(z**2, 1.0) < LIMIT


# Without penalty, the variance of the draws over that of the tempered posterior, at steps of one standard deviation
# and at the larger steps of acceptance 0.3: the larger the step, the larger the noise.
INFLATION = {(0.8, "one sd"): 1.13, (0.995, "one sd"): 1.41, (0.8, "adapted"): 1.32, (0.995, "adapted"): 2.19}


@pytest.mark.parametrize(("alpha", "step"), INFLATION)
def test_without_penalty_the_chain_runs_hotter_and_diagnose_says_so(posterior, alpha, step):
    temperature = mintmc.MINT(M, alpha=alpha).target_temperature(N)
    walk = mintmc.RandomWalk(step_size=(temperature / N) ** 0.5 if step == "one sd" else None)
    tree, z = run(posterior, alpha=alpha, penalty=False, proposal=walk)
    assert np.mean(z**2) == pytest.approx(INFLATION[alpha, step], rel=0.05)
    assert distance(z**2, 1.0) > LIMIT
    report = mintmc.diagnose(tree)
    assert any("without penalty the noise heats" in warning for warning in report.warnings)
    # What the noise implies is what is measured, to a tenth.
    implied = report.numbers["implied_temperature"]
    assert implied == pytest.approx(tree.attrs["temperature"] * np.mean(z**2), rel=0.1)


@pytest.mark.parametrize("alpha", [0.3, pytest.param(0.5, marks=pytest.mark.slow)])
def test_recycled_without_penalty_samples_the_law_of_the_proof(posterior, alpha):
    tree, z = run(posterior, draws=250_000, alpha=alpha, estimator="recycled", penalty=False)
    # l_i = -(x_i - theta)^2/2 has variance (1/2 + theta^2) over normal data of variance 1, so the law is normal
    # with precision n_eff - n_eff^2/m (1 - m/n).
    n_eff = N / tree.attrs["temperature"]
    variance = 1 / (1 - n_eff / M * (1 - M / N))
    assert distance(z**2, variance) < LIMIT
    if alpha == 0.5:
        # The two laws differ by 3% here (0.03% at 0.3): enough to tell them apart.
        assert distance(z**2, 1.0) > LIMIT


def test_recycled_with_penalty_samples_the_tempered_posterior(posterior):
    _, z = run(posterior, draws=250_000, alpha=0.5, estimator="recycled")
    assert distance(z**2, 1.0) < LIMIT


def test_recycled_freezes_where_common_does_not(posterior):
    recycled, _ = run(posterior, draws=2000, alpha=0.95, estimator="recycled", penalty=False)
    assert float(recycled["sample_stats"]["accepted"].mean()) < 0.05
    assert any("lambda near tau/2" in warning for warning in mintmc.diagnose(recycled).warnings)


def test_independent_batches_with_penalty_are_right_but_slower(posterior):
    common, _ = run(posterior, alpha=0.5)
    independent, z = run(posterior, alpha=0.5, estimator="independent")
    assert distance(z**2, 1.0) < LIMIT
    noise = [float(tree["sample_stats"]["log_ratio_noise"].mean()) for tree in (common, independent)]
    assert noise[1] > 2 * noise[0]


def test_uniform_batches_sample_the_same_law(posterior):
    _, z = run(posterior, draws=20_000, alpha=0.8, batching="uniform")
    assert distance(z**2, 1.0) < LIMIT


def test_a_prior_is_tempered_or_not_as_asked(posterior):
    informed = mintmc.Posterior(gaussian_log_likelihood, gaussian_data(N), lambda mean: -0.5 * (mean - 1.0) ** 2 * 50)
    n_eff = 100.0
    for temper, weight in (("posterior", 50 * n_eff / N), ("likelihood", 50.0)):
        sampler = mintmc.MINT(batch_size=M, temperature=N / n_eff, temper=temper)
        tree = mintmc.sample(informed, sampler, init=0.0, draws=40_000, chains=4, seed=2, progress=False)
        theta = tree["tempered_posterior"]["theta"].values
        mean, variance = weight / (weight + n_eff), 1 / (weight + n_eff)
        assert distance(theta, mean) < LIMIT
        assert distance((theta - mean) ** 2, variance) < LIMIT


@pytest.mark.slow
def test_data_touched_is_counted_honestly(posterior):
    expected = {
        mintmc.RandomWalk(): 2 * M,  # both ends of the comparison
        mintmc.Langevin(): 4 * M,  # and two gradients
        mintmc.Hamiltonian(steps=1): 4 * M,
    }
    for proposal, count in expected.items():
        sampler = mintmc.MINT(batch_size=M, alpha=0.5, proposal=proposal)
        tree = mintmc.sample(posterior, sampler, init=0.0, draws=10, warmup=7, chains=2, thin=3, progress=False)
        assert (tree["sample_stats"]["data_touched"] == 3 * count).all()
        assert tree.attrs["data_touched_setup"] == [7 * count] * 2
    assert json.loads(tree.attrs["sampler_settings"])["proposal"]["steps"] == 1
    # Trajectories of two to five steps: the comparison, the first gradient, and one a step.
    sampler = mintmc.MINT(batch_size=M, alpha=0.5, proposal=mintmc.Hamiltonian(0.01, steps=5))
    tree = mintmc.sample(posterior, sampler, init=0.0, draws=300, warmup=7, chains=2, progress=False)
    rows = tree["sample_stats"]["data_touched"].values
    assert set(np.unique(rows)) == {(3 + steps) * M for steps in (2, 3, 4, 5)}
    assert all(7 * 5 * M <= setup <= 7 * 8 * M for setup in tree.attrs["data_touched_setup"])
