"""NumPyro: NUTS on all data, and HMCECS, Hamiltonian Monte Carlo on sub-samples with a Taylor proxy."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from harness.peers import Run, leapfrog
from harness.timing import core_seconds


def _timed(mcmc: Any, arguments: tuple, start: Any, steps: str, workload: Any, read: float) -> Callable[[int], Run]:
    """Warmed up and compiled: every run goes on from there. ``read`` rows are read for a leapfrog step."""
    mcmc.warmup(jax.random.key(0), *arguments, init_params={"z": start})
    warmed = mcmc.post_warmup_state

    def run(seed: int) -> Run:
        mcmc.post_warmup_state = warmed
        begun = core_seconds()
        mcmc.run(jax.random.key(seed), *arguments, extra_fields=(steps,))
        z = np.asarray(jax.block_until_ready(mcmc.get_samples(group_by_chain=True)["z"]))
        taken = core_seconds() - begun
        return Run(workload.theta(z), taken, read * float(mcmc.get_extra_fields()[steps].sum()))

    run(0)
    return run


def nuts(workload: Any, draws: int) -> Callable[[int], Run]:
    """NUTS in whitened coordinates, one chain, its step given."""
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS

    def model(rows):
        flat = dist.ImproperUniform(dist.constraints.real_vector, (), event_shape=(workload.d,))
        numpyro.factor("density", workload.log_density(numpyro.sample("z", flat), rows))

    kernel = NUTS(model, step_size=leapfrog(workload.d)[0], adapt_step_size=False, adapt_mass_matrix=False)
    mcmc = MCMC(kernel, num_warmup=5, num_samples=draws, progress_bar=False, jit_model_args=True)
    start = jax.random.normal(jax.random.key(7), (workload.d,))
    return _timed(mcmc, (workload.on_device,), start, "num_steps", workload, workload.n)


def ecs(workload: Any, draws: int, batch: int = 100, warmup: int = 300) -> Callable[[int], Run]:
    """HMCECS for logistic regressions, a Taylor proxy around the mode, 10 blocks; it adapts, which is not counted."""
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import HMCECS, MCMC, NUTS

    mode, scale = jnp.asarray(workload.mode), jnp.asarray(workload.scale)

    def model(x, y):
        flat = dist.ImproperUniform(dist.constraints.real_vector, (), event_shape=(workload.d,))
        beta = mode + scale @ numpyro.sample("z", flat)
        numpyro.factor("prior", workload.log_prior(beta))
        with numpyro.plate("rows", len(y), subsample_size=batch):
            rows, answers = numpyro.subsample(x, event_dim=1), numpyro.subsample(y, event_dim=0)
            numpyro.sample("y", dist.Bernoulli(logits=rows @ beta), obs=answers)

    proxy = HMCECS.taylor_proxy({"z": jnp.zeros(workload.d)})
    inner = NUTS(model, step_size=leapfrog(workload.d)[0], adapt_mass_matrix=False)
    mcmc = MCMC(HMCECS(inner, num_blocks=10, proxy=proxy), num_warmup=warmup, num_samples=draws, progress_bar=False)
    given = workload.on_device["x"], workload.on_device["y"]
    # What the proxy needs of the batch is kept from step to step: a leapfrog step reads the batch once.
    return _timed(mcmc, given, jnp.zeros(workload.d), "hmc_state.num_steps", workload, batch)
