"""Log-likelihoods of rows are scipy's, leave-one-out is the analytic one, and predictive checks have what they need."""

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import xarray

import mintmc
from made_tree import CHAINS, DRAWS, PRIOR_SD, N, made_tree, normal_posterior, normal_tree, observations
from mintmc.result import over_rows
from mistakes import refused
from truth import LIMIT


@pytest.fixture(scope="module")
def posterior():
    return normal_posterior()


@pytest.fixture(scope="module")
def made(posterior):
    """To be copied before anything is added."""
    return normal_tree(posterior)


@pytest.fixture
def tree(made):
    return made.copy()


def simulate(mean, x, key):
    return mean + jax.random.normal(key)


def expected(tree, x):
    return scipy.stats.norm.logpdf(x, np.asarray(tree["posterior"]["theta"], float)[..., None])


def test_log_likelihoods_are_those_of_scipy(tree, posterior):
    assert mintmc.add_log_likelihood(tree, posterior) is tree
    found = tree.log_likelihood["y"]
    assert found.dims == ("chain", "draw", "obs")
    np.testing.assert_allclose(found, expected(tree, observations()), rtol=1e-5, atol=1e-5)
    assert tree.log_likelihood.attrs["temperature"] == 1


def test_they_add_up_to_the_energy(tree, posterior):
    mintmc.add_log_likelihood(tree, posterior, draws=3, batch=7)
    for draw in tree.log_likelihood["draw"].values:
        theta = mintmc.params_at(tree, 2, draw)
        total = float(tree.log_likelihood["y"].sel(chain=2, draw=draw).sum()) + float(posterior.log_prior(theta))
        assert abs(total + posterior.energy(theta)) < 1e-3


def test_constrained_params_batched_functions_and_rows_on_disk(tmp_path):
    x = observations()
    np.save(tmp_path / "x.npy", x)
    mintmc.prepare(tmp_path / "x.npy", tmp_path / "prepared")
    init = {"mean": 0.0, "sd": 1.0}
    theta = np.random.default_rng(0).normal(0.0, 0.3, size=(2, 5, 2))

    def log_likelihood(p, x):
        return jax.scipy.stats.norm.logpdf(x, p["mean"], p["sd"])

    for data, batched in ((x, False), (x, True), (tmp_path / "x.npy", False), (tmp_path / "prepared", True)):
        posterior = mintmc.Posterior(log_likelihood, data, transforms={"sd": "positive"}, batched=batched)
        tree = made_tree(posterior, init, theta)
        found = mintmc.add_log_likelihood(tree, posterior, batch=50).log_likelihood["y"]
        rows = np.asarray(posterior.data.read(0, N))
        draws = (np.asarray(tree["posterior"][name], float)[..., None] for name in ("mean", "sd"))
        np.testing.assert_allclose(found, scipy.stats.norm.logpdf(rows, *draws), rtol=1e-4, atol=1e-4)
        assert (np.asarray(tree["posterior"]["sd"]) > 0).all()


def left_out(x):
    """The log predictive density of every observation, given the others, exactly."""
    precision = 1 / PRIOR_SD**2 + len(x) - 1
    return scipy.stats.norm.logpdf(x, (x.sum() - x) / precision, np.sqrt(1 + 1 / precision))


def distance_from_left_out(tree, posterior):
    """Standard errors between leave-one-out estimates, one of every chain by itself, and the exact answer."""
    mintmc.add_log_likelihood(tree, posterior, allow_tempered=True)
    group = tree["log_likelihood"].to_dataset()
    found = [arviz_stats.loo(group_of(group.isel(chain=[c])), reff=1.0).elpd for c in range(group.sizes["chain"])]
    error = np.std(found, ddof=1) / len(found) ** 0.5
    return abs(np.mean(found) - left_out(observations().astype(float)).sum()) / error, error


def group_of(dataset):
    return xarray.DataTree.from_dict({"log_likelihood": dataset})


def test_leave_one_out_is_the_analytic_one(posterior):
    distance, error = distance_from_left_out(normal_tree(posterior, chains=20, draws=1000), posterior)
    assert distance < LIMIT
    assert error < 0.05  # so that it means something: the estimate's own is 5


@pytest.mark.filterwarnings("ignore::mintmc.TemperedDraws", "ignore:Estimated shape")
def test_that_of_tempered_draws_is_not(posterior):
    distance, _ = distance_from_left_out(normal_tree(posterior, 20, 1000, temperature=5.0), posterior)
    assert distance > LIMIT


def test_arviz_works_on_the_tree(tree, posterior):
    mintmc.add_log_likelihood(tree, posterior)
    mintmc.add_posterior_predictive(tree, posterior, simulate)
    ours, theirs = mintmc.loo(tree), arviz_stats.loo(tree)
    assert ours.elpd == pytest.approx(theirs.elpd, abs=1e-9)
    assert ours.n_data_points == N
    assert ours.p == pytest.approx(N / (N + 1 / PRIOR_SD**2), abs=0.4)
    pit = arviz_stats.loo_pit(tree)["y"].values
    assert scipy.stats.kstest(pit, "uniform").pvalue > 1e-3


def test_data_drawn_anew_and_what_was_observed(tree, posterior):
    mintmc.add_posterior_predictive(tree, posterior, simulate, seed=2)
    np.testing.assert_array_equal(tree.observed_data["y"], observations())
    drawn = tree.posterior_predictive["y"]
    assert drawn.dims == ("chain", "draw", "obs")
    noise = (drawn.values - tree["posterior"]["theta"].values[..., None]).ravel()
    assert scipy.stats.kstest(noise[::7], "norm").pvalue > 1e-3
    same = mintmc.predict(tree, simulate, observations(), seed=2)["prediction"].values
    np.testing.assert_array_equal(drawn, same)


