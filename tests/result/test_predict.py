"""Predictions are what a loop over draws and inputs finds, whatever the blocks, in memory or on disk."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import mintmc
from made_tree import made_tree, normal_law, normal_posterior, normal_tree, observations
from mintmc.data import ArrayData
from mintmc.result import over_rows
from mintmc.result.draws import Draws
from mistakes import refused
from truth import LIMIT, distance

INIT = {"slope": np.zeros(2, np.float32), "layers": [0.0]}
CHAINS, DRAWS, INPUTS = 2, 6, 11


@pytest.fixture(scope="module")
def tree():
    posterior = mintmc.Posterior.from_density(lambda p: -jnp.sum(p["slope"] ** 2) - p["layers"][0] ** 2)
    return made_tree(posterior, INIT, np.random.default_rng(0).normal(size=(CHAINS, DRAWS, 3)))


@pytest.fixture(scope="module")
def inputs():
    return {"x": np.random.default_rng(1).normal(size=(INPUTS, 2)).astype(np.float32), "k": np.arange(INPUTS)}


def line(params, row):
    return params["slope"] @ row["x"] + params["layers"][0] * row["k"]


def noisy(params, row, key):
    return {"line": line(params, row), "noise": jax.random.normal(key, (2,))}


@pytest.mark.parametrize("batch", [None, 7, 25, 10_000])
@pytest.mark.parametrize("draws", [None, 4])
def test_it_is_what_a_loop_finds(tree, inputs, batch, draws):
    found = mintmc.predict(tree, line, inputs, batch=batch, draws=draws)["prediction"]
    at = found["draw"].values
    assert list(at) == (list(range(DRAWS)) if draws is None else [0, 1, 3, 4])
    assert found.dims == ("chain", "draw", "obs")
    rows = [{"x": x, "k": k} for x, k in zip(inputs["x"], inputs["k"], strict=True)]
    params = [[jax.tree.map(np.asarray, mintmc.params_at(tree, c, d)) for d in at] for c in range(CHAINS)]
    expected = [[[line(one, row) for row in rows] for one in chain] for chain in params]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [3, 25])
def test_neither_blocks_nor_thinning_change_a_random_number(tree, inputs, batch):
    whole = mintmc.predict(tree, noisy, inputs, seed=3)
    assert whole["noise"].dims == ("chain", "draw", "obs", "noise_dim_0")
    assert len(np.unique(whole["noise"])) == whole["noise"].size  # every one has a key of its own
    xarray.testing.assert_equal(mintmc.predict(tree, noisy, inputs, seed=3, batch=batch)["noise"], whole["noise"])
    thinned = mintmc.predict(tree, noisy, inputs, seed=3, draws=4)
    xarray.testing.assert_equal(thinned["noise"], whole["noise"].isel(draw=[0, 1, 3, 4]))
    assert not np.isin(mintmc.predict(tree, noisy, inputs, seed=4)["noise"], whole["noise"]).any()


def test_on_disk_it_is_the_same(tree, inputs, tmp_path, monkeypatch):
    monkeypatch.setattr("mintmc.result.arrays._BYTES_PER_STRIPE", 500)  # three rows of twelve draws
    out = tmp_path / "new" / "predictions.zarr"
    stored = mintmc.predict(tree, noisy, inputs, seed=3, out=out, batch=5)
    xarray.testing.assert_allclose(stored, mintmc.predict(tree, noisy, inputs, seed=3))
    assert stored.attrs["draws_of_each_chain"] == DRAWS
    assert [path.name for path in out.parent.iterdir()] == ["predictions.zarr"]
    assert len(list((out / "predictions" / "line" / "c" / "0" / "0").iterdir())) > 1
    again = xarray.open_datatree(out, engine="zarr", consolidated=False)["predictions"]
    xarray.testing.assert_equal(again.to_dataset(), stored)


def test_nothing_is_left_of_what_was_stopped(tree, inputs, tmp_path, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("mintmc.result.over_rows.stretches", stop)
    with pytest.raises(KeyboardInterrupt):
        mintmc.predict(tree, line, inputs, out=tmp_path / "predictions.zarr")
    assert not list(tmp_path.iterdir())


def test_inputs_may_lie_in_a_file(tree, tmp_path):
    x = np.random.default_rng(1).normal(size=(INPUTS, 2)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    slope = lambda params, x: params["slope"] @ x  # noqa: E731
    expected = mintmc.predict(tree, slope, x)
    for given in (tmp_path / "x.npy", mintmc.open_data(tmp_path / "x.npy")):
        xarray.testing.assert_allclose(mintmc.predict(tree, slope, given, batch=9), expected)


def test_a_random_prediction_has_the_predictive_law():
    x = observations()
    mean, sd = normal_law(x)
    tree = normal_tree(normal_posterior())
    new = lambda mean, x, key: mean + jax.random.normal(key)  # noqa: E731
    found = mintmc.predict(tree, new, np.zeros(1), seed=0)["prediction"].values[..., 0]
    assert distance(found, mean) < LIMIT
    assert distance((found - mean) ** 2, 1 + sd**2) < LIMIT
    assert distance((found - mean) ** 2, 0.7 * (1 + sd**2)) > LIMIT


def test_a_prediction_that_would_not_fit_is_thinned_and_says_so(tree, inputs, monkeypatch):
    monkeypatch.setattr(over_rows, "MOST_BYTES", 4 * CHAINS * INPUTS * 3)
    found = mintmc.predict(tree, line, inputs)
    assert found.sizes["draw"] == found.attrs["draws_of_each_chain"] == 3
    assert found.attrs["draws_of_each_chain_sampled"] == DRAWS


def test_blocks_hold_no_more_than_they_should(tree):
    row = {"x": jax.ShapeDtypeStruct((), np.float32)}
    for n, width in ((1, 1), (10, 1), (10_000, 1), (1000, 2000)):
        work = over_rows.OverRows(None, row, ArrayData(np.zeros((n, width), np.float32)))
        rows, draws = work.block(Draws.of(tree), None)
        assert 1 <= rows <= n
        assert 1 <= draws <= DRAWS
        assert rows * draws * CHAINS * width <= 2**20
        rows, draws = work.block(Draws.of(tree), 50)
        assert rows * draws * CHAINS <= 50


def test_tempered_draws_are_called_so():
    hot = normal_tree(normal_posterior(), temperature=20.0)
    with pytest.warns(mintmc.TemperedDraws, match="predict: these are draws at temperature 20"):
        assert mintmc.predict(hot, lambda mean, x: mean, np.zeros(2)).attrs["temperature"] == 20


MISTAKES = {
    "function": (lambda tree, x: mintmc.predict(tree, 3, x), TypeError, "function must be a function, got 3"),
    "no inputs": (lambda tree, x: mintmc.predict(tree, line, np.zeros((0, 2))), "inputs must have at least one row"),
    "ragged inputs": (
        lambda tree, x: mintmc.predict(tree, line, {"x": np.zeros((3, 2)), "k": np.zeros(2)}),
        "inputs must have one leading axis",
    ),
    "inputs that are not finite": (
        lambda tree, x: mintmc.predict(tree, line, {"x": np.full((3, 2), np.nan), "k": np.zeros(3)}),
        r"inputs\['x'\] must be finite, got nan in row 0",
    ),
    "a function that fails": (
        lambda tree, x: mintmc.predict(tree, line, x["x"]),
        r"function must work for params, .*, a row, float32\[2\]",
    ),
    "a key without a seed": (lambda tree, x: mintmc.predict(tree, noisy, x), "function must work for params"),
    "a seed without a key": (
        lambda tree, x: mintmc.predict(tree, line, x, seed=0),
        r"function must work for .*, and a key \(as seed=0\), got TypeError",
    ),
    "no array": (lambda tree, x: mintmc.predict(tree, lambda p, x: None, x), "function must return an array, or"),
    "a name that is taken": (
        lambda tree, x: mintmc.predict(tree, lambda p, x: {"obs": 1.0}, x),
        "function must return an array, or a dict of arrays by name, got {'obs': 1.0}",
    ),
    "name": (lambda tree, x: mintmc.predict(tree, line, x, name="draw"), "name must be a word other than .*'draw'"),
    "seed": (lambda tree, x: mintmc.predict(tree, noisy, x, seed=-1), r"seed must be in .*, got -1"),
    "batch": (lambda tree, x: mintmc.predict(tree, line, x, batch=0), "batch must be at least 1, got 0"),
    "draws": (lambda tree, x: mintmc.predict(tree, line, x, draws=0), "draws must be in .*, got 0"),
    "remote": (lambda tree, x: mintmc.predict(tree, line, x, out="s3://a/b"), "out must be a local path"),
    "there already": (lambda tree, x: mintmc.predict(tree, line, x, out="."), "out must be a path where nothing is"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name, tree, inputs):
    call, *answer = MISTAKES[name]
    refused(lambda: call(tree, inputs), *answer)


def test_what_does_not_fit_must_be_asked_for(tree, inputs, tmp_path, monkeypatch):
    monkeypatch.setattr(over_rows, "MOST_BYTES", 4 * CHAINS * INPUTS)
    refused(lambda: mintmc.predict(tree, line, inputs, draws=2), "out must be a path for an array of .*, got None")
    assert mintmc.predict(tree, line, inputs, draws=2, out=tmp_path / "a.zarr").sizes["draw"] == 2
    monkeypatch.setattr(over_rows, "MOST_BYTES", 4 * CHAINS * INPUTS - 1)
    refused(lambda: mintmc.predict(tree, line, inputs), "draws must be given, and out, where one draw of each chain")
