"""NumPyro: NUTS on all data, and HMCECS, Hamiltonian Monte Carlo on sub-samples with a Taylor proxy."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from harness.peers import Run, leapfrog
from harness.timing import core_seconds


def _timed(mcmc: Any, site: str, arguments: tuple, **extra: Any) -> Callable[[int], Any]:
    """The second run of the same program is not compiled any more."""

    def run(seed: int):
        begun = core_seconds()
        mcmc.run(jax.random.key(seed), *arguments, extra_fields=("num_steps",) if not extra else (), **extra)
        draws = np.asarray(jax.block_until_ready(mcmc.get_samples(group_by_chain=True)[site]))
        return draws, core_seconds() - begun

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
    mcmc = MCMC(kernel, num_warmup=0, num_samples=draws, progress_bar=False, jit_model_args=True)
    start = {"z": jax.random.normal(jax.random.key(7), (workload.d,))}
    timed = _timed(mcmc, "z", (workload.on_device,))

    def run(seed: int) -> Run:
        mcmc.init_params = start
        z, taken = timed(seed)
        return Run(workload.theta(z), taken, float(mcmc.get_extra_fields()["num_steps"].sum()) * workload.n)

    run(0)
    return run


def ecs(workload: Any, draws: int, batch: int = 100, warmup: int = 300) -> Callable[[int], Run]:
    """HMCECS for logistic regressions, a Taylor proxy around the mode, 10 blocks; it adapts, which is not counted."""
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import HMCECS, MCMC, NUTS

    scale = jnp.asarray(workload.scale)
    mode = jnp.asarray(workload.mode)

    def model(x, y):
        # A Taylor proxy wants parameters as they are: whitened, and with the prior as a factor of its own.
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
    mcmc.warmup(jax.random.key(0), *given, init_params={"z": jnp.zeros(workload.d)})
    warmed = mcmc.post_warmup_state
    fields = ("hmc_state.num_steps",)
    mcmc.run(warmed.rng_key, *given, extra_fields=fields)

    def run(seed: int) -> Run:
        mcmc.post_warmup_state = warmed
        begun = core_seconds()
        mcmc.run(jax.random.key(seed), *given, extra_fields=fields)
        z = np.asarray(jax.block_until_ready(mcmc.get_samples(group_by_chain=True)["z"]))
        taken = core_seconds() - begun
        # Every leapfrog step reads the batch for itself and for the proxy.
        gradients = float(mcmc.get_extra_fields()["hmc_state.num_steps"].sum())
        return Run(workload.theta(z), taken, 2 * batch * gradients)

    return run
