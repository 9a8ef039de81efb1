"""The law of controlled chains at T = 1, against importance sampling on all data in float64.

The reference draws from a Student distribution around the mode and weighs by exact densities: independent of
everything in the package, with a standard error of its own.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln

import mintmc
from mintmc.experiments.report import mean_and_error
from truth import LIMIT, mostly_slow

RNG = np.random.default_rng(11)


def regression(n, d):
    x = RNG.normal(size=(n, d))
    x[:, 0] = 1.0
    x[:, -1] = RNG.random(n) < 0.02  # a rare indicator: skewed, and batches that miss it
    return x, x @ np.linspace(-0.8, 0.8, d)


def logistic(n, d):
    x, eta = regression(n, d)
    y = (RNG.random(n) < 1 / (1 + np.exp(-eta))).astype(float)

    def each(xp, theta, x, y):
        eta = x @ theta
        return y * eta - xp.logaddexp(0.0, eta)

    return each, x, y


def poisson(n, d):
    x, eta = regression(n, d)
    y = RNG.poisson(np.exp(0.5 * eta)).astype(float)

    def each(xp, theta, x, y):
        eta = x @ theta
        return y * eta - xp.exp(eta)

    return each, x, y


def student(n, d):
    x, eta = regression(n, d)
    y = eta + RNG.standard_t(4, n)

    def each(xp, theta, x, y):
        return -2.5 * xp.log1p((y - x @ theta) ** 2 / 4)

    return each, x, y


def mixture(n, d):
    """Three components a few deviations apart: one of the six modes, in which a chain stays."""
    x = np.array([-4.0, 0.0, 5.0])[RNG.integers(0, 3, n)] + RNG.normal(size=n)

    def each(xp, theta, x, y):
        parts = [-0.5 * (x - theta[k]) ** 2 for k in range(3)]
        return xp.logaddexp(xp.logaddexp(parts[0], parts[1]), parts[2])

    return each, x, np.zeros(n)


MODELS = {"logistic": (logistic, 10_000, 5), "Poisson": (poisson, 4000, 5), "Student": (student, 4000, 4)}
MODELS["mixture"] = (mixture, 3000, 3)
MODELS["one parameter"] = (logistic, 3000, 1)
MODELS["few rows, a strong prior"] = (logistic, 50, 4)
STARTS = {"mixture": np.array([-3.5, 0.5, 4.5])}
PRIOR = 1.0  # standard deviation


def log_prior(theta):
    return -0.5 * jnp.sum(theta**2) / (25.0 if theta.size == 3 else PRIOR)


def reference(each, x, y, start, draws=20_000):
    """Means and standard deviations with their standard errors, by importance sampling."""
    variance = 25.0 if start.size == 3 else PRIOR

    def energy(theta):
        return -each(np, theta, x, y).sum() + 0.5 * theta @ theta / variance

    mode = minimize(energy, start, method="BFGS").x
    step = 1e-4 * np.eye(mode.size)
    hessian = np.array(
        [[(energy(mode + a + b) - energy(mode + a - b) - energy(mode - a + b) + energy(mode - a - b)) / 4e-8
          for b in step] for a in step]
    )  # fmt: skip
    factor, d, df = np.linalg.cholesky(np.linalg.inv(hessian)), mode.size, 10
    rng = np.random.default_rng(1)
    z = rng.normal(size=(draws, d)) / np.sqrt(rng.chisquare(df, (draws, 1)) / df)
    thetas = mode + z @ factor.T
    log_q = gammaln((df + d) / 2) - gammaln(df / 2) - (df + d) / 2 * np.log1p((z**2).sum(1) / df)
    log_weight = np.array([-energy(theta) for theta in thetas]) - log_q
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ thetas
    squares = (thetas - mean) ** 2
    variance = weight @ squares
    mean_error = np.sqrt(weight**2 @ squares)
    variance_error = np.sqrt(weight**2 @ (squares - variance) ** 2)
    return mean, mean_error, np.sqrt(variance), variance_error / (2 * np.sqrt(variance))


def distances(tree, truth):
    """Standard errors between draws and reference, of every mean and every standard deviation."""
    draws = tree.posterior["theta"].values.astype(float)
    mean, mean_error, deviation, deviation_error = truth
    found = []
    for j in range(draws.shape[-1]):
        one = draws[:, :, j]
        value, error = mean_and_error(one)
        found.append(abs(value - mean[j]) / np.hypot(error, mean_error[j]))
        value, error = mean_and_error((one - one.mean()) ** 2)
        found.append(abs(np.sqrt(value) - deviation[j]) / np.hypot(error / (2 * np.sqrt(value)), deviation_error[j]))
    return np.array(found)


def posterior_of(each, x, y):
    return mintmc.Posterior(
        lambda theta, row: each(jnp, theta, row["x"], row["y"]),
        {"x": x.astype(np.float32), "y": y.astype(np.float32)},
        log_prior,
    )


@pytest.mark.parametrize("name", mostly_slow(MODELS, "one parameter"))
def test_the_law_is_the_posterior(name):
    make, n, d = MODELS[name]
    each, x, y = make(n, d)
    start = STARTS.get(name, np.zeros(d))
    sampler = mintmc.MINT(temperature=1.0, control=mintmc.Taylor())
    tree = mintmc.sample(posterior_of(each, x, y), sampler, init=start, draws=10_000, chains=4, progress=False)
    truth = reference(each, x, y, start)
    assert distances(tree, truth).max() < LIMIT
    # The twin: 3% more spread would be seen.
    mean, mean_error, deviation, deviation_error = truth
    assert distances(tree, (mean, mean_error, deviation * 1.06, deviation_error)).max() > LIMIT
    assert tree.attrs["batch_size"] <= n
    assert mintmc.diagnose(tree).trusted


@pytest.mark.slow
@pytest.mark.audited
def test_a_run_knows_its_centre_and_its_residuals():
    each, x, y = logistic(10_000, 4)
    sampler = mintmc.MINT(100, temperature=1.0, control=mintmc.Taylor())
    tree = mintmc.sample(posterior_of(each, x, y), sampler, init=np.zeros(4), draws=2000, chains=2, progress=False)
    diagnosis = mintmc.diagnose(tree)
    assert diagnosis.trusted
    assert diagnosis.numbers["centre_distance"] == pytest.approx(1, abs=0.1)
    assert diagnosis.numbers["residual_noise"] < 0.1
    assert tree.attrs["centre_passes"] < 25
    assert sum(tree.attrs["data_touched_setup"]) >= tree.attrs["centre_passes"] * 10_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "proposal",
    [
        mintmc.RandomWalk(preconditioner="laplace"),
        mintmc.Langevin(preconditioner="laplace"),
        mintmc.Hamiltonian(steps=4, preconditioner="laplace"),
    ],
    ids=lambda proposal: type(proposal).__name__,
)
def test_proposals_that_know_the_curvature(proposal):
    """A badly scaled normal posterior, whose every direction mixes alike; full-batch and controlled."""
    scale = np.array([1.0, 0.01, 30.0])
    x = RNG.normal(size=(2000, 3)) * scale
    posterior = mintmc.Posterior(lambda theta, x: -0.5 * jnp.sum(((x - theta) / scale) ** 2), x)
    for sampler in (
        mintmc.MetropolisHastings(proposal),
        mintmc.MINT(100, temperature=1.0, control=mintmc.Taylor(), proposal=proposal),
    ):
        tree = mintmc.sample(posterior, sampler, init=np.zeros(3), draws=4000, chains=4, progress=False)
        for j in range(3):
            values = tree.posterior["theta"].values[:, :, j].astype(float)
            mean, error = mean_and_error(values)
            assert abs(mean - x[:, j].mean()) < LIMIT * error
            assert values.std() == pytest.approx(scale[j] / np.sqrt(2000), rel=0.12)


@pytest.mark.slow
def test_stochastic_gradients_with_control():
    """At a step where plain SGLD's gradient noise widens the draws 3 times, SGLD-CV's are right to a few per cent."""
    x = (RNG.normal(size=5000) + 0.5).astype(np.float32)
    posterior = mintmc.Posterior(lambda mean, x: jax.nn.log_sigmoid(-(mean - x)) + jax.nn.log_sigmoid(mean - x), x)
    precision = -float(mintmc.find_mode(posterior, 0.0).expansion.hessian[0, 0])
    widths = {}
    for name, control in (("plain", None), ("controlled", mintmc.Taylor())):
        sampler = mintmc.SGLD(20, step_size=0.2 / precision, control=control)
        tree = mintmc.sample(posterior, sampler, init=0.5, draws=20_000, warmup=200, chains=2, progress=False)
        widths[name] = float(tree.posterior["theta"].std()) * precision**0.5
    assert widths["controlled"] == pytest.approx(1 / np.sqrt(1 - 0.2 / 4), abs=0.08)
    assert widths["plain"] > 1.5
    sampler = mintmc.SGHMC(20, step_size=0.1 / precision**0.5, friction=precision**0.5, control=mintmc.Taylor())
    tree = mintmc.sample(posterior, sampler, init=0.5, draws=20_000, warmup=200, chains=2, progress=False)
    assert float(tree.posterior["theta"].std()) * precision**0.5 == pytest.approx(1, abs=0.08)
