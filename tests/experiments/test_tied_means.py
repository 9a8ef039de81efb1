import json

import numpy as np
import pytest

import mintmc
from mintmc.experiments.tied_means import experiment as tied_means
from mintmc.experiments.tied_means import rivals as tied_means_rivals
from truth import LIMIT, distance


@pytest.fixture(scope="module")
def x():
    return tied_means.simulate()


@pytest.fixture(scope="module")
def posterior(x):
    return mintmc.Posterior(tied_means.log_likelihood, x, tied_means.log_prior)


def test_quadrature_from_bins_agrees_with_exact_energies(x, posterior):
    T = 1000.0
    truth = tied_means.quadrature(x, T, points=61)
    probability = truth.probability
    best = np.unravel_index(probability.argmax(), probability.shape)
    for index in [(25, 36), (35, 24), (30, 30)]:
        states = [np.float32([truth.theta1[i], truth.theta2[j]]) for i, j in (index, best)]
        energies = [posterior.energy(state) for state in states]
        ratio = np.log(probability[index] / probability[best])
        assert ratio == pytest.approx(-(energies[0] - energies[1]) / T, abs=2e-3 * max(1, abs(ratio)))


def test_the_modes_are_equally_likely(posterior):
    first, second = (posterior.energy(np.float32(mode)) for mode in tied_means.MODES)
    # Equal likelihoods, and priors that differ by 1/20.
    assert second - first == pytest.approx(1 / 20, abs=1e-2)


@pytest.mark.slow
def test_with_penalty_the_law_is_right_even_where_alpha_is_nearly_one(x, posterior):
    results = {}
    for penalty in (True, False):
        sampler = mintmc.MINT(1000, alpha=0.99, penalty=penalty)
        init = mintmc.PerChain(np.repeat(tied_means.MODES, 4, axis=0))
        tree = mintmc.sample(posterior, sampler, init=init, draws=40_000, chains=8, seed=1, progress=False)
        results[penalty] = np.abs(tree["tempered_posterior"]["theta"].values[..., 1])
    exact = tied_means.quadrature(x, tree.attrs["temperature"]).mean(tied_means.MOMENTS["E |theta2|"])
    assert distance(results[True], exact) < LIMIT
    assert distance(results[False], exact) > LIMIT


def test_the_pooled_ratio_is_right_for_few_visits():
    rng = np.random.default_rng(0)
    counts = rng.poisson(3.0, size=(400, 2, 20, 1))
    ratios = np.array([tied_means.pooled_ratio(c) for c in counts])[:, :, 0]
    assert ratios[:, 0].mean() == pytest.approx(1.0, abs=0.06)
    # Its standard error is honest: 68% of the estimates are within one.
    covered = np.mean(np.abs(ratios[:, 0] - 1) < ratios[:, 1])
    assert 0.6 < covered < 0.76


@pytest.mark.slow
def test_reproduce_writes_figure_numbers_and_page(tmp_path, monkeypatch):
    monkeypatch.setitem(tied_means.SCALES, "quick", tied_means.Scale(4000, 40, tied_means_rivals.Scale(1000, 2, 10)))
    figure = tied_means.reproduce("quick", tmp_path, progress=False)
    assert figure.stat().st_size > 10_000
    numbers = json.loads((tmp_path / "tied-means.json").read_text())
    assert {claim["what"] for claim in numbers["claims"]} >= {"ratio of the modes", "E |theta2|"}
    page = (tmp_path / "tied-means.md").read_text()
    assert "tied-means.png" in page
    assert "MINT, no penalty (paper)" in page


@pytest.mark.slow
def test_stochastic_gradients_stay_in_the_mode_where_they_start(posterior):
    scale = tied_means_rivals.Scale(gradient_steps=20_000, runs=2, draws=10)
    seen = tied_means_rivals.visits_of_gradient_methods(posterior, tied_means.MODES, scale, progress=False)
    for chains in seen.values():
        assert chains == ["(0.0, 1.0)"] * 2 + ["(1.0, -1.0)"] * 2


@pytest.mark.paper
def test_at_the_papers_scale_the_ratio_is_one(tmp_path):
    tied_means.reproduce("paper", tmp_path, progress=False)
    claims = json.loads((tmp_path / "tied-means.json").read_text())["claims"]
    ours = [c for c in claims if c["method"] == tied_means.LABELS["mint"] and c["z"] is not None]
    assert len(ours) == 5
    for claim in ours:
        assert abs(claim["z"]) < (2 if claim["what"] == "ratio of the modes" else LIMIT), claim
