"""SGLD against its own law: it is not exact, but its error on a normal target is known in closed form.

The target is the tempered posterior of a Gaussian mean, normal with precision H = n/T around 0; a batch of m rows
gives its gradient a noise of variance V that does not depend on the state. Then the stationary variance is
(1/H) (1 + eps V/4) / (1 - eps H/4), exactly.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.energy import Tempered
from mintmc.kernels.schedule import Polynomial
from mintmc.kernels.sgld import SGLDKernel
from mintmc.samplers.stochastic_gradient import SGLD
from mistakes import each_refused
from stochastic import (
    GAUSS,
    N,
    SumOfTheBatch,
    X,
    gradient_noise,
    kernel_of,
    positions,
    run,
    theta_of,
    tied_means,
    twin_of,
)
from truth import LIMIT, distance, distance_of_means, gaussian_log_likelihood


def stationary_variance(step, precision, noise=0.0):
    return (1 + step * noise / 4) / precision / (1 - step * precision / 4)


def setting(m, temperature, step_times_precision):
    """A kernel, and the variance that its draws must have."""
    precision = N / temperature
    step = step_times_precision / precision
    exact = stationary_variance(step, precision, gradient_noise(X, m, temperature))
    return kernel_of(SGLD(m, step_size=step, temperature=temperature)), exact


CASES = {
    # name: (m, T, eps H); the variance exceeds the target's by 14% to 63%
    "all data": (N, 1.0, 1.0),
    "all data, hot": (N, 5.0, 0.5),
    "batches": (50, 1.0, 0.2),
    "batches, hot": (50, 10.0, 1.0),
    "single rows, hot": (1, 100.0, 0.3),
}


@pytest.mark.parametrize("name", CASES)
def test_the_stationary_law_is_the_closed_form(name):
    kernel, exact = setting(*CASES[name])
    theta = positions(kernel)[..., 0]
    assert distance_of_means(theta, 0.0) < LIMIT
    assert distance_of_means(theta**2, exact) < LIMIT
    # The documented bias: at this step it is far from the target, and the test can tell.
    assert distance_of_means(theta**2, kernel.target.temperature / N) > LIMIT


@dataclass(frozen=True)
class TwiceTheDrift(Tempered):
    """Broken: drift eps g with noise N(0, eps) samples the square of the target."""

    def batch_gradient(self, theta, batch):
        return 2 * super().batch_gradient(theta, batch)


class HotterNoise(SGLDKernel):
    """Broken: N(0, 2 eps), as if eps were the s = eps/2 of others, samples the square root of the target."""

    def randomness(self, key):
        return np.sqrt(2) * super().randomness(key)


class OneBatchForEver(SGLDKernel):
    """Broken: every step reads the same rows, so that the noise of the gradient is a bias."""

    def advance(self, randomness, state, batch, tuning):
        return super().advance(randomness, state, {"gradient": GAUSS.rows[:50]}, tuning)


BROKEN = {
    "noise sqrt(2 eps)": (Tempered, HotterNoise),
    "drift eps g": (TwiceTheDrift, SGLDKernel),
    "no n/m": (SumOfTheBatch, SGLDKernel),
    "one batch for ever": (Tempered, OneBatchForEver),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_twin_is_caught(name):
    target, kind = BROKEN[name]
    # Not "batches": there twice the drift makes up for itself, for it doubles the noise of the gradient too.
    kernel, exact = setting(*CASES["batches, hot"])
    kernel = twin_of(replace(kernel, target=target(**vars(kernel.target))), kind)
    assert distance_of_means(positions(kernel)[..., 0] ** 2, exact) > LIMIT


@pytest.mark.parametrize("temper", ["posterior", "likelihood"])
def test_prior_and_likelihood_are_tempered_as_asked(temper):
    prior_precision, temperature, m = 200.0, 10.0, 100
    posterior = mintmc.Posterior(gaussian_log_likelihood, X, lambda mean: -0.5 * prior_precision * mean**2)
    weight = 1 / temperature if temper == "posterior" else 1.0
    precision = N / temperature + weight * prior_precision  # 70 or 250
    kernel = kernel_of(SGLD(m, step_size=0.2 / precision, temperature=temperature, temper=temper), posterior)
    theta = positions(kernel, posterior)[..., 0]
    exact = stationary_variance(0.2 / precision, precision, gradient_noise(X, m, temperature))
    assert distance_of_means(theta**2, exact) < LIMIT


def test_a_small_step_on_all_data_comes_near_the_target():
    kernel, _ = setting(N, 1.0, 0.02)  # bias 0.5%
    assert distance_of_means(positions(kernel)[..., 0] ** 2, 1 / N) < LIMIT


def test_weighted_averages_of_decreasing_steps():
    # The variance of step t follows v <- (1 - eps H/2)^2 v + eps + eps^2 V/4: what the average must be is known.
    m, warmup, draws, chains = 50, 100, 2000, 60
    schedule = Polynomial.between(0.5 / N, 0.02 / N, warmup + draws)
    tree = run(SGLD(m, step_size=schedule, batching="uniform"), draws=draws, warmup=warmup, chains=chains)
    steps = schedule.at(np.arange(warmup + draws))
    recorded = tree.sample_stats["step_size"].values
    np.testing.assert_allclose(recorded, np.tile(steps[warmup:], (chains, 1)), rtol=1e-5)  # warm-up counts

    variance, variances = 0.0, []
    for step in steps:
        variance = (1 - step * N / 2) ** 2 * variance + step + step**2 * gradient_noise(X, m) / 4
        variances.append(variance)
    expected = np.average(variances[warmup:], weights=steps[warmup:])
    averages = np.average(theta_of(tree) ** 2, weights=recorded, axis=1)  # one for each chain: independent
    assert distance(averages[None], expected) < LIMIT
    # An order of magnitude nearer to the target than the law of the first step, and not there yet.
    first = stationary_variance(steps[0], N, gradient_noise(X, m))
    assert 0 < N * expected - 1 < (N * first - 1) / 4
    assert distance(averages[None], first) > LIMIT


def correlated():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(N, 2))
    precision = np.array([[100.0, 9.0], [9.0, 1.0]])  # condition number 500, correlation -0.9
    return mintmc.Posterior(lambda t, x: -0.5 * (x - t) @ precision @ (x - t), x - x.mean(0)), N * precision


def test_a_covariance_as_preconditioner_makes_all_directions_alike():
    posterior, precision = correlated()
    sampler = SGLD(N, step_size=0.5, preconditioner=np.linalg.inv(precision))
    theta = positions(kernel_of(sampler, posterior, np.zeros(2)), posterior)
    # Whitened, H = 1 in both directions.
    for direction in np.linalg.cholesky(precision).T:
        assert distance_of_means((theta @ direction) ** 2, stationary_variance(0.5, 1.0)) < LIMIT


def test_variances_as_preconditioner():
    scales = np.array([1.0, 30.0])
    posterior = mintmc.Posterior(lambda t, x: -0.5 * jnp.sum(((x - t) / scales) ** 2), np.stack([X, X], axis=1))
    sampler = SGLD(N, step_size=0.5, preconditioner=scales**2 / N)
    theta = positions(kernel_of(sampler, posterior, np.zeros(2)), posterior)
    for i in range(2):
        assert distance_of_means(theta[..., i] ** 2, scales[i] ** 2 / N * stationary_variance(0.5, 1.0)) < LIMIT


def test_params_may_be_a_tree():
    data = {"x": X, "y": np.stack([X[::-1], 2 * X], axis=1)}

    def log_likelihood(p, row):
        return -0.5 * (row["x"] - p["a"]) ** 2 - 2.0 * jnp.sum((row["y"] - p["b"]) ** 2)

    m, step = 100, 0.3 / (4 * N)
    posterior = mintmc.Posterior(log_likelihood, data)
    theta = positions(kernel_of(SGLD(m, step_size=step), posterior, {"a": 0.0, "b": np.zeros(2)}), posterior)
    # The gradient for b is 4 (y - b) a row.
    for i, (precision, scale) in enumerate([(N, 1.0), (4 * N, 4.0), (4 * N, 8.0)]):
        exact = stationary_variance(step, precision, gradient_noise(scale * X, m))
        assert distance_of_means(theta[..., i] ** 2, exact) < LIMIT


def test_it_stays_in_the_mode_where_it_starts():
    # The barrier is about 40 at n = 10,000: exp(-40) a crossing. At T = 1000 nothing is left of it.
    posterior, starts = tied_means(), np.array([[0.0, 1.0], [1.0, -1.0]])
    settings = {"posterior": posterior, "start": starts, "chains": 2, "steps": 10_000}
    cold, hot = (
        positions(kernel_of(sampler, posterior, np.zeros(2)), **settings)[..., 1]
        for sampler in (SGLD(100, step_size=2e-5), SGLD(100, step_size=2e-2, temperature=1000.0))
    )
    assert (cold[0] > 0).all()
    assert (cold[1] < 0).all()
    assert ((hot > 0).mean(axis=1) > 0.2).all()
    assert ((hot < 0).mean(axis=1) > 0.2).all()


def test_what_is_recorded():
    tree = run(SGLD(50, step_size=1e-4), draws=100, warmup=30, thin=3)
    stats = tree.sample_stats
    assert (stats["data_touched"] == 150).all()
    assert tree.attrs["data_touched_setup"] == [30 * 50] * 4
    assert stats["accepted"].all()
    assert (stats["acceptance_rate"] == 1).all()
    assert (stats["log_ratio_noise"] == 0).all()
    np.testing.assert_allclose(stats["step_size"], 1e-4, rtol=1e-6)
    assert tree.attrs["undefined_moves"] == 0


def undefined(log_likelihood, step, **settings):
    tree = run(SGLD(10, step_size=step), mintmc.Posterior(log_likelihood, X), draws=200, **settings)
    accepted = tree.sample_stats["accepted"].values
    assert np.isfinite(theta_of(tree)).all()
    assert tree.attrs["undefined_moves"] == (~accepted).sum()
    return tree, accepted


def test_a_step_that_diverges_is_kept_back_and_counted():
    tree, accepted = undefined(gaussian_log_likelihood, 10 / N)  # above 4/H: |theta| grows fourfold a step
    assert accepted[:, 0].all()
    assert not accepted[:, -1].any()
    assert np.abs(theta_of(tree)).max() > 1e30


def test_an_undefined_gradient_is_kept_back_and_counted():
    # The gradient is undefined below 0, where it drives the chain.
    tree, accepted = undefined(lambda t, x: -jnp.sqrt(t) + 0 * x, 1e-4, init=0.1)
    theta = theta_of(tree)
    assert accepted[:, 0].all()
    assert not accepted[:, -1].any()
    later, before = ~accepted[:, 1:], theta[:, :-1]
    assert (theta[:, 1:][later] == before[later]).all()


def test_the_clock_runs_on_when_a_step_is_undefined():
    schedule = Polynomial.between(1.0, 0.01, 100)
    kernel = kernel_of(SGLD(10, step_size=schedule), mintmc.Posterior(lambda t, x: jnp.nan * t, X))
    batch, start = {"gradient": GAUSS.rows[:10]}, jnp.zeros(1)
    state = kernel.init(start, batch)
    for t in range(3):
        state, info = kernel.step(jax.random.key(t), state, batch, None)
        np.testing.assert_allclose(info["step_size"], schedule.at(t), rtol=1e-5)
    assert int(state.time) == 3
    assert not info["is_defined"]
    assert state.theta == start


GOOD = SGLD(10, step_size=1e-3)

MISTAKES = {
    # name: (what to call, error, what the message says)
    "batch of none": (lambda: replace(GOOD, batch_size=0), ValueError, "batch_size must be at least 1, got 0"),
    "batch not whole": (lambda: replace(GOOD, batch_size=2.5), TypeError, "batch_size must be a whole number.*got 2.5"),
    "batch above n": (
        lambda: run(SGLD(501, step_size=1e-3)),
        ValueError,
        r"batch_size must be in \[1, n=500\], got 501",
    ),
    "step 0": (lambda: replace(GOOD, step_size=0.0), ValueError, r"step_size must be in \(0, inf\), got 0"),
    "step a word": (lambda: replace(GOOD, step_size="small"), TypeError, r"step_size must be a number.*got 'small'"),
    "temperature 0": (lambda: replace(GOOD, temperature=0.0), ValueError, r"temperature must be in \(0, inf\), got 0"),
    "unknown temper": (lambda: replace(GOOD, temper="x"), ValueError, "temper must be one of 'posterior'.*got 'x'"),
    "unknown batching": (lambda: replace(GOOD, batching="x"), ValueError, "batching must be one of.*got 'x'"),
    "adapted preconditioner": (
        lambda: replace(GOOD, preconditioner="diagonal"),
        TypeError,
        "preconditioner must be None, a vector of variances or a covariance matrix.*got 'diagonal'",
    ),
    "negative variance": (
        lambda: replace(GOOD, preconditioner=np.array([-1.0])),
        ValueError,
        "preconditioner must have positive variances",
    ),
    "preconditioner of another size": (
        lambda: run(replace(GOOD, preconditioner=np.ones(3))),
        ValueError,
        r"preconditioner must have shape \(1,\) or \(1, 1\) for 1 parameters, got \(3,\)",
    ),
    "density without data": (
        lambda: run(GOOD, mintmc.Posterior.from_density(lambda t: -(t**2))),
        ValueError,
        "posterior must have data to take mini-batches of",
    ),
    "not differentiable": (
        lambda: run(GOOD, mintmc.Posterior(lambda t, x: -jnp.asarray(np.asarray(t > x), float), X)),
        ValueError,
        "SGLD needs a log density that JAX can differentiate",
    ),
    "prior not differentiable": (
        lambda: run(GOOD, mintmc.Posterior(gaussian_log_likelihood, X, lambda t: float(np.asarray(t)))),
        ValueError,
        "SGLD needs a log density that JAX can differentiate",
    ),
}


test_mistake_is_refused = each_refused(MISTAKES)
