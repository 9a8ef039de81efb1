"""A NumPyro model as a posterior: its own densities, Jacobian and names; what cannot be done is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from comparing import worst
from numpyro import distributions as dist
from numpyro import handlers
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import log_density, potential_energy
from regressions import MODELS, N, X, Y, logistic, mixture

import mintmc

KEY = jax.random.key(3)


@pytest.fixture(scope="module", params=MODELS)
def bridged(request):
    model, args, kwargs = MODELS[request.param]
    return mintmc.from_numpyro(model, *args, **kwargs), model, args, kwargs


def test_the_density_is_numpyros(bridged):
    posterior, model, args, kwargs = bridged
    for seed in range(3):
        params = posterior.sample_prior(jax.random.fold_in(KEY, seed))
        wanted = float(log_density(model, args, kwargs, params)[0])
        assert posterior.energy(params) == pytest.approx(-wanted, rel=2e-5)


def test_the_jacobian_is_numpyros_and_is_no_part_of_the_energy(bridged):
    """On coordinates without bounds NumPyro's potential energy is ours with the Jacobian."""
    posterior, model, args, kwargs = bridged
    target = posterior.flat(posterior.init)
    for seed in range(3):
        theta = jax.random.normal(jax.random.fold_in(KEY, seed), (target.dim,))
        wanted = float(potential_energy(model, args, kwargs, target.as_free(theta)))
        density = target.model.density(theta, posterior.rows)
        jacobian = 0.0 if density.jacobian is None else density.jacobian
        assert float(density.energy() - jacobian) == pytest.approx(wanted, rel=2e-5)
        assert posterior.energy(target.unravel(theta)) == pytest.approx(float(density.energy()), rel=2e-5)


def test_batches_add_up(bridged):
    """The mean over all batches of a partition, scaled, is the whole sum."""
    posterior, model, args, kwargs = bridged
    params = posterior.init
    order = np.random.default_rng(0).permutation(N).reshape(4, -1)
    sums = [posterior.log_likelihood(params, posterior.data.take(batch)).sum() for batch in order]
    prior = float(posterior.log_prior(params))
    wanted = float(log_density(model, args, kwargs, params)[0])
    assert prior + 4 * float(np.mean(sums)) == pytest.approx(wanted, rel=2e-5)


def test_the_prior_is_where_numpyro_draws_from():
    """Moments of 2000 draws of a prior that is known, in standard errors."""
    posterior = mintmc.from_numpyro(mixture, Y["mixture"])
    draws = jax.vmap(posterior.sample_prior)(jax.random.split(KEY, 2000))
    sd = np.sqrt(1 / 3 * 2 / 3 / 7 / 2000)  # of a mean of a component of Dirichlet(2, 2, 2)
    assert np.abs(draws["weights"].mean(0) - 1 / 3).max() < 4 * sd
    assert (np.diff(draws["means"]) >= 0).all()
    assert float(posterior.init["sd"]) == pytest.approx(1.0, abs=0.3)  # the median of LogNormal(0, 1)


def test_a_run_has_names_dims_and_deterministics():
    def model(x, y):
        with numpyro.plate("feature", 3):
            b = numpyro.sample("b", dist.Normal(0, 2))
        with numpyro.plate("group", 2):
            c = numpyro.sample("c", dist.Dirichlet(jnp.ones(3)))
        numpyro.deterministic("square", b**2)
        numpyro.deterministic("mean", (x @ b).mean())
        with numpyro.plate("data", len(y)):
            linear = numpyro.deterministic("linear", x @ b)
            numpyro.sample("y", dist.Normal(linear, 1 + c[0, 0]), obs=y)

    posterior = mintmc.from_numpyro(model, X, Y["student"])
    assert sorted(posterior.left_out) == ["linear", "mean"]
    start = posterior.sample_prior
    tree = mintmc.sample(posterior, mintmc.MetropolisHastings(), init=start, draws=20, warmup=20, progress=False)
    assert tree.posterior["b"].dims == ("chain", "draw", "feature")
    assert tree.posterior["c"].dims == ("chain", "draw", "group", "c_dim_1")
    np.testing.assert_allclose(tree.posterior["square"], tree.posterior["b"] ** 2, rtol=1e-5)
    assert sorted(tree.posterior.data_vars) == ["b", "c", "square"]
    np.testing.assert_allclose(tree.posterior["c"].sum("c_dim_1"), 1.0, atol=1e-5)