@pytest.mark.parametrize(
    ("data", "observed", "name"),
    [
        ({"x": np.zeros(3), "y": np.arange(3.0)}, None, "y"),
        ({"x": np.zeros(3), "count": np.arange(3.0)}, "count", "y"),
        ({"x": np.zeros(3), "count": np.arange(3.0)}, None, "count"),
        ((np.zeros(3), np.arange(3.0)), lambda row: row[1], "y"),
    ],
)
def test_what_of_a_row_is_observed(data, observed, name):
    posterior = mintmc.Posterior(lambda mean, row: -(mean**2), data)
    tree = made_tree(posterior, 0.0, np.zeros((1, 4, 1)))
    mintmc.add_posterior_predictive(
        tree, posterior, lambda mean, row, key: jax.random.normal(key), observed=observed, name=name
    )
    np.testing.assert_array_equal(tree.observed_data[name], np.arange(3.0))
    assert tree.posterior_predictive[name].shape == (1, 4, 3)


def test_large_arrays_go_to_disk(tree, posterior, tmp_path, monkeypatch):
    monkeypatch.setattr(over_rows, "MOST_BYTES", 4 * CHAINS * N * 10)
    mintmc.add_log_likelihood(tree, posterior)
    assert tree.log_likelihood.attrs["draws_of_each_chain"] == 10
    refused(lambda: mintmc.add_log_likelihood(tree, posterior, draws=DRAWS), "out must be a path for an array of")
    mintmc.add_log_likelihood(tree, posterior, draws=DRAWS, out=tmp_path / "log_likelihood.zarr")
    assert not tree["log_likelihood"]["y"].variable._in_memory  # read as it is used
    np.testing.assert_allclose(tree.log_likelihood["y"], expected(tree, observations()), rtol=1e-5, atol=1e-5)
    assert np.isfinite(mintmc.loo(tree).elpd)
    assert np.isfinite(arviz_stats.loo(tree).elpd)


@pytest.mark.filterwarnings("ignore:Estimated shape")  # which is ArviZ's way to see it
def test_tempered_draws_are_refused_or_called_so(posterior):
    hot = normal_tree(posterior, temperature=20.0)
    wanted = "tree must have draws at T = 1 for .* allow_tempered=True.*, got draws at temperature 20, not draws"
    refused(lambda: mintmc.add_log_likelihood(hot, posterior), wanted)
    refused(lambda: mintmc.add_posterior_predictive(hot, posterior, simulate), wanted)
    assert set(hot.children) == {"tempered_posterior", "sample_stats", "start"}
    with pytest.warns(mintmc.TemperedDraws, match="draws at temperature 20"):
        mintmc.add_log_likelihood(hot, posterior, allow_tempered=True)
    with pytest.warns(mintmc.TemperedDraws, match="loo: these are draws at temperature 20"):
        assert np.isfinite(mintmc.loo(hot).elpd)
    with pytest.warns(mintmc.TemperedDraws):
        mintmc.add_posterior_predictive(hot, posterior, simulate, draws=20, allow_tempered=True)


PAIRS = mintmc.Posterior(lambda mean, row: -(mean**2), (np.zeros(N), np.zeros(N)))
DENSITY = mintmc.Posterior.from_density(lambda x: -(x**2))
LOG, NEW = mintmc.add_log_likelihood, mintmc.add_posterior_predictive
MISTAKES = {
    "no tree": (lambda t, p: LOG(3, p), TypeError, "tree must be what mintmc.sample returned"),
    "no posterior": (lambda t, p: LOG(t, 3), TypeError, "posterior must be a mintmc.Posterior, got 3"),
    "a density": (lambda t, p: LOG(t, DENSITY), "posterior must have data, got a density without data"),
    "other rows": (
        lambda t, p: LOG(t, normal_posterior(np.zeros(3))),
        f"posterior must be what was sampled, of {N} rows, got one of 3",
    ),
    "other params": (
        lambda t, p: LOG(t, mintmc.Posterior(lambda q, x: q["mean"] * x, observations())),
        "log_likelihood must work for params like the draws",
    ),
    "name": (lambda t, p: LOG(t, p, name=3), "name must be a word"),
    "flag": (lambda t, p: LOG(t, p, allow_tempered=3), TypeError, "allow_tempered must be True or False, got 3"),
    "draws": (lambda t, p: LOG(t, p, draws=1000), "draws must be in .*, got 1000"),
    "function": (lambda t, p: NEW(t, p, None), TypeError, "function must be a function, got None"),
    "a function without a key": (
        lambda t, p: NEW(t, p, lambda mean, x: mean),
        "function must work for .* and a key .*, got TypeError",
    ),
    "another shape": (
        lambda t, p: NEW(t, p, lambda mean, x, key: jnp.ones(2)),
        r"function must return an array like what is observed, of shape \(\), got",
    ),
    "another name": (
        lambda t, p: NEW(t, p, lambda mean, x, key: {"z": mean}),
        "function must return an array like what is observed",
    ),
    "what is observed": (
        lambda t, p: NEW(t, PAIRS, simulate),
        "observed must say what of a row is observed, one of datum -> array, got None",
    ),
    "no such column": (
        lambda t, p: NEW(t, normal_posterior({"x": observations()}), simulate),
        r"observed must say what of a row is observed, one of \['x'\], got None",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name, tree, posterior):
    call, *answer = MISTAKES[name]
    refused(lambda: call(tree, posterior), *answer)
