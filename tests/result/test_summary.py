"""The table is ArviZ's, and says what draws it was made of; and all that comes after a run works on a stored one."""

import arviz_stats
import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

import made_runs
import mintmc
from made_tree import normal_posterior, normal_tree
from mintmc.cli import app
from mistakes import refused


def test_the_table_is_that_of_arviz():
    tree = normal_tree(normal_posterior())
    table = mintmc.summary(tree, round_to=2)
    assert table.equals(arviz_stats.summary(tree))
    assert table.attrs["temperature"] == 1
    raw, shown = arviz_stats.summary(tree, round_to="none"), mintmc.summary(tree)
    # The standard deviation, 0.13, with three digits, and all that is measured in it with as many decimals.
    for name, places in {"mean": 3, "sd": 3, "mcse_mean": 4, "ess_bulk": 0, "r_hat": 3}.items():
        assert shown[name]["theta"] == round(raw[name]["theta"], places)
    assert list(mintmc.summary(tree, kind="stats", round_to=3).columns)[:2] == ["mean", "sd"]


def test_many_parameters_are_taken_together_with_the_same_numbers():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(4, 250, 60)).cumsum(axis=1) * 0.1 + rng.normal(size=(4, 250, 60))
    tree = made_runs.whole_run(theta, init={"a": np.zeros((6, 5)), "b": np.zeros(29), "c": 0.0})
    table, arviz = mintmc.summary(tree, round_to="none"), arviz_stats.summary(tree, round_to="none")
    pandas.testing.assert_frame_equal(table, arviz, check_dtype=False, rtol=1e-5)
    some = mintmc.summary(tree, var_names=["a"])
    assert list(some.index) == [name for name in arviz.index if name.startswith("a")]


def test_quantities_that_matter_can_be_named():
    tree = made_runs.good(dim=3)
    name = next(iter(tree.posterior.data_vars))
    assert len(mintmc.summary(tree, var_names=name)) == tree.posterior[name][0, 0].size
    refused(lambda: mintmc.summary(tree, var_names=["none"]), f"var_names must be among {name}, got 'none'")


def test_tempered_draws_are_called_so():
    hot = normal_tree(normal_posterior(), temperature=20.0)
    with pytest.warns(mintmc.TemperedDraws, match="summary: these are draws at temperature 20, not draws of the post"):
        table = mintmc.summary(hot, round_to=2)
    assert table.equals(arviz_stats.summary(hot, group="tempered_posterior"))
    assert table.attrs["temperature"] == 20


def test_mistakes():
    tree = normal_tree(normal_posterior())
    refused(lambda: mintmc.summary(3), TypeError, "tree must be what mintmc.sample returned")
    refused(lambda: mintmc.summary(tree, group="prior"), "tree must have a group prior, got")
    del tree["posterior"]
    refused(lambda: mintmc.summary(tree), "tree must have a group posterior or tempered_posterior")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A tempered run in a store, as it is read."""
    out = tmp_path_factory.mktemp("run") / "run.zarr"
    sampler = mintmc.MINT(batch_size=20, temperature=4.0, proposal=mintmc.RandomWalk(0.4))
    settings = {"draws": 300, "warmup": 20, "chains": 2, "progress": False, "audit": False}
    return mintmc.sample(normal_posterior(), sampler, init=0.5, out=out, **settings), out


def invoke(*arguments):
    return CliRunner().invoke(app, ["summary", *map(str, arguments)])


def test_the_command_says_what_is_not_the_posterior(stored):
    result = invoke(stored[1])
    assert result.exit_code == 0, result.output
    first, *lines = result.output.splitlines()
    assert first == "summary: these are draws at temperature 4, not draws of the posterior"
    assert "r_hat" in lines[0]
    assert lines[1].startswith("theta")
    assert invoke(stored[1], "--variables", "theta").output == result.output


def test_a_mistake_is_one_line(stored, tmp_path):
    for arguments, message in (
        ((tmp_path / "none",), "error: path must be a run of mintmc"),
        ((stored[1], "--variables", "a"), "error: --variables must be among theta, got a"),
    ):
        result = invoke(*arguments)
        assert result.exit_code == 2
        assert result.output.startswith(message)
        assert result.output.count("\n") == 1


@pytest.mark.filterwarnings("ignore::mintmc.TemperedDraws", "ignore:Estimated shape")
def test_a_stored_run_is_read_in_blocks(stored, tmp_path):
    tree, posterior = stored[0], normal_posterior()
    theta = tree["tempered_posterior"]["theta"].values
    assert float(mintmc.params_at(tree, 1, 7)) == theta[1, 7]
    np.testing.assert_allclose(mintmc.map_draws(tree, lambda t: 2 * t, batch=50), 2 * theta)
    np.testing.assert_allclose(
        mintmc.predict(tree, lambda t, x: t + x, np.arange(3.0))["prediction"], theta[..., None] + np.arange(3.0)
    )
    mintmc.add_log_likelihood(tree, posterior, out=tmp_path / "log_likelihood.zarr", allow_tempered=True)
    assert np.isfinite(mintmc.loo(tree).elpd)
