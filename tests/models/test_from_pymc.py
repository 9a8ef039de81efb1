"""A PyMC model as a posterior: its own densities, Jacobian and names; what cannot be done is refused."""

import jax
import numpy as np
import pytest
from comparing import worst
from regressions import N, X, Y

import mintmc

pm = pytest.importorskip("pymc", reason="needs PyMC: pip install 'mintmc[pymc]'")
pt = pytest.importorskip("pytensor.tensor", reason="needs PyMC: pip install 'mintmc[pymc]'")

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")
KEY = jax.random.key(3)
COORDS = {"feature": ["age", "sex", "height"], "row": np.arange(N)}


def logistic():
    with pm.Model(coords=COORDS) as model:
        x = pm.Data("x", X, dims=("row", "feature"))
        b = pm.Normal("b", 0, 2, dims="feature")
        pm.Deterministic("odds", pm.math.exp(b), dims="feature")
        linear = pm.Deterministic("linear", x @ b, dims="row")
        pm.Deterministic("average", linear.mean())
        pm.Bernoulli("y", logit_p=linear, observed=Y["logistic"], dims="row")
    return model


def poisson():
    with pm.Model() as model:
        b = pm.Normal("b", 0, 2, shape=3)
        pm.Poisson("y", mu=pm.math.exp(pm.math.dot(X, b)), observed=pm.Data("counts", Y["poisson"]))
    return model


def student(x=X, y=Y["student"]):
    with pm.Model() as model:
        b = pm.Normal("b", 0, 2, shape=3)
        df = pm.Gamma("df", 2, 0.1)
        pm.StudentT("y", nu=df, mu=pm.math.dot(x, b), sigma=pm.HalfNormal("sd", 1), observed=y)
    return model


def mixture(**settings):
    with pm.Model() as model:
        weights = pm.Dirichlet("weights", np.full(3, 2.0))
        means = pm.Normal("means", 0, 5, shape=3, initval=[-1.0, 0.0, 1.0], **settings)
        pm.NormalMixture("y", w=weights, mu=means, sigma=pm.LogNormal("sd", 0, 1), observed=Y["mixture"])
    return model


def groups():
    """Groups by index, bounds on both sides, a potential that is a prior, and two observed variables."""
    group = np.arange(N) % 4
    with pm.Model() as model:
        effect = pm.ZeroSumNormal("effect", 1, shape=4)
        shift = pm.Uniform("shift", -1, 2)
        pm.Potential("pull", -3 * (effect**2).sum())
        pm.Normal("y", effect[group] + shift, 1, observed=Y["student"])
        pm.Binomial("k", n=N, p=pm.math.invlogit(effect[group]), observed=group)
    return model


def standardised():
    """By its own mean and by the row before, both constants, which PyTensor computes once from all rows."""
    x = pt.as_tensor(X[:, 0])
    with pm.Model() as model:
        mean = pm.Normal("b") * (x - x.mean()) / x.std() + pm.Normal("c") * pt.concatenate([[0.0], x[:-1]])
        pm.Normal("y", mean, 1, observed=Y["student"])
    return model


MODELS = {
    "logistic": logistic,
    "poisson": poisson,
    "student": student,
    "mixture": lambda: mixture(transform=pm.distributions.transforms.ordered),
    "plain mixture": mixture,
    "standardised": standardised,
    "groups": groups,
}


@pytest.fixture(scope="module", params=MODELS)
def bridged(request):
    model = MODELS[request.param]()
    return mintmc.from_pymc(model), model


def points(posterior, model):
    """Points without bounds, as we hold them and as PyMC names them."""
    target = posterior.flat(posterior.init)
    for seed in range(3):
        theta = jax.random.normal(jax.random.fold_in(KEY, seed), (target.dim,))
        free = target.as_free(theta)
        yield target, theta, {model.rvs_to_values[rv].name: np.asarray(free[rv.name], float) for rv in model.free_RVs}


