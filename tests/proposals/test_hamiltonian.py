"""Random path lengths: their law, what they leave of correlations, that they are counted, and that they are exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.kernels.metropolis import State
from mintmc.proposals import Point, Tuning, hamiltonian
from truth import LIMIT, distance, distance_of_means

SHARES = jnp.linspace(0, 1, 1001)[:-1]


def numbers(steps, step_size, path):
    """Leapfrog steps of trajectories, over the whole of their law."""
    proposal, tuning = mintmc.Hamiltonian(steps=steps), Tuning(jnp.asarray(step_size), None, path=path)
    return jax.vmap(lambda share: proposal.visited(hamiltonian.Randomness(jnp.zeros(1), jnp.ones(()), share), tuning))(
        SHARES
    )


@pytest.mark.parametrize(
    ("steps", "step_size", "path", "least", "most"),
    [
        (10, 0.5, 1.0, 2, 4),  # 0.3 pi / 0.5 = 1.9, 0.7 pi / 0.5 = 4.4
        (100, 0.5, 10.0, 19, 44),
        (10, 0.5, 10.0, 4, 10),  # more are not allowed: from 3/7 of them on
        (10, 0.5, None, 4, 10),
        (10, 0.5, np.inf, 4, 10),
        (10, 5.0, 1.0, 1, 1),
        (1, 0.5, 10.0, 1, 1),
    ],
)
def test_trajectories_have_the_lengths_that_they_should(steps, step_size, path, least, most):
    path = None if path is None else jnp.asarray(path)
    found = np.asarray(numbers(steps, step_size, path)) * np.ones(len(SHARES), int)
    assert (found.min(), found.max()) == (least, most)
    if most > 40:
        # Uniform: the mean is half-way.
        assert found.mean() == pytest.approx((least + most) / 2, rel=0.02)


def test_such_lengths_leave_little_correlation_along_any_direction():
    length = np.linspace(hamiltonian._SHORTEST, hamiltonian._LONGEST, 100_001)
    means = np.array([np.cos(length * faster).mean() for faster in np.linspace(1, 30, 300)])
    assert means.max() < 0.28
    assert abs(means[0]) < 0.01
    assert np.mean(np.cos(length) ** 2) < 0.13
    # A fixed length, the broken twin: some direction comes back to where it was.
    fixed = np.array([np.cos(np.pi / 2 * faster) for faster in np.linspace(1, 30, 300)])
    assert fixed.max() > 0.99


def target():
    x = np.random.default_rng(0).normal(size=(50, 2))
    return mintmc.Posterior(lambda mean, row: -0.5 * jnp.sum((row - mean) ** 2), x).flat(np.zeros(2))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.99])
def test_a_trajectory_reads_as_many_rows_as_are_counted(share):
    flat, proposal = target(), mintmc.Hamiltonian(steps=9)
    kernel = mintmc.MetropolisHastings(proposal).kernel(flat)
    tuning, visited = Tuning(jnp.asarray(0.01), None), []
    batch = {"all": flat.posterior.rows}
    numbers = kernel.randomness(jax.random.key(1))
    numbers = numbers._replace(proposal=numbers.proposal._replace(share=jnp.asarray(share)))

    def visit(theta):
        jax.debug.callback(lambda _: visited.append(1), theta)
        return Point(theta, -theta)

    kernel.proposal.move(numbers.proposal, Point(jnp.zeros(2), jnp.zeros(2)), visit, tuning)
    jax.effects_barrier()
    _, info = kernel.advance(numbers, State(kernel.visit(jnp.zeros(2), batch), ()), batch, tuning)
    assert kernel.touched is None
    assert int(mintmc.count.total(info["data_touched"])) == 50 * len(visited)
    assert 4 <= len(visited) <= 9


def run(moves, keys=4000, steps=40):
    """States after so many moves of chains that start in a standard normal distribution, their target."""

    def chain(key):
        start, others = jax.random.split(key)

        def one(theta, key):
            return moves(key, theta), None

        return jax.lax.scan(one, jax.random.normal(start, (1,)), jax.random.split(others, steps))[0]

    return np.asarray(jax.vmap(chain)(jax.random.split(jax.random.key(0), keys)))[:, 0]


def moves_of(path_at):
    """Moves of a chain whose longest direction is said to be ``path_at(theta)``."""
    proposal = mintmc.Hamiltonian(steps=9)

    def visit(theta):
        return Point(theta, -theta)

    def moves(key, theta):
        for_move, for_test = jax.random.split(key)
        numbers = proposal.randomness(for_move, 1, theta.dtype)
        tuning = Tuning(jnp.asarray(0.9), None, path=path_at(theta))
        there, log_q = proposal.move(numbers, visit(theta), visit, tuning)
        ratio = 0.5 * (theta @ theta - there.theta @ there.theta) + log_q
        return jnp.where(jnp.log(jax.random.uniform(for_test)) < ratio, there.theta, theta)

    return moves


def test_random_lengths_are_exact_and_lengths_that_look_at_the_state_are_not():
    exact = run(moves_of(lambda theta: jnp.asarray(1.0)))
    assert distance_of_means(exact[:, None] ** 2, 1.0) < LIMIT
    # The broken twin: longer trajectories from outside, which lead inwards.
    looking = run(moves_of(lambda theta: jnp.where(jnp.abs(theta[0]) > 1, 1.5, 0.3)))
    assert distance_of_means(looking[:, None] ** 2, 1.0) > LIMIT


@pytest.mark.parametrize(
    ("settings", "dim", "several_modes", "chosen"),
    [
        ({}, 8, False, "dense"),
        ({}, 51, False, "diagonal"),
        ({}, 8, True, None),
        ({"step_size": 0.1}, 8, False, None),
        ({"preconditioner": "diagonal"}, 8, True, "diagonal"),
        ({"preconditioner": None}, 8, False, None),
    ],
)
def test_a_preconditioner_is_chosen_where_it_was_left_open(settings, dim, several_modes, chosen):
    assert mintmc.Hamiltonian(**settings).settled(dim, several_modes).preconditioner == chosen


def test_defaults_mix_on_a_correlated_target_of_many_scales():
    """Neither the step, nor the path, nor the preconditioner is told: 0.9 correlation, scales 1 to 1,000."""
    d = 8
    rng = np.random.default_rng(2)
    scales = np.logspace(0, 3, d)
    covariance = (0.9 + 0.1 * np.eye(d)) * np.outer(scales, scales)
    precision = jnp.asarray(np.linalg.inv(covariance), jnp.float32)
    density = mintmc.Posterior.from_density(lambda x: -0.5 * x @ precision @ x)
    sampler = mintmc.MetropolisHastings(mintmc.Hamiltonian())
    starts = mintmc.PerChain(rng.multivariate_normal(np.zeros(d), covariance, size=4))
    theta = mintmc.sample(density, sampler, init=starts, draws=2000, progress=False).posterior.theta.values
    scaled = theta / scales
    for k in range(d):
        assert distance(scaled[..., k] ** 2, 1.0) < LIMIT
        assert abs(np.corrcoef(scaled[:, :-1, k].ravel(), scaled[:, 1:, k].ravel())[0, 1]) < 0.6


@pytest.mark.parametrize("kind", [mintmc.ParallelTempering, mintmc.EquiEnergy])
def test_ladders_count_the_steps_that_their_rungs_make(kind):
    x = np.random.default_rng(0).normal(size=64)
    posterior = mintmc.Posterior(lambda mean, row: -0.5 * (row - mean) ** 2, x, lambda mean: -0.5 * mean**2)
    sampler = kind(mintmc.Ladder.geometric(4.0, 3), proposal=mintmc.Hamiltonian(0.01, steps=4))
    tree = mintmc.sample(posterior, sampler, init=0.0, draws=200, warmup=0, chains=1, progress=False)
    passes = tree.sample_stats.data_touched.values / 64
    np.testing.assert_array_equal(passes, np.round(passes))
    # Three rungs of two to four steps each; an equi-energy jump, made instead of one, reads nothing.
    assert passes.max() <= 12
    assert passes.min() >= (6 if kind is mintmc.ParallelTempering else 0)
    assert 7 < passes.mean() < 10
