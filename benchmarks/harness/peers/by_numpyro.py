"""NumPyro: NUTS on all data, and HMCECS, Hamiltonian Monte Carlo on sub-samples with a Taylor proxy."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from harness.peers import Run, leapfrog
from harness.timing import core_seconds


def _timed(kernel: Any, given: tuple, start: Any, warmup: int, draws: int, steps_of: Callable) -> Callable[[int], Any]:
    """Warmed up and compiled; ``run(seed) -> (draws of z, core-seconds, leapfrog steps)`` goes on from the last state.

    Without ``MCMC``, which compiles anew whenever it runs.
    """

    def chain(length, state, given):
        def one(state, _):
            state = kernel.sample(state, given, {})
            return state, (state.z["z"], steps_of(state))

        return jax.lax.scan(one, state, length=length)

    state = kernel.init(jax.random.key(0), warmup, {"z": start}, given, {})
    if warmup:
        state, _ = jax.jit(partial(chain, warmup))(state, given)
    compiled = jax.jit(partial(chain, draws)).lower(state, given).compile()
    last = [state]

    def run(_: int):
        begun = core_seconds()
        last[0], (z, steps) = jax.block_until_ready(compiled(last[0], given))
        return np.asarray(z), core_seconds() - begun, float(steps.sum())

    return run


def nuts(workload: Any, draws: int) -> Callable[[int], Run]:
    """NUTS in whitened coordinates, one chain, its step given."""
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import NUTS

    def model(rows):
        flat = dist.ImproperUniform(dist.constraints.real_vector, (), event_shape=(workload.d,))
        numpyro.factor("density", workload.log_density(numpyro.sample("z", flat), rows))

    kernel = NUTS(model, step_size=leapfrog(workload.d)[0], adapt_step_size=False, adapt_mass_matrix=False)
    start = jax.random.normal(jax.random.key(7), (workload.d,))
    timed = _timed(kernel, (workload.on_device,), start, 0, draws, lambda state: state.num_steps)

    def run(seed: int) -> Run:
        z, taken, steps = timed(seed)
        return Run(workload.theta(z)[None], taken, steps * workload.n)

    return run


def ecs(workload: Any, draws: int, batch: int = 100, warmup: int = 300) -> Callable[[int], Run]:
    """HMCECS for logistic regressions, a Taylor proxy around the mode, 10 blocks; it adapts, which is not counted."""
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import HMCECS, NUTS

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
    kernel = HMCECS(inner, num_blocks=10, proxy=proxy)
    given = workload.on_device["x"], workload.on_device["y"]
    timed = _timed(kernel, given, jnp.zeros(workload.d), warmup, draws, lambda state: state.hmc_state.num_steps)

    def run(seed: int) -> Run:
        z, taken, steps = timed(seed)
        # What the proxy needs of the batch is kept from step to step: a leapfrog step reads the batch once.
        return Run(workload.theta(z)[None], taken, steps * batch)

    return run
