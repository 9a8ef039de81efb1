import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.data import Uniform
from mintmc.energy import Tempered
from mintmc.energy.tempered import mean_and_its_variance
from mintmc.experiments.tied_means import experiment as tied_means
from mintmc.run.task import compile_program


def posterior_of(n, seed=0):
    x = tied_means.simulate(n, seed)
    return x, mintmc.Posterior(tied_means.log_likelihood, x, tied_means.log_prior)


def float64_energy(theta, x):
    x = x.astype(np.float64)
    first, second = -((x - theta[0]) ** 2) / 4, -((x - theta[0] - theta[1]) ** 2) / 4
    return -np.logaddexp(first, second).sum() + theta[0] ** 2 / 20 + theta[1] ** 2 / 2


def test_energy_differences_are_right_to_a_hundredth_at_a_million_rows():
    x, posterior = posterior_of(1_000_000)
    here, nearby = np.float32([0.0, 1.0]), np.float32([0.001, 0.999])
    exact = float64_energy(nearby.astype(float), x) - float64_energy(here.astype(float), x)
    assert posterior.energy(nearby) - posterior.energy(here) == pytest.approx(exact, abs=1e-2)
    # The broken twin: one float32 cannot hold the sum.
    each = jax.jit(lambda t: -jnp.sum(jax.vmap(tied_means.log_likelihood, (None, 0))(t, jnp.asarray(x))))
    assert abs(float(each(nearby)) - float(each(here)) - exact) > 1e-2


@pytest.mark.parametrize("n", [1, 2, 255, 256, 8191, 8192, 8193, 20_000])
def test_a_blocked_pass_reads_every_row_once(n):
    x, posterior = posterior_of(n)
    theta = np.float32([0.3, -0.7])
    assert posterior.energy(theta) == pytest.approx(float64_energy(theta.astype(float), x), rel=1e-6)


@pytest.mark.parametrize("n", [10, 10_000])
@pytest.mark.parametrize("temper", ["posterior", "likelihood"])
def test_the_full_gradient_is_that_of_the_tempered_density(n, temper):
    x, posterior = posterior_of(n)
    theta, T = jnp.array([0.3, -0.7]), 7.0
    target = Tempered(posterior.model(lambda t: t, 2), T, temper)
    density, gradient = target.full_gradient(theta, posterior.rows)

    def naive(theta):
        likelihood = jnp.sum(jax.vmap(tied_means.log_likelihood, (None, 0))(theta, jnp.asarray(x))) / T
        return likelihood + tied_means.log_prior(theta) * (1 / T if temper == "posterior" else 1)

    np.testing.assert_allclose(gradient, jax.grad(naive)(theta), rtol=2e-4)
    other = target.model.density(theta + 0.01, posterior.rows)
    np.testing.assert_allclose(target.log_ratio(density, other), naive(theta + 0.01) - naive(theta), rtol=2e-2)


def test_the_batch_gradient_is_unbiased():
    _, posterior = posterior_of(64)
    theta = jnp.array([0.3, -0.7])
    target = Tempered(posterior.model(lambda t: t, 2), 3.0)
    parts = [target.batch_gradient(theta, posterior.rows[i : i + 8]) for i in range(0, 64, 8)]
    np.testing.assert_allclose(np.mean(parts, axis=0), target.full_gradient(theta, posterior.rows)[1], rtol=1e-4)


@pytest.mark.parametrize("m", [10, 400, 1000])
def test_the_noise_of_a_common_ratio_is_its_variance_over_batches(m):
    n, T = 1000, 20.0
    _, posterior = posterior_of(n)
    target = Tempered(posterior.model(lambda t: t, 2), T)
    here, there = jnp.array([0.0, 1.0]), jnp.array([0.4, 0.7])
    batching = Uniform(n)

    def one(key):
        return target.difference(here, there, batching.take(posterior.rows, batching.ticket(key), 0, m))

    value, noise = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), 4000))
    exact = target.log_ratio(*(target.model.density(t, posterior.rows) for t in (here, there)))
    if m == n:
        assert float(jnp.max(noise)) == 0
        np.testing.assert_allclose(value, exact, rtol=1e-4)
        return
    error = np.sqrt(float(value.var()) / 4000)
    assert abs(float(value.mean() - exact)) < 4 * error
    # The variance of a variance over 4000 batches, with room for the kurtosis of the differences.
    assert abs(float(value.var() / noise.mean()) - 1) < 4 * np.sqrt(3 / 4000)


def test_one_row_has_unknown_noise():
    _, posterior = posterior_of(10)
    target = Tempered(posterior.model(lambda t: t, 2), 2.0)
    assert np.isnan(target.level(jnp.zeros(2), posterior.rows[:1]).noise)


@pytest.mark.parametrize("may_reorder", [False, True])
@pytest.mark.parametrize("level", [0.0, 30.0])  # what all rows share; 30 deviations
def test_mean_and_variance_however_they_are_summed(level, may_reorder):
    each = np.random.default_rng(1).normal(level, 1, 1000).astype(np.float32)
    mean, variance = compile_program(lambda each: mean_and_its_variance(each, 4000), each, may_reorder=may_reorder)(
        each
    )
    assert mean == pytest.approx(each.astype(float).mean(), rel=1e-5, abs=1e-6)
    assert variance == pytest.approx(each.astype(float).var(ddof=1) / 1000 * 0.75, rel=1e-3)


def test_levels_are_counted_from_one_of_them():
    # A deviation of 1 on a level of 1e4: from 0, float32 would know nothing of it.
    each = np.random.default_rng(2).normal(1e4, 1, 1000).astype(np.float32)
    args = (each, each[0])
    program = compile_program(lambda *args: mean_and_its_variance(args[0], 10**9, args[1]), *args, may_reorder=True)
    exact = each.astype(float).var(ddof=1) / 1000
    assert program(each, each[0])[1] == pytest.approx(exact, rel=1e-3)
    assert program(each, np.float32(0))[1] != pytest.approx(exact, rel=0.1)
