"""Controlled tests at T = 1 leave the posterior as it is: draw from it, apply the kernel, compare.

Counts with exposures, l_i = y_i theta - x_i exp(theta): what an expansion leaves is x_i times one function of theta, so
that the mean over a batch of uniform exposures is normal, and a centre far from the mode leaves noise in plenty. The
posterior is known on a grid.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.control import Controlled, Expansion, expand
from mintmc.data import Supplied, Uniform, open_batches
from mintmc.proposals import Tuning
from truth import LIMIT

N, M, STATES, STEPS = 400, 50, 40_000, 5
RNG = np.random.default_rng(0)
EXPOSURE = RNG.uniform(0.0, 2.0, N).astype(np.float32)
COUNTS = RNG.poisson(EXPOSURE).astype(np.float32)
POSTERIOR = mintmc.Posterior(
    lambda theta, row: row[1] * theta[0] - row[0] * jnp.exp(theta[0]),
    (EXPOSURE, COUNTS),
    lambda theta: -0.5 * jnp.sum(theta**2),
)
GRID = np.linspace(-0.5, 0.5, 20_001)
LOG_DENSITY = COUNTS.sum(dtype=float) * GRID - EXPOSURE.sum(dtype=float) * np.exp(GRID) - GRID**2 / 2
DENSITY = np.exp(LOG_DENSITY - LOG_DENSITY.max())
MODE = GRID[DENSITY.argmax()]
SHIFT = 0.8
"""Of the centre, in which the log-ratio noise is about 1: 16 standard deviations."""


def apply_to_rows(kernel, batching, rows, thetas, tuning: Tuning, steps: int, seed: int):
    """Apply a kernel to independent states, each with its own keys and batches; returns the states."""

    def one(key, theta):
        def batch(key):
            tickets = {
                role: batching.ticket(jax.random.fold_in(key, i)) for i, role in enumerate(kernel.batches, start=1)
            }
            return open_batches(kernel.batches, batching, rows, tickets)

        def step(state, key):
            return kernel.step(jax.random.fold_in(key, 0), state, batch(key), tuning)[0], None

        keys = jax.random.split(key, steps + 1)
        return kernel.position(jax.lax.scan(step, kernel.init(theta, batch(keys[0])), keys[1:])[0])

    keys = jax.random.split(jax.random.key(seed), len(thetas))
    return np.asarray(
        jax.jit(lambda keys, thetas: jax.lax.map(lambda a: one(*a), (keys, thetas), batch_size=512))(
            keys, jnp.asarray(thetas)
        )
    )


def drawn():
    """States from the posterior, evenly spaced in probability, so that only what the kernel adds is judged."""
    cumulated = np.cumsum(DENSITY) / DENSITY.sum()
    places = (np.random.default_rng(5).permutation(STATES) + 0.5) / STATES
    return np.interp(places, cumulated, GRID)[:, None].astype(np.float32)


def expansion_at(centre, hessian_at=None):
    model = POSTERIOR.model(lambda theta: theta, 1)
    made = expand(model, jnp.asarray([centre], jnp.float32), POSTERIOR.rows)
    if hessian_at is None:
        return made
    return made._replace(hessian=expand(model, jnp.asarray([hessian_at], jnp.float32), POSTERIOR.rows).hessian)


@dataclass(frozen=True)
class FollowsTheChain(Controlled):
    """Broken: the centre depends on where the chain is, as one that is moved after warm-up does."""

    elsewhere: Expansion | None = None

    def difference(self, here, there, batch):
        to_the_right = here[0] > MODE
        both = (self.expansion, self.elsewhere)
        chosen = jax.tree.map(lambda one, other: jnp.where(to_the_right, one, other), *both)
        target = Controlled(self.model, self.temperature, self.temper, expansion=chosen)
        return target.difference(here, there, batch)


def worst_distance(control, proposal=None, wrap=lambda settings: settings, **settings):
    """Largest distance of mean, variance and third moment from the posterior's, in standard errors."""
    proposal = mintmc.RandomWalk() if proposal is None else proposal
    sampler = mintmc.MINT(M, temperature=1.0, control=mintmc.Taylor(), proposal=proposal, **settings)
    kernel = wrap(sampler.kernel(POSTERIOR.flat(np.zeros(1, np.float32))))
    states = drawn()
    tuning = Tuning(jnp.asarray(0.08, jnp.float32), None)
    rows = Supplied(POSTERIOR.rows, {"control": control})
    ends = apply_to_rows(kernel, Uniform(N), rows, states, tuning, STEPS, seed=3)[:, 0].astype(float)
    mean = (GRID * DENSITY).sum() / DENSITY.sum()
    deviation = np.sqrt(((GRID - mean) ** 2 * DENSITY).sum() / DENSITY.sum())
    z, exact = (ends - mean) / deviation, (GRID - mean) / deviation
    distances = []
    for power in (1, 2, 3):
        wanted = (exact**power * DENSITY).sum() / DENSITY.sum()
        error = np.sqrt((exact ** (2 * power) * DENSITY).sum() / DENSITY.sum() - wanted**2)
        distances.append(abs((z**power).mean() - wanted) / error * np.sqrt(STATES))
    return max(distances)


@pytest.mark.parametrize("name", ["walk", "walk at the mode", "langevin", "hamiltonian"])
def test_the_posterior_is_invariant(name):
    proposals = {"langevin": mintmc.Langevin(), "hamiltonian": mintmc.Hamiltonian(steps=2)}
    centre = MODE if name == "walk at the mode" else MODE + SHIFT
    assert worst_distance(expansion_at(centre), proposals.get(name)) < LIMIT


def test_the_noise_is_worth_a_test():
    """The twins below would pass if batches were quiet."""
    control = expansion_at(MODE + SHIFT)
    target = Controlled(POSTERIOR.model(lambda t: t, 1), 1.0, expansion=control)
    here, there = jnp.asarray([MODE], jnp.float32), jnp.asarray([MODE + 0.05], jnp.float32)
    each = np.asarray(target.differences(here, there, POSTERIOR.rows), float)
    assert 0.3 < N**2 * each.var(ddof=1) / M * (1 - M / N) < 4
    # Known sum and residuals make up the exact log ratio.
    exact = np.interp([MODE, MODE + 0.05], GRID, LOG_DENSITY)
    assert float(target.known(here, there)) + each.sum() == pytest.approx(exact[1] - exact[0], abs=2e-3)


def with_target(make):
    """The kernel with another target in its settings."""
    return lambda kernel: replace(kernel, target=make(kernel.target))


def test_a_hessian_of_another_centre_is_caught():
    assert worst_distance(expansion_at(MODE + SHIFT, hessian_at=MODE)) > LIMIT


def test_a_forgotten_residual_variance_is_caught():
    assert worst_distance(expansion_at(MODE + SHIFT), penalty=False) > LIMIT


def test_a_centre_that_moves_with_the_chain_is_caught():
    def make(target):
        return FollowsTheChain(target.model, target.temperature, elsewhere=expansion_at(MODE))

    assert worst_distance(expansion_at(MODE + SHIFT), wrap=with_target(make)) > LIMIT
