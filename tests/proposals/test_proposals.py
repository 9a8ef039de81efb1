import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import mintmc
from mintmc.proposals import Point, Tuning, hamiltonian
from mintmc.proposals.tuning import initial_scale

COVARIANCE = np.array([[2.0, 0.6], [0.6, 0.5]])
DENSE = jnp.asarray(np.linalg.cholesky(COVARIANCE), jnp.float32)


def visit(theta):
    """A target that is not Gaussian."""
    return Point(theta, jax.grad(lambda t: -jnp.sum(t**4) / 4 + t[0] * t[1])(theta))


@pytest.mark.parametrize("scale", [None, jnp.array([2.0, 0.5]), DENSE])
def test_langevin_ratio_is_the_ratio_of_its_normal_densities(scale):
    proposal, step = mintmc.Langevin(), 0.4
    here = visit(jnp.array([0.3, -0.8]))
    there, ratio = proposal.move(jnp.array([1.1, -0.4]), here, visit, Tuning(jnp.asarray(step), scale))
    matrix = np.eye(2) if scale is None else np.diag(scale) if scale.ndim == 1 else np.asarray(scale)
    covariance = matrix @ matrix.T

    def log_q(a, b):
        mean = np.asarray(a.theta) + step**2 / 2 * covariance @ np.asarray(a.gradient)
        return stats.multivariate_normal(mean, step**2 * covariance).logpdf(np.asarray(b.theta))

    assert float(ratio) == pytest.approx(log_q(there, here) - log_q(here, there), abs=1e-4)


@pytest.mark.parametrize("scale", [None, jnp.array([2.0, 0.5]), DENSE])
def test_a_trajectory_can_be_run_backwards(scale):
    proposal = mintmc.Hamiltonian(steps=7)
    tuning, stretched = Tuning(jnp.asarray(0.1), scale), Tuning(jnp.asarray(0.08), scale)
    here, momentum = visit(jnp.array([0.3, -0.8])), jnp.array([1.1, -0.4])

    def end(momentum, point):
        return proposal.move(hamiltonian.Randomness(momentum, jnp.asarray(1.25)), point, visit, stretched)

    there, ratio = end(momentum, here)
    # The final momentum, reversed, is what brings the trajectory back.
    final = _final_momentum(here, momentum, tuning, proposal.steps)
    back, reverse = end(-final, there)
    np.testing.assert_allclose(back.theta, here.theta, atol=1e-5)
    assert float(ratio) == pytest.approx(-float(reverse), abs=1e-5)


def _final_momentum(point, momentum, tuning, steps):
    """An independent leapfrog."""
    S = np.eye(2) if tuning.scale is None else np.asarray(tuning.scale)
    S = np.diag(S) if S.ndim == 1 else S
    e, theta, r = float(tuning.step_size), point.theta, np.asarray(momentum)
    for _ in range(steps):
        r = r + e / 2 * S.T @ np.asarray(visit(theta).gradient)
        theta = theta + e * S @ r
        r = r + e / 2 * S.T @ np.asarray(visit(theta).gradient)
    return jnp.asarray(r)


def test_trajectories_do_not_come_back_to_where_they_began():
    """Steps of one length for all: 330 of 6,000 draws' worth, as adaptation finds half a period of this target."""
    normal = mintmc.Posterior.from_density(lambda x: -0.5 * jnp.sum(x**2))
    sampler = mintmc.MetropolisHastings(mintmc.Hamiltonian())
    theta = mintmc.sample(normal, sampler, init=np.zeros(2), draws=3000, warmup=300, progress=False).posterior.theta
    for chain in theta.values[..., 0]:
        assert abs(np.corrcoef(chain[:-1], chain[1:])[0, 1]) < 0.5


def test_a_random_walk_step_has_the_covariance_of_its_preconditioner():
    proposal = mintmc.RandomWalk()
    keys, tuning = jax.random.split(jax.random.key(0), 20_000), Tuning(jnp.asarray(0.5), DENSE)

    def moved(key):
        return proposal.move(proposal.randomness(key, 2, jnp.float32), Point(jnp.zeros(2)), Point, tuning)[0].theta

    moves = jax.vmap(moved)(keys)
    # Standard error of a variance over 20,000 draws is 1%.
    np.testing.assert_allclose(np.cov(moves.T), 0.25 * COVARIANCE, rtol=0.05)


def test_a_given_preconditioner_is_a_covariance():
    np.testing.assert_allclose(initial_scale(COVARIANCE, 2, jnp.float32), DENSE, rtol=1e-6)
    np.testing.assert_allclose(initial_scale(np.array([4.0, 9.0]), 2, jnp.float32), [2.0, 3.0])


def test_a_function_of_the_users_gets_a_key_that_every_function_of_jax_takes():
    """``jax.random.poisson`` refuses keys that are not JAX's own."""

    def whole_steps(key, x):
        for_sign, for_length = jax.random.split(key)
        return x + jax.random.rademacher(for_sign, (), x.dtype) * jax.random.poisson(for_length, 1.0)

    normal = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
    sampler = mintmc.MetropolisHastings(mintmc.Custom(whole_steps))
    start = mintmc.PerChain(np.zeros(2))
    draws = mintmc.sample(normal, sampler, init=start, draws=200, chains=2, progress=False).posterior["theta"]
    assert set(np.unique(draws)) >= {-1.0, 0.0, 1.0}
    assert (draws % 1 == 0).all()
