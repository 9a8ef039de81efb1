"""Models are compared by ArviZ, with the efficiency of the draws that were used."""

import arviz_stats
import jax
import numpy as np
import pytest
import scipy.signal

import mintmc
from made_tree import made_tree, normal_posterior, normal_tree, observations
from mintmc.result.compare import relative_efficiency
from mistakes import refused


@pytest.fixture(scope="module")
def right():
    posterior = normal_posterior()
    return mintmc.add_log_likelihood(normal_tree(posterior), posterior)


@pytest.fixture(scope="module")
def wide():
    posterior = mintmc.Posterior(lambda mean, x: jax.scipy.stats.norm.logpdf(x, mean, 3.0), observations())
    x = observations()
    theta = np.random.default_rng(2).normal(x.mean(), 3 / len(x) ** 0.5, size=(4, 500, 1))
    return mintmc.add_log_likelihood(made_tree(posterior, 0.0, theta), posterior)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, in ArviZ
def test_the_better_model_is_first_and_all_is_as_in_arviz(right, wide):
    table = mintmc.compare({"wide": wide, "right": right})
    assert list(table.index) == ["right", "wide"]
    assert table.loc["right", "elpd"] == pytest.approx(mintmc.loo(right).elpd)
    assert table.loc["right", "weight"] > 0.95
    theirs = arviz_stats.compare({"wide": wide, "right": right})
    assert list(theirs.columns) == list(table.columns)
    np.testing.assert_allclose(table[["elpd", "p", "se"]].to_numpy(float), theirs[["elpd", "p", "se"]].to_numpy(float))
    assert len(mintmc.compare({"a": right, "b": wide}, method="pseudo-BMA", var_name="y")) == 2


def test_the_efficiency_is_that_of_the_draws_that_were_used():
    posterior = normal_posterior()
    noise = np.random.default_rng(0).normal(size=(4, 4000, 1))
    theta = scipy.signal.lfilter([1.0], [1.0, -0.9], noise, axis=1)  # its ESS is a nineteenth
    whole = made_tree(posterior, 0.0, theta)
    assert relative_efficiency(mintmc.add_log_likelihood(whole, posterior)) == pytest.approx(1 / 19, rel=0.5)
    thinned = mintmc.add_log_likelihood(whole, posterior, draws=100)
    assert relative_efficiency(thinned) == pytest.approx(1, rel=0.3)


def test_one_chain_has_none():
    posterior = normal_posterior()
    tree = mintmc.add_log_likelihood(normal_tree(posterior, chains=1), posterior)
    assert relative_efficiency(tree) == 1
    assert np.isfinite(mintmc.loo(tree).elpd)


def test_tempered_draws_are_called_so(right):
    posterior = normal_posterior()
    hot = normal_tree(posterior, temperature=1.5)
    with pytest.warns(mintmc.TemperedDraws):
        mintmc.add_log_likelihood(hot, posterior, allow_tempered=True)
    with pytest.warns(mintmc.TemperedDraws, match="compare, 'hot': these are draws at temperature 1.5"):
        mintmc.compare({"right": right, "hot": hot})


MISTAKES = {
    "no dict": (lambda tree, bare: mintmc.compare([tree, tree]), TypeError, "trees must be a dict of at least two"),
    "one": (lambda tree, bare: mintmc.compare({"a": tree}), TypeError, "trees must be a dict of at least two"),
    "no tree": (lambda tree, bare: mintmc.compare({"a": tree, "b": 3}), TypeError, r"trees\['b'\] must be what"),
    "no log-likelihood": (
        lambda tree, bare: mintmc.compare({"a": tree, "b": bare}),
        r"trees\['b'\] must have a group log_likelihood \(use mintmc.add_log_likelihood\(tree, posterior\)\), got \[",
    ),
    "loo of none": (lambda tree, bare: mintmc.loo(bare), "tree must have a group log_likelihood"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name, right):
    call, *answer = MISTAKES[name]
    refused(lambda: call(right, normal_tree(normal_posterior())), *answer)


def test_models_of_other_rows_are_not_compared(right):
    few = right.copy()
    few["log_likelihood"] = few["log_likelihood"].isel(obs=slice(3))
    refused(lambda: mintmc.compare({"a": right, "b": few}), "trees must be models of the same observations, got .*3")
