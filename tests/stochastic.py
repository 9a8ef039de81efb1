"""What is true of stochastic gradient samplers on the posterior of a Gaussian mean."""

from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

import mintmc
from mintmc.data import Uniform
from truth import fresh_batches, gaussian_data, gaussian_log_likelihood, quickly_compiled

N = 500
X = gaussian_data(N).astype(float)
GAUSS = mintmc.Posterior(gaussian_log_likelihood, X)


def run(sampler, posterior=GAUSS, init=0.0, **settings):
    # Nothing is adapted: without warm-up one program less is compiled, which is what takes time here.
    settings = {"draws": 200, "warmup": 0, "chains": 4, "seed": 1, "progress": False} | settings
    return mintmc.sample(posterior, sampler, init=init, **settings)


def theta_of(tree):
    group = "posterior" if tree.attrs["temperature"] == 1 else "tempered_posterior"
    return tree[group]["theta"].values.astype(float)


def positions(kernel, posterior=GAUSS, start=0.0, steps=2500, chains=64, skip=200):
    """Flat states (chain, step, parameter) of a kernel on uniform batches, which are exactly independent.

    The first 200 are left out, made on the way from the start: the slowest target here forgets it in 100 steps. Chains
    are many and short, to be judged by their means, and kernels that differ in numbers alone share one program.
    """
    form = (type(kernel), type(kernel.target), kernel.target.temper, kernel.batch_size, posterior, steps, chains)
    form += (getattr(kernel, "resample_every", None) is None,)
    if form not in _PROGRAMS:
        _PROGRAMS[form] = quickly_compiled(_walk(kernel, posterior, steps + skip))
    starts = jnp.broadcast_to(jnp.asarray(start, kernel.dtype), (chains, kernel.dim))
    drawn = _PROGRAMS[form](_numbers(kernel), jax.random.split(jax.random.key(1), chains), starts)
    return np.asarray(drawn, float)[:, skip:]


_PROGRAMS = {}


def _numbers(kernel):
    names = ("step_size", "friction", "noise_estimate", "resample_every")
    own = {name: getattr(kernel, name) for name in names if getattr(kernel, name, None) is not None}
    return jax.tree.map(jnp.asarray, (own, kernel.target.temperature))


def _walk(kernel, posterior, steps):
    batching, rows = Uniform(posterior.n), posterior.rows

    def one(numbers, key, start):
        own, temperature = numbers
        settled = replace(kernel, target=replace(kernel.target, temperature=temperature), **own)

        def step(state, key):
            batch = fresh_batches(key, kernel, batching, rows)
            state, _ = settled.step(jax.random.fold_in(key, 0), state, batch, None)
            return state, settled.position(state)

        return jax.lax.scan(step, settled.init(start, {}), jax.random.split(key, steps))[1]

    return jax.vmap(one, (None, 0, 0))


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
