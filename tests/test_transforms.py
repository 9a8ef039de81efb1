"""Constrained parameters: the law is that of the constrained parameter, at any temperature, whatever chains move."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import mintmc
from mintmc.transforms import Coordinates

COUNTS = np.random.default_rng(0).poisson(0.7, size=12).astype(np.float32)
A, B = 2.0, 1.5
RUN = {"draws": 4000, "warmup": 500, "chains": 4, "progress": False, "seed": 1}


def log_likelihood(p, y):
    return y * jnp.log(p["rate"]) - p["rate"]


def log_prior(p):
    return (A - 1) * jnp.log(p["rate"]) - B * p["rate"]


def posterior(**settings):
    return mintmc.Posterior(log_likelihood, COUNTS, log_prior, transforms={"rate": "positive"}, **settings)


def distance_from_gamma(tree, group, temperature):
    """Mean and mean logarithm, in standard errors from those of the tempered gamma posterior."""
    from arviz_stats import mcse

    draws = tree[group]["rate"]
    exact = stats.gamma((A - 1 + COUNTS.sum()) / temperature + 1, scale=temperature / (B + len(COUNTS)))
    found = []
    for function in (lambda x: x, np.log):
        values = function(draws)
        error = float(mcse(values.to_dataset(name="x"), method="mean")["x"])
        found.append((float(values.mean()) - exact.expect(function)) / error)
    return np.abs(found).max()


@pytest.mark.parametrize(("temperature", "group"), [(1.0, "posterior"), (6.0, "tempered_posterior")])
def test_the_law_is_that_of_the_constrained_parameter(temperature, group):
    sampler = mintmc.MetropolisHastings(temperature=temperature)
    assert distance_from_gamma(mintmc.sample(posterior(), sampler, init={"rate": 1.0}, **RUN), group, temperature) < 4


def test_a_jacobian_that_is_forgotten_is_caught(monkeypatch):
    monkeypatch.setattr(Coordinates, "log_jacobian", lambda self, free: 0.0 * free["rate"])
    tree = mintmc.sample(posterior(), mintmc.MetropolisHastings(), init={"rate": 1.0}, **RUN)
    assert distance_from_gamma(tree, "posterior", 1.0) > 4


@pytest.mark.slow
def test_a_simplex_has_the_dirichlet_posterior_and_names_along_it():
    from arviz_stats import mcse

    labels = np.repeat([0, 1, 2], [5, 12, 30])
    model = mintmc.Posterior(
        lambda p, k: jnp.log(p["w"])[k],
        labels,
        transforms={"w": "simplex"},
        deterministics=lambda p: {"odds": p["w"][0] / p["w"][2]},
        dims={"w": "class"},
        coords={"class": ["a", "b", "c"]},
    )
    sampler = mintmc.MINT(temperature=1.0, control=mintmc.Taylor(), batch_size=47)
    tree = mintmc.sample(model, sampler, init={"w": np.full(3, 1 / 3)}, **RUN)
    draws = tree.posterior["w"]
    error = mcse(draws.to_dataset(name="w"), method="mean")["w"].values
    exact = (np.array([5, 12, 30]) + 1) / 50
    assert np.abs((draws.mean(("chain", "draw")).values - exact) / error).max() < 4
    assert draws.coords["class"].values.tolist() == ["a", "b", "c"]
    assert np.allclose(draws.sum("class"), 1, atol=1e-5)
    assert np.allclose(tree.posterior["odds"], draws[..., 0] / draws[..., 2], rtol=1e-5)
    assert tree["unconstrained_posterior"]["w"].shape[-1] == 2


def test_a_stored_run_goes_on_and_shows_the_same(tmp_path):
    model = posterior(deterministics=lambda p: {"half": p["rate"] / 2})
    settings = {**RUN, "draws": 60, "warmup": 20}
    sampler = mintmc.MetropolisHastings()
    whole = mintmc.sample(model, sampler, init={"rate": 1}, **settings)  # a whole number is made a float
    mintmc.sample(model, sampler, init={"rate": 1}, out=tmp_path / "run.zarr", **{**settings, "draws": 25})
    stored = mintmc.resume(tmp_path / "run.zarr", model, draws=60, progress=False)
    for group in ("posterior", "unconstrained_posterior"):
        for name in whole[group].data_vars:
            np.testing.assert_array_equal(stored[group][name], whole[group][name])
    np.testing.assert_allclose(np.log(whole.posterior["rate"]), whole["unconstrained_posterior"]["rate"], atol=1e-5)
    other = mintmc.Posterior(log_likelihood, COUNTS, log_prior, transforms={"rate": ("interval", 0, 50)})
    with pytest.raises(ValueError, match="differs"):
        mintmc.sample(other, sampler, init={"rate": 1.0}, out=tmp_path / "run.zarr", **settings)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("positive", 2.0),
        ("unit", np.array([0.2, 0.9])),
        (("interval", -1, 3), 2.5),
        ("ordered", np.array([-1.0, 0.5, 2.0])),
        ("simplex", np.array([0.2, 0.3, 0.5])),
        ("correlation", np.linalg.cholesky(np.array([[1, 0.3], [0.3, 1.0]]))),
    ],
)
def test_params_come_back_and_the_jacobian_is_that_of_the_map(word, value):
    coordinates = Coordinates.of({"x": word})
    free = coordinates.free({"x": jnp.asarray(value)})
    np.testing.assert_allclose(coordinates.constrain(free)["x"], value, rtol=1e-5, atol=1e-6)
    # On the coordinates of what the map leads to that are free: as many as it takes.
    picked = {"simplex": lambda y: y[:-1], "correlation": lambda y: y[1:, 0]}.get(word, jnp.ravel)
    jacobian = jax.jacobian(lambda x: picked(coordinates.constrain({"x": x})["x"]).ravel())(free["x"])
    size = jnp.size(free["x"])
    expected = jnp.linalg.slogdet(jacobian.reshape(size, size))[1]
    np.testing.assert_allclose(coordinates.log_jacobian(free), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("transforms", "init", "message"),
    [
        ({"rate": "negative"}, 1.0, "transforms['rate'] must be 'positive', .* got 'negative'"),
        ({"rate": ("interval", 2, 1)}, 1.0, "transforms['rate'] must be an interval from low to high"),
        ({"rote": "positive"}, 1.0, "transforms must name parameters of init, ['rate'], got 'rote'"),
        ({"rate": "positive"}, -1.0, "init['rate'] must lie where its transform leads, .*, got -1.0"),
        ({"rate": "simplex"}, np.array([0.5, 0.6]), "init['rate'] must lie where its transform leads"),
        ({"rate": "ordered"}, np.array([1.0, 0.0]), "init['rate'] must lie where its transform leads"),
        ({"rate": "simplex"}, 0.5, "init['rate'] must lie where its transform leads"),
        ("positive", 1.0, "transforms must be a dict from names of parameters, got 'positive'"),
    ],
)
@pytest.mark.usefixtures("no_compiler")
def test_a_transform_that_does_not_fit_is_one_line(transforms, init, message):
    pattern = message.replace("[", r"\[").replace("]", r"\]").replace("(", r"\(").replace(")", r"\)")
    with pytest.raises((ValueError, TypeError), match=pattern):
        mintmc.sample(
            mintmc.Posterior(lambda p, y: jnp.sum(p["rate"]), COUNTS, transforms=transforms),
            mintmc.MetropolisHastings(),
            init={"rate": init},
        )


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize(
    "sampler",
    [
        mintmc.MetropolisHastings(mintmc.Custom(lambda key, p: p)),
        mintmc.ScalableMH(mintmc.RegressionBounds.logistic(np.ones((12, 1)))),
        mintmc.ConfidenceMH(10, proxy=mintmc.TaylorProxy(lambda a, b, c: 0.0)),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_what_knows_only_params_is_refused(sampler):
    with pytest.raises(ValueError, match=r"posterior must be without transforms for .*, got transforms of rate"):
        mintmc.sample(posterior(), sampler, init={"rate": 1.0}, progress=False)


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"deterministics": lambda p: p["rate"]}, "deterministics must return a dict of arrays by name"),
        ({"deterministics": lambda p: {"rate": 1.0}}, "deterministics must have names of their own, got 'rate'"),
        ({"deterministics": lambda p: {"x": p["nothing"]}}, "deterministics must work for"),
        ({"dims": {"rote": "a"}}, "dims must name parameters of init, .*, got 'rote'"),
        ({"dims": {"rate": ["a"]}}, "must name its 0 axes"),
        ({"dims": ["rate"]}, "dims must be a dict"),
        ({"log_jacobian": lambda p: 0.0}, "log_jacobian must be None beside transforms"),
    ],
)
def test_what_is_shown_must_fit(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        mintmc.sample(posterior(**settings), mintmc.MetropolisHastings(), init={"rate": 1.0}, progress=False)


def test_a_likelihood_of_many_rows_at_once_is_that_of_each():
    x = np.random.default_rng(1).normal(size=(300, 3)).astype(np.float32)
    each = mintmc.Posterior(lambda w, row: -((row @ w) ** 2), x, lambda w: -(w @ w))
    many = mintmc.Posterior(lambda w, rows: -((rows @ w) ** 2), x, lambda w: -(w @ w), batched=True)
    w = np.array([0.1, -0.2, 0.3], np.float32)
    assert many.energy(w) == pytest.approx(each.energy(w), rel=1e-6)
    sampler = mintmc.MINT(60, temperature=20, proposal=mintmc.Langevin())
    settings = {"init": w, "draws": 30, "warmup": 20, "chains": 2, "progress": False}
    first, second = (mintmc.sample(one, sampler, **settings) for one in (each, many))
    np.testing.assert_allclose(
        first["tempered_posterior"]["theta"], second["tempered_posterior"]["theta"], rtol=2e-3, atol=2e-4
    )


@pytest.mark.usefixtures("no_compiler")
def test_one_number_for_many_rows_is_refused():
    summed = mintmc.Posterior(lambda w, rows: -jnp.sum(rows * w), np.ones((5, 2)), batched=True)
    with pytest.raises(ValueError, match=r"log_likelihood must return one float for each row, shape \(2,\), got shape"):
        mintmc.sample(summed, mintmc.MetropolisHastings(), init=1.0, progress=False)


@jax.tree_util.register_dataclass
@dataclass
class Network:
    """Params that can be called, as those of many libraries can."""

    weight: jax.Array

    def __call__(self, x):
        return self.weight @ x


def test_params_that_can_be_called_are_params():
    x = np.random.default_rng(2).normal(size=(50, 2)).astype(np.float32)
    model = mintmc.Posterior(lambda network, row: -(network(row) ** 2), x)
    settings = {"draws": 5, "warmup": 0, "chains": 1, "progress": False}
    tree = mintmc.sample(model, mintmc.MetropolisHastings(), init=Network(jnp.ones(2)), **settings)
    assert tree.posterior["weight"].shape == (1, 5, 2)
