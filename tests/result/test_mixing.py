"""ESS and R-hat of many parameters at once are what ArviZ says of each."""

import numpy as np
import pytest
import xarray
from arviz_stats import ess as arviz_ess
from arviz_stats import rhat as arviz_rhat

import mintmc
from made_tree import made_tree
from mintmc.result.mixing import ess_bulk, mixing, rhat
from mintmc.result.worst import labels, worst


def correlated(chains, draws, persistence, rng):
    noise = rng.normal(size=(chains, draws, 3))
    for draw in range(1, draws):
        noise[:, draw] += persistence * noise[:, draw - 1]
    return noise


def parameters(chains, draws):
    """Slow, fast and alternating ones, some with ties, one that never changes."""
    rng = np.random.default_rng(draws)
    kinds = [correlated(chains, draws, persistence, rng) for persistence in (0.0, 0.9, -0.7, 0.99)]
    kinds.append(np.round(correlated(chains, draws, 0.5, rng)))
    kinds[-1][:, :, -1] = 1.0
    return np.concatenate(kinds, axis=2)


@pytest.mark.parametrize(("chains", "draws"), [(4, 1000), (1, 501), (2, 7), (3, 4), (2, 5), (2, 6), (4, 37)])
def test_each_number_is_that_of_arviz(chains, draws):
    values = parameters(chains, draws)
    values[0, 1, 1] = np.nan
    dataset = xarray.Dataset({"x": (("chain", "draw", "p"), values)})
    found = mixing(values)
    with np.errstate(all="ignore"):
        # Sums in another order differ in their last bits.
        np.testing.assert_allclose(found.ess_bulk, arviz_ess(dataset, method="bulk")["x"], rtol=1e-10)
        np.testing.assert_allclose(found.ess_tail, arviz_ess(dataset, method="tail")["x"], rtol=1e-10)
        if chains > 1:
            np.testing.assert_allclose(found.rhat, arviz_rhat(dataset)["x"], rtol=1e-10)
    np.testing.assert_array_equal(found.ess_bulk, ess_bulk(values))
    np.testing.assert_array_equal(found.rhat, rhat(values))


def test_what_cannot_be_known_is_not_a_number():
    assert np.isnan(mixing(np.zeros((2, 3, 2)))).all()
    assert np.isnan(rhat(np.random.default_rng(0).normal(size=(1, 50, 2)))).all()


def test_parameters_are_taken_some_at_a_time(monkeypatch):
    values = parameters(2, 50)
    whole = mixing(values)
    monkeypatch.setattr("mintmc.result.mixing._AT_A_TIME", 250)
    np.testing.assert_array_equal(whole, mixing(values))


@pytest.fixture(scope="module")
def tree():
    """A good parameter and one whose chains disagree."""
    draws = np.random.default_rng(0).normal(size=(4, 400, 3))
    draws[0, :, 2] += 5
    posterior = mintmc.Posterior(lambda p, x: -0.5 * ((x - p["a"]) ** 2 + p["b"].sum()), np.zeros(3))
    known = {"acceptance_rate": 0.5, "log_ratio_noise": 0.0, "data_touched": 1}
    statistics = {name: np.full((4, 400), value) for name, value in known.items()}
    others = {"undefined_moves": 0, "data_touched_setup": [0] * 4}
    return made_tree(posterior, {"a": 0.0, "b": np.zeros(2)}, draws, statistics=statistics, **others)


def test_the_worst_come_first(tree):
    table = worst(tree, 2)
    assert table.index[0] == "b[1]"
    assert len(table) == 2
    assert table.loc["b[1]", "r_hat"] > 1.5
    assert list(labels(tree.posterior.to_dataset())) == ["a", "b[0]", "b[1]"]


def test_a_run_is_judged_by_the_parameters_that_matter(tree):
    assert mintmc.diagnose(tree).numbers["rhat"] > 1.5
    assert mintmc.diagnose(tree, var_names=["a"]).numbers["rhat"] < 1.02
    assert mintmc.diagnose(tree, var_names="a").numbers["ess_bulk"] > 1000


@pytest.mark.parametrize("names", [["c"], [], [1], 3])
def test_other_names_are_refused(tree, names):
    with pytest.raises((ValueError, TypeError), match="var_names must"):
        mintmc.diagnose(tree, var_names=names)