def test_factors_are_prior_or_likelihood_by_where_they_stand():
    def model(x, y):
        b = numpyro.sample("b", dist.Normal(0, 2).expand([3]).to_event(1))
        numpyro.factor("pull", -3 * b[0] ** 2)
        with numpyro.plate("data", len(y)):
            numpyro.factor("loss", -jnp.abs(y - x @ b))

    posterior = mintmc.from_numpyro(model, X, y=Y["student"])
    b = jnp.array([1.0, 2.0, 3.0])
    prior = float(dist.Normal(0, 2).log_prob(b).sum()) - 3
    assert float(posterior.log_prior({"b": b})) == pytest.approx(prior, rel=1e-6)
    loss = float(np.abs(Y["student"] - X @ np.asarray(b)).sum())
    assert posterior.energy({"b": b}) == pytest.approx(loss - prior, rel=1e-5)


def test_several_observed_sites_and_an_axis_within_rows():
    def model(x, y, z):
        b = numpyro.sample("b", dist.Normal(0, 2).expand([3]).to_event(1))
        with numpyro.plate("rows", len(y), dim=-2), numpyro.plate("column", 3, dim=-1):
            numpyro.sample("x", dist.Normal(b, 1.0), obs=x)
        numpyro.sample("both", dist.MultivariateNormal(jnp.zeros(2) + b[0], jnp.eye(2)), obs=z)
        numpyro.sample("y", dist.Normal(b[1], 1.0), obs=y)

    args = X, Y["student"], X[:, :2]
    posterior = mintmc.from_numpyro(model, *args)
    params = {"b": jnp.array([0.1, 0.2, 0.3])}
    assert posterior.energy(params) == pytest.approx(-float(log_density(model, args, {}, params)[0]), rel=1e-5)


def test_an_improper_prior_has_a_start_but_no_draws():
    def model(y):
        m = numpyro.sample("m", dist.ImproperUniform(dist.constraints.positive, (), ()))
        numpyro.sample("y", dist.Normal(m, 1.0), obs=y)

    posterior = mintmc.from_numpyro(model, Y["student"])
    assert np.isfinite(posterior.energy(posterior.init))
    with pytest.raises(ValueError, match="sample_prior must work"):
        posterior.sample_prior(KEY)


def with_prior(likelihood, prior=None):
    """A model (x, y) -> None with one latent."""

    def model(x, y):
        b = numpyro.sample("b", prior or dist.Normal(0.0, 1.0))
        likelihood(b, x, y)

    return model


def observed(loc, y, scale=1.0, name="y", size=None):
    with numpyro.plate(f"plate of {name}", size or len(y)):
        numpyro.sample(name, dist.Normal(loc, scale), obs=y)


def local(b, x, y):
    with numpyro.plate("data", len(y)):
        z = numpyro.sample("z", dist.Normal(b, 1.0))
        numpyro.sample("y", dist.Normal(z, 1.0), obs=y)


def local_without_plate(b, x, y):
    z = numpyro.sample("z", dist.Normal(b, 1.0).expand([len(y)]))
    numpyro.sample("y", dist.Normal(z, 1.0), obs=y)


def discrete(b, x, y):
    z = numpyro.sample("z", dist.Bernoulli(0.5))
    observed(b * z, y)


def two_lengths(b, x, y):
    observed(b, y)
    observed(b, x[:3, 0], name="w")


def of_sum(b, x, y):
    numpyro.factor("f", -jnp.sum((y - b) ** 2))
    observed(b, y)


def scaled(b, x, y):
    with handlers.scale(scale=2.0):
        observed(b, y)


def masked(b, x, y):
    with handlers.mask(mask=y > 0):
        observed(b, y)


def half_observed(b, x, y):
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Normal(b, 1.0), obs=y, obs_mask=y > 0)


def subsampled(b, x, y):
    with numpyro.plate("data", len(y), subsample_size=10) as index:
        numpyro.sample("y", dist.Normal(b, 1.0), obs=y[index])


def bounded(b, x, y):
    observed(numpyro.sample("z", dist.Uniform(0.0, jnp.exp(b))), y)


def learned(b, x, y):
    observed(b + numpyro.param("p", 0.5), y)


def neighbours(b, x, y):
    observed(b * jnp.concatenate([jnp.zeros(1), y[:-1]]), y)


def wide_prior(b, x, y):
    observed(numpyro.sample("z", dist.Normal(0.0, y.std() + 1.0)), y)


