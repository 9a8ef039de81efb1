"""BlackJAX on all data (NUTS, HMC, MALA) and on batches (SGLD, SGHMC), and its tempered SMC."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from harness.peers import Run, leapfrog
from harness.timing import core_seconds


def on_all_data(kernel_of: Callable, gradients_of: Callable, workload: Any, draws: int) -> Callable[[int], Run]:
    """One chain in whitened coordinates, compiled; XLA splits its passes among cores as it likes."""

    def chain(key, z, rows):
        kernel = kernel_of(lambda z: workload.log_density(z, rows), workload.d)

        def one(state, key):
            state, info = kernel.step(key, state)
            return state, (state.position, gradients_of(info))

        return jax.lax.scan(one, kernel.init(z), jax.random.split(key, draws))[1]

    rows, start = workload.on_device, jax.random.normal(jax.random.key(7), (workload.d,))
    compiled = jax.jit(chain).lower(jax.random.key(0), start, rows).compile()

    def run(seed: int) -> Run:
        begun = core_seconds()
        z, gradients = jax.block_until_ready(compiled(jax.random.key(seed), start, rows))
        taken = core_seconds() - begun
        return Run(workload.theta(z)[None], taken, float(gradients.sum()) * workload.n)

    return run


def _nuts(log_density, d):
    import blackjax

    return blackjax.nuts(log_density, leapfrog(d)[0], jnp.ones(d))


def _hmc(log_density, d):
    import blackjax

    step, steps = leapfrog(d)
    return blackjax.hmc(log_density, step, jnp.ones(d), steps)


def _mala(log_density, d):
    import blackjax

    # Proposals of variance 2 * step: 1.65^2 / d^(1/3) is best for many independent normals.
    return blackjax.mala(log_density, 1.65**2 / d ** (1 / 3) / 2)


def nuts(workload: Any, draws: int) -> Callable[[int], Run]:
    """NUTS, the mass matrix that of the Laplace approximation."""
    return on_all_data(_nuts, lambda info: info.num_integration_steps, workload, draws)


def hmc(workload: Any, draws: int) -> Callable[[int], Run]:
    """HMC with a quarter of a period."""
    return on_all_data(_hmc, lambda info: jnp.asarray(leapfrog(workload.d)[1]), workload, draws)


def mala(workload: Any, draws: int) -> Callable[[int], Run]:
    """The Metropolis-adjusted Langevin algorithm."""
    return on_all_data(_mala, lambda info: jnp.asarray(1), workload, draws)


def stochastic(method: str, workload: Any, batch: int, step_size: float, steps: int, by: str) -> Callable[[int], float]:
    """Core-seconds of so many steps of SGLD or SGHMC, from the mode.

    ``by`` is how a batch is read: as a "slice" of rows that were shuffled before, which is what ours does and the
    cheapest there is, or row by row at random numbers ("index"), as tutorials do.
    """
    import blackjax

    n = workload.n
    estimator = blackjax.sgmcmc.gradients.grad_estimator(workload.log_prior, workload.log_likelihood, n)
    # BlackJAX's SGHMC makes ten steps on a batch before it asks for another.
    each = 1 if method == "sgld" else 10
    kernel = blackjax.sgld(estimator) if method == "sgld" else blackjax.sghmc(estimator, num_integration_steps=each)

    def chain(key, theta, rows):
        def one(theta, key):
            key_batch, key_step = jax.random.split(key)
            if by == "slice":
                first = jax.random.randint(key_batch, (), 0, n - batch)
                read = partial(jax.lax.dynamic_slice_in_dim, start_index=first, slice_size=batch)
            else:
                read = lambda leaf: leaf[jax.random.randint(key_batch, (batch,), 0, n)]  # noqa: E731
            theta = kernel.step(key_step, theta, jax.tree.map(read, rows), step_size)
            return theta, theta

        return jax.lax.scan(one, theta, jax.random.split(key, steps // each))[1]

    rows, start = workload.on_device, jnp.asarray(workload.mode)
    compiled = jax.jit(chain).lower(jax.random.key(0), start, rows).compile()

    def run(seed: int) -> float:
        begun = core_seconds()
        draws = jax.block_until_ready(compiled(jax.random.key(seed), start, rows))
        taken = core_seconds() - begun
        if not np.isfinite(np.asarray(draws[-1])).all():
            raise FloatingPointError(f"{method} of BlackJAX left all bounds: its step is too long")
        return taken

    return run


def tempered_smc(log_prior, log_likelihood, draw_prior, rows, particles: int, step_of, moves: int = 5):
    """Adaptive tempered SMC: particles from the prior, HMC moves, resampled until the temperature is 1.

    ``log_likelihood(theta, rows)`` is of all rows; ``step_of(temperature)`` is the length of a leapfrog step.
    Returns ``run(seed) -> (particles, their weights, core-seconds, gradients)``.
    """
    import blackjax
    import blackjax.smc.resampling as resampling

    hmc_steps = 5

    def stage(key, state, step, rows):
        parameters = {"step_size": step[None], "inverse_mass_matrix": jnp.ones((1, state.particles.shape[-1]))}
        smc = blackjax.adaptive_tempered_smc(
            log_prior,
            lambda theta: log_likelihood(theta, rows),
            blackjax.hmc.build_kernel(),
            blackjax.hmc.init,
            parameters | {"num_integration_steps": jnp.array([hmc_steps])},
            resampling.systematic,
            0.5,
            num_mcmc_steps=moves,
        )
        return smc.step(key, state)[0]

    begin, stage = blackjax.adaptive_tempered_smc.init, jax.jit(stage)

    def run(seed: int):
        key_start, key = jax.random.split(jax.random.key(seed))
        begun = core_seconds()
        state, stages = begin(jax.vmap(draw_prior)(jax.random.split(key_start, particles))), 0
        while float(state.tempering_param) < 1 and stages < 200:
            key, key_stage = jax.random.split(key)
            step = jnp.asarray(step_of(max(float(state.tempering_param), 1e-6)), jnp.float32)
            state, stages = jax.block_until_ready(stage(key_stage, state, step, rows)), stages + 1
        taken, gradients = core_seconds() - begun, stages * particles * moves * hmc_steps
        return np.asarray(state.particles), np.asarray(state.weights), taken, gradients

    run(0)  # compiles
    return run