def test_density_and_jacobian_are_pymcs(bridged):
    """Without its Jacobian PyMC's log density is our energy; with it, that of the coordinates."""
    posterior, model = bridged
    without, with_jacobian = (model.compile_logp(jacobian=which, mode="FAST_COMPILE") for which in (False, True))
    for target, theta, point in points(posterior, model):
        density = target.model.density(theta, posterior.rows)
        jacobian = 0.0 if density.jacobian is None else float(density.jacobian)
        assert float(density.energy()) == pytest.approx(-without(point), rel=2e-5)
        assert float(density.energy()) - jacobian == pytest.approx(-with_jacobian(point), rel=2e-5)


def test_batches_add_up(bridged):
    """The mean over all batches of a partition, scaled, is the whole sum."""
    posterior, _ = bridged
    order = np.random.default_rng(0).permutation(N).reshape(4, -1)
    sums = [posterior.log_likelihood(posterior.init, posterior.data.take(batch)).sum() for batch in order]
    prior = float(posterior.log_prior(posterior.init))
    assert prior + 4 * float(np.mean(sums)) == pytest.approx(-posterior.energy(posterior.init), rel=2e-5)


def test_draws_of_the_prior_are_where_the_model_is(bridged):
    posterior, _ = bridged
    one, other, again = (posterior.sample_prior(jax.random.fold_in(KEY, seed)) for seed in (0, 1, 0))
    posterior.vector(one, "a draw")  # which checks that it lies where transforms lead
    for name, draw in one.items():
        assert (draw == again[name]).all()
        assert (draw != other[name]).any()


def test_jax_stays_in_the_precision_that_it_had():
    mintmc.from_pymc(poisson())
    assert not jax.config.jax_enable_x64


def test_a_run_has_names_dims_coords_and_deterministics():
    posterior = mintmc.from_pymc(logistic())
    assert posterior.left_out == ("linear",)
    start = posterior.sample_prior
    tree = mintmc.sample(posterior, mintmc.MetropolisHastings(), init=start, draws=20, warmup=20, progress=False)
    assert tree.posterior["odds"].dims == ("chain", "draw", "feature")
    assert list(tree.posterior["feature"].values) == COORDS["feature"]
    np.testing.assert_allclose(tree.posterior["odds"], np.exp(tree.posterior["b"]), rtol=1e-5)
    average = (tree.posterior["b"].values @ X.T).mean(-1)
    np.testing.assert_allclose(tree.posterior["average"], average, rtol=1e-4, atol=1e-5)
    assert "row" not in tree.posterior.dims


def local():
    z = pm.Normal("z", pm.Normal("b"), 1, shape=N)
    pm.Normal("y", z, 1, observed=Y["student"])


def local_dim():
    pm.modelcontext(None).add_coord("row", np.arange(N))
    pm.Normal("y", pm.Normal("z", dims="row"), 1, observed=Y["student"], dims="row")


def discrete():
    pm.Normal("y", pm.Bernoulli("z", 0.5), 1, observed=Y["student"])


def two_lengths():
    b = pm.Normal("b")
    pm.Normal("y", b, 1, observed=Y["student"])
    pm.Normal("w", b, 1, observed=np.zeros(3))


def of_data():
    b = pm.Normal("b")
    pm.Potential("f", -pm.math.sqr(Y["student"] - b).sum())
    pm.Normal("y", b, 1, observed=Y["student"])


def missing_data():
    values = pm.Data("values", Y["student"])
    pm.Normal("y", pm.Normal("b"), 1, observed=values)
    values.set_value(np.where(np.arange(N) == 7, np.nan, Y["student"]))


def total_size():
    pm.Normal("y", pm.Normal("b"), 1, observed=Y["student"], total_size=1000)


def scalar():
    pm.Normal("y", pm.Normal("b"), 1, observed=0.5)


def event():
    pm.MvNormal("y", pm.Normal("b") * np.ones(N), np.eye(N), observed=Y["student"])