MISTAKES = {
    "latent in the plate": (local, "marginalise 'z' out of the model, got one in plate 'data'"),
    "latent of rows": (local_without_plate, r"marginalise 'z' out of the model, got shape \(60,\) for 60 rows"),
    "discrete": (discrete, "must be continuous: marginalise 'z'"),
    "other rows": (two_lengths, "'w' must have rows that are given"),
    "factor of data": (of_sum, "prior and factors must not depend on the rows.*'f'"),
    "scaled": (scaled, "must not be scaled.*'y' under handlers.scale"),
    "masked": (masked, "must not be masked.*'y' with a mask"),
    "half observed": (half_observed, "must not be masked"),
    "subsampled": (subsampled, "plates must not be subsampled.*'data' with 10 of 60"),
    "nothing observed": (lambda b, x, y: None, "must have an observed site, got none"),
    "factor without rows": (lambda b, x, y: numpyro.factor("f", b), "with rows, got only factors"),
    "one for all": (lambda b, x, y: observed(b, jnp.zeros(()), size=1), "pass the data as arguments of the model"),
    "event": (
        lambda b, x, y: numpyro.sample("y", dist.Normal(b, 1.0).expand([N]).to_event(1), obs=y),
        "one log density for each row.*to_event",
    ),
    "closed over": (lambda b, x, y: observed(b, jnp.arange(50.0)), "pass the data as arguments of the model"),
    "closed over, of n rows": (lambda b, x, y: observed(b, Y["student"]), "pass the data as arguments of the model"),
    "closed over covariate": (lambda b, x, y: observed(b * X[:, 0], y), "pass the data as arguments of the model"),
    "closed over by index": (
        lambda b, x, y: observed(b * jnp.asarray(X)[jnp.arange(len(y)), 0], y),
        r"make no use of other rows\), got .* alone and .* among all",
    ),
    "standardised": (lambda b, x, y: observed(b * x[:, 0] / x[:, 0].std(), y), "make no use of other rows"),
    "standardised far off": (
        lambda b, x, y: observed(b * (x[:, 0] - x[:, 0].mean()), y + 1e5),
        "make no use of other rows",
    ),
    "time series": (neighbours, "make no use of other rows"),
    "prior from data": (wide_prior, "prior and factors must not depend on the rows.*'z'"),
    "moving bounds": (bounded, "'z' must have the same support whatever other parameters are"),
    "learned": (learned, "give what is learned a prior, got param site 'p'"),
    "wrong": (lambda b, x, y: observed(b @ x, y), "model must run on its arguments.*, got "),
}


@pytest.mark.parametrize(("likelihood", "message"), MISTAKES.values(), ids=MISTAKES)
def test_what_cannot_be_done_is_refused(likelihood, message):
    with pytest.raises(ValueError, match=message) as error:
        mintmc.from_numpyro(with_prior(likelihood), X, Y["student"])
    assert "\n" not in str(error.value)


def test_missing_data_are_refused():
    y = np.where(np.arange(N) == 7, np.nan, Y["student"])
    with pytest.raises(ValueError, match=r"'y' must have no missing values, got nan in row 7 \(1 such"):
        mintmc.from_numpyro(with_prior(lambda b, x, y: observed(b, y)), X, y)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="got different numbers of them: 'y' has 60, 'w' has 3"):
        mintmc.from_numpyro(with_prior(two_lengths), X[:3], Y["student"])
    with pytest.raises(TypeError, match="model must be a function, got 3"):
        mintmc.from_numpyro(3)


@pytest.mark.slow
def test_a_run_agrees_with_nuts():
    """Means and standard deviations at T = 1 from mini-batches, in Monte Carlo standard errors of both."""
    n = 10_000
    generator = np.random.default_rng(5)
    x = generator.normal(size=(n, 3)).astype(np.float32)
    y = generator.binomial(1, 1 / (1 + np.exp(-x @ np.array([0.5, -1.0, 0.2])))).astype(np.float32)
    posterior = mintmc.from_numpyro(logistic, x, y)
    sampler = mintmc.MINT(temperature=1.0, control=mintmc.Taylor())
    tree = mintmc.sample(posterior, sampler, init=posterior.init, draws=4000, warmup=1000, progress=False)
    nuts = MCMC(NUTS(logistic), num_warmup=500, num_samples=4000, num_chains=2, chain_method="sequential",
                progress_bar=False)  # fmt: skip
    nuts.run(jax.random.key(0), x, y)
    ours, theirs = tree.posterior["b"].values, np.asarray(nuts.get_samples(group_by_chain=True)["b"])
    assert worst(ours, theirs) < 4
    assert worst(ours + 0.25 * ours.std((0, 1)), theirs) > 4  # what would be seen
