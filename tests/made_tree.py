"""Trees of draws that are known exactly: made as ``sample`` makes them, without a run."""

import jax
import numpy as np

import mintmc
from mintmc.result.tree import RunFacts, build_tree

CHAINS, DRAWS = 4, 500
N, PRIOR_SD = 60, 2.0


def observations(n=N, seed=0):
    return np.random.default_rng(seed).normal(0.7, 1.0, size=n).astype(np.float32)


def normal_posterior(data=None, **settings):
    """A normal mean with a normal prior: its posterior, and all that is predicted from it, is normal."""
    return mintmc.Posterior(
        lambda mean, x: jax.scipy.stats.norm.logpdf(x, mean),
        observations() if data is None else data,
        lambda mean: jax.scipy.stats.norm.logpdf(mean, 0.0, PRIOR_SD),
        **settings,
    )


def normal_law(x, temperature=1.0):
    """Mean and standard deviation of the mean's posterior, or of that at a temperature."""
    precision = 1 / PRIOR_SD**2 + len(x)
    return float(np.sum(x)) / precision, (temperature / precision) ** 0.5


def made_tree(posterior, init, theta, temperature=1.0, sampler=None, statistics=None, groups=None, **others):
    """The tree of a run whose chains moved along ``theta`` (chain, draw, d)."""
    theta = np.asarray(theta, np.float32)
    sampler = sampler or mintmc.MetropolisHastings()
    facts = RunFacts(sampler, posterior.n, temperature, 0, 0, 1, {"sampling": 1.5}, theta[:, 0], others)
    statistics = {"accepted": np.ones(theta.shape[:2], bool), **(statistics or {})}
    return build_tree(theta, statistics, {}, groups or {}, posterior.flat(init), facts)


def normal_tree(posterior, chains=CHAINS, draws=DRAWS, temperature=1.0, seed=1):
    """Independent draws of the normal mean."""
    mean, sd = normal_law(observations(), temperature)
    theta = np.random.default_rng(seed).normal(mean, sd, size=(chains, draws, 1))
    return made_tree(posterior, 0.0, theta, temperature)