def bounded():
    pm.Normal("y", pm.Uniform("z", 0, pm.math.exp(pm.Normal("b"))), 1, observed=Y["student"])


def standardised_data():
    x = pm.Data("x", X[:, 0])
    pm.Normal("y", pm.Normal("b") * (x - x.mean()), 1, observed=Y["student"])


def transposed():
    pm.Normal("y", pm.math.dot(pm.Normal("b", shape=3), X.T.copy()), 1, observed=Y["student"])


def neighbours():
    y = pm.Data("before", Y["student"])
    pm.Normal("y", pm.Normal("b") * pt.concatenate([[0.0], y[:-1]]), 1, observed=Y["student"])


MISTAKES = {
    "latent of rows": (local, "marginalise 'z' out of the model, got "),
    "latent with the dim": (local_dim, "marginalise 'z' out of the model, got one with dim 'row'"),
    "discrete": (discrete, "must be continuous: marginalise 'z'"),
    "two lengths": (two_lengths, "got different numbers of them: 'y' has 60, 'w' has 3"),
    "potential of data": (of_data, "potentials must not depend on the data.*'f'"),
    "missing": (missing_data, "'y' must have no missing values, got nan in row 7"),
    "total size": (total_size, "must be without total_size.*'y'"),
    "scalar": (scalar, "'y' must have one log density for each row"),
    "event": (event, "'y' must have one log density for each row"),
    "moving bounds": (bounded, "'z' must have the same support whatever other variables are"),
    "standardised": (standardised_data, "model must give any rows alone"),
    "transposed": (transposed, "model must give any rows alone"),
    "time series": (neighbours, "model must give any rows alone"),
    "nothing observed": (lambda: pm.Normal("b"), "must have an observed variable, got none"),
    "nothing free": (lambda: pm.Normal("y", 0, 1, observed=Y["student"]), "must have a free variable"),
}


@pytest.mark.parametrize(("likelihood", "message"), MISTAKES.values(), ids=MISTAKES)
def test_what_cannot_be_done_is_refused(likelihood, message):
    with pm.Model() as model:
        likelihood()
    with pytest.raises(ValueError, match=message) as error:
        mintmc.from_pymc(model)
    assert "\n" not in str(error.value)


def test_imputed_data_are_refused():
    y = np.where(np.arange(N) == 7, np.nan, Y["student"])
    with pm.Model() as model, pytest.warns(pm.exceptions.ImputationWarning):
        pm.Normal("y", pm.Normal("b"), 1, observed=y)
    with pytest.raises(ValueError, match="no missing values: drop such rows, got some in 'y'"):
        mintmc.from_pymc(model)
    with pytest.raises(TypeError, match=r"model must be a pymc\.Model, got 3"):
        mintmc.from_pymc(3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # PyMC's own, of its compiler and its sampler
def test_a_run_agrees_with_pymc():
    """Means and standard deviations at T = 1 from mini-batches, in Monte Carlo standard errors of both."""
    n = 10_000
    generator = np.random.default_rng(5)
    x = generator.normal(size=(n, 3))
    model = student(x, x @ [0.5, -1.0, 0.2] + 0.5 * generator.standard_t(4, size=n))
    posterior = mintmc.from_pymc(model)
    sampler = mintmc.MINT(temperature=1.0, control=mintmc.Taylor())
    tree = mintmc.sample(posterior, sampler, init=posterior.init, draws=4000, warmup=1000, progress=False)
    with model:
        nuts = pm.sample(2000, tune=1000, chains=2, cores=1, random_seed=1, progressbar=False)
    ours, theirs = (
        np.concatenate([draws["b"].values, *(draws[name].values[..., None] for name in ("sd", "df"))], -1)
        for draws in (tree.posterior, nuts.posterior)
    )
    assert worst(ours, theirs) < 4
    assert worst(ours + 0.25 * ours.std((0, 1)), theirs) > 4  # what would be seen
