"""find_mode, against SciPy in float64; and what it says where there is no mode."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import mintmc

RNG = np.random.default_rng(2)


def logistic(n, d, separable=False, log_prior=None):
    x = RNG.normal(size=(n, d))
    x[:, 0] = 1.0
    eta = x @ np.linspace(-1, 1, d)
    y = (eta > 0 if separable else RNG.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
    rows = {"x": x.astype(np.float32), "y": y.astype(np.float32)}
    return mintmc.Posterior(_log_likelihood, rows, log_prior), x, y


def _log_likelihood(theta, row):
    eta = row["x"] @ theta
    return row["y"] * eta - jnp.logaddexp(0.0, eta)


def exact(x, y):
    """The mode and the covariance, in float64."""

    def energy(theta):
        eta = x @ theta
        p = 1 / (1 + np.exp(-eta))
        return np.logaddexp(0, eta).sum() - y @ eta, x.T @ (p - y)

    theta = minimize(energy, np.zeros(x.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-6}).x
    p = 1 / (1 + np.exp(-x @ theta))
    return theta, np.linalg.inv((x * (p * (1 - p))[:, None]).T @ x)


@pytest.mark.parametrize("n", [500, 40_000])
def test_the_mode_is_found_in_few_passes(n):
    posterior, x, y = logistic(n, 4)
    mode = mintmc.find_mode(posterior, np.zeros(4))
    theta, covariance = exact(x, y)
    # The end is where a thousandth of a standard deviation per parameter, or less, is left.
    off = (np.asarray(mode.params) - theta) / np.sqrt(np.diag(covariance))
    assert np.abs(off).max() < 0.03
    np.testing.assert_allclose(mode.covariance, covariance, rtol=2e-3, atol=2e-3 * np.abs(covariance).max())
    assert mode.gradient <= 0.01
    assert mode.passes < 30
    assert mode.energy == pytest.approx(posterior.energy(mode.params), rel=1e-6)


def test_params_of_any_form():
    x = RNG.normal(2.0, 1.5, size=3000)
    posterior = mintmc.Posterior(
        lambda p, x: -0.5 * ((x - p["mean"]) * jnp.exp(-p["log_scale"])) ** 2 - p["log_scale"], x
    )
    mode = mintmc.find_mode(posterior, {"mean": 0.0, "log_scale": 0.0})
    assert float(mode.params["mean"]) == pytest.approx(x.mean(), abs=1e-3)
    assert float(mode.params["log_scale"]) == pytest.approx(np.log(x.std()), abs=1e-3)


def test_a_jacobian_belongs_to_the_density():
    posterior = mintmc.Posterior(lambda t, x: -0.5 * (t[0] - x) ** 2, np.zeros(50), log_jacobian=lambda t: 5 * t[0])
    assert float(mintmc.find_mode(posterior, np.zeros(1)).params[0]) == pytest.approx(0.1, abs=2e-3)


def test_a_density_without_data():
    density = mintmc.Posterior.from_density(lambda t: -0.5 * jnp.sum((t - 1) ** 2 / jnp.array([1.0, 100.0])))
    mode = mintmc.find_mode(density, np.zeros(2))
    np.testing.assert_allclose(mode.params, 1, atol=0.02)
    np.testing.assert_allclose(np.diag(mode.covariance), [1, 100], rtol=1e-3)


def test_data_on_disk(tmp_path):
    posterior, x, y = logistic(30_000, 3)
    np.save(tmp_path / "rows.npy", np.column_stack([x, y]).astype(np.float32))
    there = mintmc.Posterior(lambda t, row: _log_likelihood(t, {"x": row[:3], "y": row[3]}), tmp_path / "rows.npy")
    here, there = (mintmc.find_mode(p, np.zeros(3)) for p in (posterior, there))
    np.testing.assert_allclose(here.params, there.params, atol=1e-3)


def test_many_parameters_do_without_a_hessian():
    dim = 1500
    scale = np.exp(RNG.normal(size=dim)).astype(np.float32)
    x = RNG.normal(size=(20, dim)).astype(np.float32)
    posterior = mintmc.Posterior(lambda t, x: -0.5 * jnp.sum((x - t) ** 2 * scale), x)
    mode = mintmc.find_mode(posterior, np.zeros(dim))
    assert mode.covariance is None
    off = (np.asarray(mode.params) - x.mean(0)) * np.sqrt(20 * scale)
    assert np.sqrt(np.mean(off**2)) < 0.05


def test_separable_data_have_their_mode_at_infinity():
    posterior, _, _ = logistic(200, 3, separable=True)
    with pytest.raises(ValueError, match=r"posterior must have a mode.*infinity.*separable.*proper prior, got"):
        mintmc.find_mode(posterior, np.zeros(3))
    # With a prior they have one.
    proper, _, _ = logistic(200, 3, separable=True, log_prior=lambda t: -0.5 * jnp.sum(t**2))
    assert np.isfinite(mintmc.find_mode(proper, np.zeros(3)).params).all()


def test_a_saddle_is_left():
    """Two modes at +-2 with a saddle between them, where the search begins."""
    density = mintmc.Posterior.from_density(lambda t: -0.25 * (t[0] ** 2 - 4) ** 2 - 0.5 * t[1] ** 2)
    mode = mintmc.find_mode(density, np.zeros(2))
    assert abs(float(mode.params[0])) == pytest.approx(2, abs=0.01)


def test_a_ridge_is_no_mode():
    density = mintmc.Posterior.from_density(lambda t: -0.5 * (t[0] + t[1]) ** 2)
    with pytest.raises(ValueError, match=r"init must lead to a mode, got a saddle point or a ridge.*not curved"):
        mintmc.find_mode(density, np.ones(2))


BAD = {
    "tolerance must be in": {"tolerance": 0.0},
    "max_passes must be at least 1, got 0": {"max_passes": 0},
    "seed must be": {"seed": -1},
    "init must have a finite log density, got": {"init": np.array([-1.0])},
    "max_passes must be larger": {"max_passes": 1},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_refused(message):
    posterior = mintmc.Posterior(
        lambda rate, x: jnp.log(rate[0]) - rate[0] * x,
        RNG.exponential(size=100),
        lambda rate: jnp.where(rate[0] > 0, 0.0, -jnp.inf),
    )
    settings = {"init": np.array([0.2]), **BAD[message]}
    with pytest.raises(ValueError, match=message):
        mintmc.find_mode(posterior, **settings)
