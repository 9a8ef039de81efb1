"""Draws of a regression against exact answers: a grid, conjugacy, and long runs of NUTS on the model written again."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import scipy.optimize
import scipy.special
import xarray
from numpyro.infer import MCMC, NUTS
from scipy import stats

import mintmc
from mintmc.models.priors import Prior
from truth import LIMIT, distance, distance_between, mostly_slow

K = 2.5
"""The prior scale, as the docstring has it."""
LIKELIHOODS = {
    "logit": ("binomial", {}, lambda y, eta: stats.bernoulli.logpmf(y, scipy.special.expit(eta))),
    "probit": ("binomial", {"link": "probit"}, lambda y, eta: stats.bernoulli.logpmf(y, stats.norm.cdf(eta))),
    "softplus": ("poisson", {"link": "softplus"}, lambda y, eta: stats.poisson.logpmf(y, np.logaddexp(0, eta))),
    "student": ("student", {"sigma": 1.5}, lambda y, eta: stats.t.logpdf(y, 4, eta, 1.5)),
}


def small_table(name, n=500):
    rng = np.random.default_rng(3)
    x = rng.normal(1.0, 2.0, n)
    eta = 0.3 + 0.4 * x
    if name in ("logit", "probit"):
        return {"x": x, "y": rng.random(n) < scipy.special.expit(eta)}
    if name == "softplus":
        return {"x": x, "y": rng.poisson(np.logaddexp(0, eta))}
    return {"x": x, "y": eta + 1.5 * rng.standard_t(4, n)}


def exact_moments(name, table):
    """Means and second moments of (intercept, slope), on a grid of 8 standard deviations around the mode."""
    family, _, log_likelihood = LIKELIHOODS[name]
    x, y = table["x"], np.asarray(table["y"], float)
    spread, location = (y.std(ddof=1), y.mean()) if family == "student" else (1.0, 0.0)

    def log_density(a, b):
        prior = stats.norm.logpdf(a + b * x.mean(), location, K * spread)
        prior += stats.norm.logpdf(b, 0, K * spread / x.std(ddof=1))
        eta = np.multiply.outer(b, x) + np.expand_dims(a, -1)
        return prior + log_likelihood(y, eta).sum(axis=-1)

    found = scipy.optimize.minimize(lambda theta: -log_density(*theta), [0.0, 0.0])
    widths = 8 * np.sqrt(np.diag(found.hess_inv))
    axes = [np.linspace(mode - width, mode + width, 81) for mode, width in zip(found.x, widths, strict=True)]
    a, b = np.meshgrid(*axes, indexing="ij")
    weight = np.exp(log_density(a, b) + found.fun)
    weight /= weight.sum()
    return {f: np.sum(weight * f(a, b)) for f in FUNCTIONS}


FUNCTIONS = [lambda a, b: a, lambda a, b: b, lambda a, b: a**2, lambda a, b: a * b, lambda a, b: b**2]


def errors(name):
    """Distances of moments of draws by ``ScalableMH`` from the exact ones, in standard errors."""
    table = small_table(name)
    family, settings, _ = LIKELIHOODS[name]
    model = mintmc.glm("y ~ x", table, family, **settings)
    sampler = mintmc.ScalableMH(model.bounds)
    tree = mintmc.sample(model, sampler, init=model.init, draws=5000, warmup=500, chains=4, progress=False)
    assert int(tree.sample_stats.bound_violations.sum()) == 0
    beta = tree.posterior["beta"].astype(float)
    a, b = beta.sel(term="Intercept").values, beta.sel(term="x").values
    return [distance(f(a, b), exact) for f, exact in exact_moments(name, table).items()]


@pytest.mark.parametrize("name", mostly_slow(LIKELIHOODS, "logit"))
def test_an_exact_sampler_has_the_bounds_it_needs(name):
    assert max(errors(name)) < LIMIT


@pytest.mark.slow
def test_a_wrong_prior_would_be_caught(monkeypatch):
    right = Prior.of
    monkeypatch.setattr(Prior, "of", lambda design, family, scale: right(design, family, 0.2 * scale))
    assert max(errors("logit")) > LIMIT


def test_a_gaussian_of_known_sigma_is_conjugate():
    rng = np.random.default_rng(5)
    table = {"x": rng.normal(3, 1, 200), "z": rng.normal(0, 2, 200)}
    table["y"] = 1 + 0.5 * table["x"] + rng.normal(0, 2, 200)
    model = mintmc.glm("y ~ x + z", table, sigma=2.0)
    x, y = np.column_stack([np.ones(200), table["x"], table["z"]]), table["y"]
    # What has independent priors: the intercept at the means, and the slopes.
    centred = np.array([[1, x[:, 1].mean(), x[:, 2].mean()], [0, 1, 0], [0, 0, 1.0]])
    scales = K * y.std(ddof=1) / np.array([1, *x[:, 1:].std(axis=0, ddof=1)])
    whitened = centred / scales[:, None]
    precision = x.T @ x / 4 + whitened.T @ whitened
    mean = np.linalg.solve(precision, x.T @ y / 4 + whitened.T @ (np.array([y.mean(), 0, 0]) / scales))
    root = np.linalg.cholesky(precision).T
    settings = {"draws": 10_000, "chains": 4, "progress": False}
    walk = mintmc.RandomWalk(preconditioner="dense")
    tree = mintmc.sample(model, mintmc.MetropolisHastings(walk), init=model.init, **settings)
    z = (tree.posterior["beta"].values.astype(float) - mean) @ root.T
    assert max(distance(z[..., i], 0) for i in range(3)) < LIMIT
    assert max(distance(z[..., i] * z[..., j], i == j) for i in range(3) for j in range(i + 1)) < LIMIT


def large_table(n=2000):
    rng = np.random.default_rng(7)
    table = {"x": rng.normal(5, 2, n), "group": rng.choice(["a", "b", "c"], n)}
    eta = 0.2 * table["x"] - 1 + 0.5 * (table["group"] == "b")
    table["logit"] = rng.random(n) < scipy.special.expit(eta)
    table["log"] = rng.poisson(np.exp(eta))
    table["identity"] = eta + rng.normal(0, 1.5, n)
    table["student"] = eta + 1.5 * rng.standard_t(4, n)
    return table


FAMILIES = {
    "logit": ("binomial", lambda eta, sigma: dist.Bernoulli(logits=eta)),
    "log": ("poisson", lambda eta, sigma: dist.Poisson(jnp.exp(eta))),
    "identity": ("gaussian", lambda eta, sigma: dist.Normal(eta, sigma)),
    "student": ("student", lambda eta, sigma: dist.StudentT(4.0, eta, sigma)),
}


def by_nuts(name, table):
    x = np.column_stack([table["x"], table["group"] == "b", table["group"] == "c"])
    y = np.asarray(table[name], float)
    has_sigma = name in ("identity", "student")
    spread, location = (y.std(ddof=1), y.mean()) if has_sigma else (1.0, 0.0)

    def written_again():
        middle = numpyro.sample("middle", dist.Normal(location, K * spread))
        slopes = numpyro.sample("slopes", dist.Normal(0.0, K * spread / x.std(axis=0, ddof=1)))
        sigma = numpyro.sample("sigma", dist.Exponential(1 / spread)) if has_sigma else None
        numpyro.deterministic("beta", jnp.concatenate([(middle - x.mean(axis=0) @ slopes)[None], slopes]))
        numpyro.sample("y", FAMILIES[name][1](middle + (x - x.mean(axis=0)) @ slopes, sigma), obs=y)

    settings = {"num_warmup": 500, "num_samples": 2500, "num_chains": 4, "progress_bar": False}
    mcmc = MCMC(NUTS(written_again), chain_method="vectorized", **settings)
    mcmc.run(jax.random.key(0))
    draws = mcmc.get_samples(group_by_chain=True)
    return np.concatenate([draws["beta"], *([draws["sigma"][..., None]] if has_sigma else [])], axis=-1).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_moments_are_those_of_nuts(name):
    table = large_table()
    model = mintmc.glm(f"{name} ~ x + group", table, FAMILIES[name][0])
    sampler = mintmc.MINT(temperature=1.0, control=mintmc.Taylor())
    tree = mintmc.sample(model, sampler, init=model.init, draws=10_000, chains=4, progress=False)
    found = [tree.posterior["beta"].values]
    found += [tree.posterior["sigma"].values[..., None]] if model.family.has_sigma else []
    ours, theirs = np.concatenate(found, axis=-1).astype(float), by_nuts(name, table)
    centre = theirs.mean(axis=(0, 1))
    for i in range(len(centre)):
        assert distance_between(ours[..., i], theirs[..., i]) < LIMIT
        assert distance_between((ours[..., i] - centre[i]) ** 2, (theirs[..., i] - centre[i]) ** 2) < LIMIT


def test_a_stored_run_goes_on_and_keeps_its_names(tmp_path):
    table = {"y": np.arange(50.0) % 7, "x": np.arange(50.0)}
    sampler, settings = mintmc.MetropolisHastings(), {"chains": 1, "warmup": 50, "progress": False}

    def sample(draws, out=None):
        model = mintmc.glm("y ~ x", table, "student")
        return mintmc.sample(model, sampler, init=model.init, draws=draws, out=out, **settings)

    sample(20, tmp_path / "run.zarr")
    tree = mintmc.resume(tmp_path / "run.zarr", mintmc.glm("y ~ x", table, "student"), draws=40, progress=False)
    assert tree.posterior["term"].values.tolist() == ["Intercept", "x"]
    np.testing.assert_array_equal(tree.posterior["beta"], sample(40).posterior["beta"])
    assert xarray.open_datatree(tmp_path / "run.zarr", engine="zarr").posterior["beta"].sel(term="x").shape == (1, 40)
