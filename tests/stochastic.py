"""What is true of stochastic gradient samplers on the posterior of a Gaussian mean."""

from dataclasses import dataclass, fields

import jax.numpy as jnp
import numpy as np
import scipy.linalg

import mintmc
from mintmc.energy import Tempered
from truth import gaussian_data, gaussian_log_likelihood, walk

N = 500
X = gaussian_data(N).astype(float)
NUMBERS = ("step_size", "friction", "noise_estimate", "resample_every")
GAUSS = mintmc.Posterior(gaussian_log_likelihood, X)


@dataclass(frozen=True)
class SumOfTheBatch(Tempered):
    """Broken: the gradient of a batch of 50 is not scaled up by n/m."""

    def batch_gradient(self, theta, batch):
        return super().batch_gradient(theta, batch) * 50 / N


def run(sampler, posterior=GAUSS, init=0.0, **settings):
    # Nothing is adapted: without warm-up one program less is compiled, which is what takes time here.
    settings = {"draws": 200, "warmup": 0, "chains": 4, "seed": 1, "progress": False} | settings
    return mintmc.sample(posterior, sampler, init=init, **settings)


def theta_of(tree):
    group = "posterior" if tree.attrs["temperature"] == 1 else "tempered_posterior"
    return tree[group]["theta"].values.astype(float)


def positions(kernel, posterior=GAUSS, start=0.0, steps=2500, chains=64):
    """Flat states (chain, step, parameter) of a kernel; the slowest target here forgets its start in 100 steps."""
    starts = np.broadcast_to(start, (chains, kernel.dim))
    return walk(kernel, posterior, starts, steps=steps, skip=200, numbers=NUMBERS)


def kernel_of(sampler, posterior=GAUSS, init=0.0):
    return sampler.kernel(posterior.flat(init))


def twin_of(kernel, kind):
    """The kernel as one of another kind."""
    return kind(**{field.name: getattr(kernel, field.name) for field in fields(kernel)})


def gradient_noise(x, m, temperature=1.0):
    """Variance of the batch gradient: n_eff^2 times that of a mean of m of n rows without replacement."""
    n = len(x)
    return (n / temperature) ** 2 * np.var(x, ddof=1) / m * (1 - m / n)


def linear_update(step, friction, precision, noise, noise_estimate):
    """A and Q of SGHMC on a normal target: (theta, r) <- A (theta, r) + N(0, Q)."""
    kept = 1 - step * friction
    matrix = np.array([[1 - step**2 * precision, step * kept], [-step * precision, kept]])
    pushed = 2 * step * (friction - step * noise_estimate / 2) + step**2 * noise
    return matrix, pushed * np.array([[step**2, step], [step, 1.0]])


def stationary_covariance(*settings):
    return scipy.linalg.solve_discrete_lyapunov(*linear_update(*settings))


def tied_means(n=10_000):
    """Welling & Teh: x ~ N(a, 2)/2 + N(a + b, 2)/2 with modes at (0, 1) and (1, -1), and a barrier of about 40."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n) * np.sqrt(2) + (rng.random(n) < 0.5)

    def log_likelihood(t, x):
        return jnp.logaddexp(-((x - t[0]) ** 2) / 4, -((x - t[0] - t[1]) ** 2) / 4)

    return mintmc.Posterior(log_likelihood, x, lambda t: -(t[0] ** 2) / 20 - t[1] ** 2 / 2)
