"""Steps and friction that SGLD and SGHMC choose: the variance that theory predicts, near the exact one."""

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.samplers.step_size import ERROR
from mistakes import each_refused
from stochastic import X, gradient_noise, run, stationary_covariance, theta_of
from truth import LIMIT, distance, gaussian_log_likelihood, mostly_slow

M = 100
POSTERIOR = mintmc.Posterior(gaussian_log_likelihood, X)
"""Exact variance 1/n; batch gradients of known variance."""
N = len(X)
NOISE = gradient_noise(X, M)
SAMPLERS = {
    "SGLD": mintmc.SGLD(M),
    "SGHMC": mintmc.SGHMC(M),
    "SGHMC, noise known": mintmc.SGHMC(M, noise_estimate=NOISE),
}


def predicted(settings):
    """The variance of the draws, in units of the exact one."""
    step = settings["step_size"]
    if "friction" not in settings:
        return (1 + step * NOISE / 4) / (1 - step * N / 4)
    return N * stationary_covariance(step, settings["friction"], N, NOISE, settings["noise_estimate"])[0, 0]


def chosen(tree):
    """The settings that the run was made with."""
    return json.loads(tree.attrs["sampler_settings"])


@pytest.mark.parametrize("name", mostly_slow(SAMPLERS, "SGLD"))
def test_draws_have_the_predicted_variance_which_is_nearly_exact(name):
    tree = run(SAMPLERS[name], POSTERIOR, draws=20_000, thin=10, chains=4)
    settings = chosen(tree)
    expected = predicted(settings)
    assert expected == pytest.approx(1 + ERROR, abs=0.005)
    ratio = theta_of(tree) ** 2 * N
    assert distance(ratio, expected) < LIMIT
    assert abs(ratio.mean() - 1) < 0.07
    assert "variances off by 5.0% at most" in tree.attrs["settled"]
    # Ten times the step, the broken twin.
    twin = predicted(settings | {"step_size": 10 * settings["step_size"]})
    assert not abs(twin - 1) < 0.07


def test_a_step_ten_times_as_large_is_off():
    step = chosen(run(SAMPLERS["SGLD"], POSTERIOR, draws=10))["step_size"]
    tree = run(mintmc.SGLD(M, step_size=10 * step), POSTERIOR, draws=20_000)
    assert distance(theta_of(tree) ** 2 * N, 1 + ERROR) > LIMIT
    assert abs((theta_of(tree) ** 2 * N).mean() - 1) > 0.3


def regression(seed=0, n=5000):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) * np.array([1.0, 3.0])
    y = (rng.random(n) < 1 / (1 + np.exp(-x @ np.array([0.5, -0.2])))).astype(float)

    def log_likelihood(b, row):
        return row[1] * (row[0] @ b) - jnp.logaddexp(0.0, row[0] @ b)

    return mintmc.Posterior(log_likelihood, (x, y), lambda b: -0.5 * b @ b)


def test_control_variates_allow_larger_steps_and_the_costs_are_said():
    posterior = regression()
    settings = {"init": np.zeros(2), "draws": 100}
    plain = run(mintmc.SGLD(50), posterior, **settings)
    controlled = run(mintmc.SGLD(50, control=mintmc.Taylor()), posterior, **settings)
    assert chosen(controlled)["step_size"] > 10 * chosen(plain)["step_size"]
    assert (
        "too long for 100 steps (noise of gradients: larger batches or control=Taylor() would help)"
        in (plain.attrs["settled"])
    )
    assert plain.attrs["data_touched_setup"][0] > posterior.n


def test_a_stored_run_goes_on_with_the_step_that_was_chosen(tmp_path):
    posterior, path = regression(), tmp_path / "run.zarr"
    settings = {"init": np.zeros(2), "warmup": 10, "chains": 2}
    first = run(mintmc.SGHMC(500), posterior, draws=50, out=path, **settings)
    again = run(mintmc.SGHMC(500), posterior, draws=80, out=path, **settings)
    on = mintmc.resume(path, posterior, draws=100, progress=False)
    whole = run(mintmc.SGHMC(500), posterior, draws=100, **settings)
    assert whole.attrs["sampler_settings"] == first.attrs["sampler_settings"]
    for tree in (again, on):
        assert tree.attrs["sampler_settings"] == first.attrs["sampler_settings"]
        assert tree.attrs["settled"] == first.attrs["settled"]
        assert tree.attrs["data_touched_setup"] == first.attrs["data_touched_setup"]
    np.testing.assert_array_equal(theta_of(on), theta_of(whole))
    with pytest.raises(ValueError, match=r"which differs: sampler.batch_size was 500, now 400"):
        run(mintmc.SGHMC(400), posterior, draws=100, out=path, **settings)


def test_without_a_mode_a_step_is_asked_for():
    with pytest.raises(ValueError, match="step_size must be given where no mode is found, got None"):
        run(mintmc.SGLD(10), mintmc.Posterior(lambda t, x: -jnp.logaddexp(0.0, -t * x), np.ones(50)))


MISTAKES = {
    # name: (what to call, error, what the message says)
    "many parameters": (
        lambda: run(
            mintmc.SGLD(10), mintmc.Posterior(lambda t, x: -jnp.sum((t - x) ** 2), np.zeros((50, 1))), np.zeros(201)
        ),
        ValueError,
        "step_size must be given for more than 200 parameters, got None for 201",
    ),
    "not settled": (
        lambda: mintmc.SGLD(10).kernel(POSTERIOR.flat(0.0)),
        ValueError,
        r"step_size must be chosen before a run is planned \(mintmc.sample does\), got None",
    ),
    "friction alone is checked": (
        lambda: replace(mintmc.SGHMC(10), friction=-1.0),
        ValueError,
        r"friction must be in \(0, inf\), got -1",
    ),
}
test_mistakes_are_refused = each_refused(MISTAKES)
