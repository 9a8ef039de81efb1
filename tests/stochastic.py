"""What is true of stochastic gradient samplers on the posterior of a Gaussian mean."""

import numpy as np
import scipy.linalg

import mintmc
from truth import gaussian_data, gaussian_log_likelihood

N = 500
X = gaussian_data(N).astype(float)
GAUSS = mintmc.Posterior(gaussian_log_likelihood, X)


def run(sampler, posterior=GAUSS, init=0.0, **settings):
    # Nothing is adapted: without warm-up one program less is compiled, which is what takes time here.
    settings = {"draws": 40_000, "warmup": 0, "chains": 4, "seed": 1, "progress": False} | settings
    return mintmc.sample(posterior, sampler, init=init, **settings)


def theta_of(tree, name="theta", skip=200):
    """Draws without the first 200, made on the way from the start: the slowest target here forgets it in 100 steps."""
    group = "posterior" if tree.attrs["temperature"] == 1 else "tempered_posterior"
    return tree[group][name].values[:, skip:].astype(float)


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
