"""Posteriors that every sampler is given alike: functions of one row, the rows, the mode, and the scale around it."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mintmc
from mintmc.experiments.logistic import mnist
from mintmc.experiments.tied_means import experiment as tied_means


class Workload:
    """A posterior, and what peers are given of it for nothing.

    Peers see it in whitened coordinates z, theta = mode + S z with S S' the Laplace approximation's covariance. That is
    the best constant mass matrix for them, without a step of warm-up; ours has to find it, and its time counts where
    set-up does.
    """

    def __init__(self, name: str, log_likelihood: Callable, rows: Any, log_prior: Callable, start: Any):
        self.name, self.log_likelihood, self.log_prior = name, log_likelihood, log_prior
        self.rows, self.start = rows, np.asarray(start, np.float32)
        self.posterior = mintmc.Posterior(log_likelihood, rows, log_prior)
        self.n, self.d = self.posterior.n, self.start.size

    @cached_property
    def found(self) -> Any:
        """The mode, compiled and looked for."""
        return mintmc.find_mode(self.posterior, self.start)

    @cached_property
    def mode(self) -> np.ndarray:
        """As a vector."""
        return np.asarray(self.found.params, np.float32)

    @cached_property
    def scale(self) -> np.ndarray:
        """S, a Cholesky factor."""
        return np.linalg.cholesky(np.asarray(self.found.covariance, float)).astype(np.float32)

    @cached_property
    def on_device(self) -> Any:
        """The rows, where programs read them."""
        return jax.tree.map(jnp.asarray, self.rows)

    def log_density(self, z: Any, rows: Any) -> Any:
        """On all rows, of whitened coordinates."""
        theta = self.mode + self.scale @ z
        return jax.vmap(self.log_likelihood, (None, 0))(theta, rows).sum() + self.log_prior(theta)

    def theta(self, z: np.ndarray) -> np.ndarray:
        """Draws of z as draws of theta."""
        return np.asarray(z) @ self.scale.T + self.mode


def regression(n: int, d: int, seed: int = 0):
    """Rows of an intercept, an indicator of 2% and normal columns, with the logits that they have."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d), np.float32)
    x[:, 0], x[:, 1] = 1.0, rng.random(n) < 0.02
    beta = rng.normal(size=d).astype(np.float32) / np.sqrt(d)
    beta[0] = -1.0
    return x, x @ beta, rng


def logistic_data(n: int, d: int):
    """Such rows, and answers of 0 and 1."""
    x, eta, rng = regression(n, d)
    return x, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(np.float32)


def logistic_likelihood(theta, row):
    """Of one answer."""
    eta = row["x"] @ theta
    return row["y"] * eta - jnp.logaddexp(0.0, eta)


def student_likelihood(theta, row):
    """Of one answer, four degrees of freedom."""
    return -2.5 * jnp.log1p((row["y"] - row["x"] @ theta) ** 2 / 4)


def wide_prior(theta):
    """N(0, 100) on every coefficient."""
    return -0.5 * jnp.sum(theta**2) / 100


def logistic(n: int, d: int) -> Workload:
    """Logistic regression at T = 1."""
    x, y = logistic_data(n, d)
    name = f"logistic regression, n = {n:.0e}, d = {d}"
    return Workload(name, logistic_likelihood, {"x": x, "y": y}, wide_prior, np.zeros(d))


def robust(n: int, d: int) -> Workload:
    """Regression with Student's t, so that outliers do little."""
    x, eta, rng = regression(n, d)
    y = (eta + rng.standard_t(4, n)).astype(np.float32)
    return Workload(
        f"robust regression, n = {n:.0e}, d = {d}", student_likelihood, {"x": x, "y": y}, wide_prior, np.zeros(d)
    )


def digits(n: int | None = None) -> Workload:
    """MNIST, 1 versus 7, a N(0, 1) prior on every one of 784 weights."""
    images = mnist.load()
    rows = {"x": images.x[:n], "y": images.y[:n]}
    name = f"MNIST logistic regression, n = {len(rows['y'])}, d = 784"
    return Workload(name, mnist.log_likelihood, rows, mnist.standard_normal, np.zeros(784))


def tied(n: int) -> mintmc.Posterior:
    """The paper's two tied means, on which steps are timed."""
    return mintmc.Posterior(tied_means.log_likelihood, tied_means.simulate(n), tied_means.log_prior)


def three_normals(n: int) -> mintmc.Posterior:
    """A mixture of three normals whose means are unknown: six modes of equal weight."""
    rng = np.random.default_rng(0)
    y = (np.array([-4.0, 0.0, 5.0])[rng.integers(0, 3, n)] + rng.normal(size=n)).astype(np.float32)
    return mintmc.Posterior(three_normals_likelihood, y, three_normals_prior)


def three_normals_likelihood(means, y):
    """Of one observation, without what does not depend on the means."""
    return jax.nn.logsumexp(-0.5 * (y - means) ** 2)


def three_normals_prior(means):
    """N(0, 100) on every mean."""
    return -0.5 * jnp.sum(means**2) / 100


def forty_means(dim: int) -> np.ndarray:
    """Of forty unit normals, uniform in [-40, 40]^d."""
    return np.random.default_rng(0).uniform(-40, 40, size=(40, dim))


def forty(dim: int) -> Callable:
    """Their log density: log evidence 0, every mode 1/40."""
    at = jnp.asarray(forty_means(dim), jnp.float32)
    constant = -np.log(40) - 0.5 * dim * np.log(2 * np.pi)
    return lambda x: jax.nn.logsumexp(-0.5 * jnp.sum((x - at) ** 2, axis=1)) + constant
