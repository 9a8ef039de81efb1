"""PyMC with nutpie, emcee, dynesty."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.peers import Run
from harness.process import cores

TUNE = 300


def nutpie(workload: Any, draws: int) -> Callable[[int], Run]:
    """A logistic regression of PyMC by nutpie, a chain a core; its tuning is not counted.

    Its states are float64 whatever is asked for; the passes over rows are in float32.
    """
    import nutpie
    import pymc as pm

    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 10, shape=workload.d)
        eta = pm.math.dot(workload.rows["x"], beta.astype("float32"))
        pm.Bernoulli("y", logit_p=eta, observed=workload.rows["y"].astype("int8"))
    compiled = nutpie.compile_pymc_model(model)
    settings = {"tune": TUNE, "chains": cores(), "cores": cores(), "progress_bar": False}

    def timed(number: int, seed: int):
        begun = time.process_time()
        trace = nutpie.sample(compiled, draws=number, seed=seed, **settings)
        return trace, time.process_time() - begun

    timed(1, 0)

    def run(seed: int) -> Run:
        """The same run without draws is taken off."""
        _, tuning = timed(1, seed)
        trace, all_of_it = timed(draws, seed)
        gradients = float(trace.sample_stats["n_steps"].sum()) if "n_steps" in trace.sample_stats else np.nan
        return Run(np.asarray(trace.posterior["beta"]), max(all_of_it - tuning, 1e-3), gradients * workload.n)

    return run


def emcee(workload: Any, draws: int) -> Callable[[int], Run]:
    """The stretch move of emcee on a logistic regression, walkers from the Laplace approximation; NumPy, vectorised."""
    import emcee as package

    x, y = workload.rows["x"], workload.rows["y"]
    walkers = 4 * workload.d

    def log_density(thetas):
        eta = thetas.astype(np.float32) @ x.T
        log_likelihood = eta @ y - np.logaddexp(np.float32(0), eta).sum(axis=1, dtype=float)
        return log_likelihood - 0.5 * (thetas**2).sum(axis=1) / 100

    def run(seed: int) -> Run:
        rng = np.random.default_rng(seed)
        start = workload.theta(rng.normal(size=(walkers, workload.d)))
        sampler = package.EnsembleSampler(walkers, workload.d, log_density, vectorize=True)
        sampler.random_state = np.random.RandomState(seed).get_state()
        begun = time.process_time()
        sampler.run_mcmc(start, draws)
        taken = time.process_time() - begun
        return Run(sampler.get_chain().swapaxes(0, 1), taken, float(walkers * draws * workload.n))

    return run


def dynesty(log_density: Callable, low: float, high: float, dim: int, live: int = 1000):
    """Nested sampling of a density on a box; ``run(seed) -> (equally weighted draws, core-seconds, log evidence)``."""
    import dynesty as package
    import jax

    compiled = jax.jit(log_density)

    def run(seed: int):
        begun = time.process_time()
        sampler = package.NestedSampler(
            lambda x: float(compiled(np.asarray(x, np.float32))),
            lambda u: low + (high - low) * u,
            dim,
            nlive=live,
            rstate=np.random.default_rng(seed),
        )
        sampler.run_nested(print_progress=False)
        taken = time.process_time() - begun
        found = sampler.results
        # The prior's density is 1 / volume; the draws' is that of the normals.
        evidence = float(found.logz[-1]) + dim * np.log(high - low)
        return found.samples_equal(rstate=np.random.default_rng(seed)), taken, evidence

    return run
