"""Where chains start, and what a run says before it begins. Nothing is sampled here."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.run.keys import key_of
from mintmc.run.phase import seconds_left
from mintmc.run.sample import _task
from truth import LIMIT, gaussian_data, gaussian_log_likelihood

N, CHAINS = 400, 200
POSTERIOR = mintmc.Posterior(gaussian_log_likelihood, gaussian_data(N))


def starts(posterior=POSTERIOR, sampler=None, init=0.5, chains=CHAINS, seed=0):
    task = _task(posterior, sampler or mintmc.MetropolisHastings(), init, chains, seed, 10, 10, 1)
    return np.array([float(theta[0]) for theta in task.thetas])


@pytest.mark.parametrize(
    ("sampler", "scale"),
    [
        (mintmc.MetropolisHastings(temperature=4.0), np.sqrt(4 / N)),
        (mintmc.EquiEnergy(mintmc.Ladder([1, 25])), np.sqrt(25 / N)),
    ],
)
def test_chains_start_around_one_point(sampler, scale):
    at = starts(sampler=sampler)
    assert at[0] == 0.5
    others = (at[1:] - 0.5) / scale
    assert abs(others.mean()) < LIMIT / np.sqrt(CHAINS)
    assert abs(others.var() - 1) < LIMIT * np.sqrt(2 / CHAINS)
    np.testing.assert_array_equal(at[:5], starts(sampler=sampler, chains=5))
    assert (at[1:5] != starts(sampler=sampler, chains=5, seed=1)[1:]).all()


def test_a_start_is_not_where_the_density_is_zero():
    positive = mintmc.Posterior.from_density(lambda x: jnp.where((x > 0) & (x < 0.01), 0.0, -jnp.inf))
    at = starts(positive, init=0.005, chains=20)
    assert ((at > 0) & (at < 0.01)).all()
    assert len(np.unique(at)) == 20
    # Where there is no room at all they stay.
    one_point = mintmc.Posterior.from_density(lambda x: jnp.where(x == 0.5, 0.0, -jnp.inf))
    assert (starts(one_point, chains=3) == 0.5).all()


def test_starts_that_were_given_are_kept():
    given = np.linspace(0, 1, 4, dtype=np.float32)
    np.testing.assert_array_equal(starts(init=mintmc.PerChain(given), chains=4), given)
    assert (starts(init=lambda key: jnp.asarray(0.5)) == 0.5).all()
    # A proposal of the user's own may live on a lattice, which a shift would leave.
    lattice = mintmc.MetropolisHastings(mintmc.Custom(lambda key, theta: theta + 1.0))
    assert (starts(sampler=lattice) == 0.5).all()


def test_a_jacobian_must_be_finite_at_init():
    posterior = mintmc.Posterior(gaussian_log_likelihood, gaussian_data(N), log_jacobian=jnp.log)
    with pytest.raises(ValueError, match=r"log_jacobian must be finite at init, got nan at -1\.0"):
        starts(posterior, init=-1.0)
    with pytest.raises(TypeError, match="log_jacobian must be a function, got 3"):
        mintmc.Posterior(gaussian_log_likelihood, gaussian_data(N), log_jacobian=3)


OUTLINES = {
    "EquiEnergy: 3 rungs from T = 1 to 25, 4 chains, 3 x (1,000 warm-up + 2,000 feed) + 500 draws each; compiling": (
        mintmc.EquiEnergy(mintmc.Ladder([1, 5, 25]), feed=2000),
        {},
    ),
    "ParallelTempering: 2 rungs from T = 1 to 25 (1 on all data), 4 chains, 1,000 warm-up + 500 draws of 3 steps each; "
    "compiling": (mintmc.ParallelTempering(mintmc.Ladder([1, 25], [None, 50])), {"thin": 3}),
    "MINT: T = 40, 1 chain, 1,000 warm-up + 500 draws each; compiling": (
        mintmc.MINT(100, temperature=40.0),
        {"chains": 1},
    ),
}


@pytest.mark.parametrize("line", OUTLINES)
def test_a_run_says_what_it_will_do(line):
    sampler, changes = OUTLINES[line]
    settings = {"chains": 4, "thin": 1} | changes
    task = _task(POSTERIOR, sampler, 0.5, settings["chains"], 0, 500, 1000, settings["thin"])
    assert sampler.plan(task).outline == line


def test_time_that_is_left_counts_what_things_cost():
    # A tenth of the cost in a minute: nine are left, and two of the next phase.
    assert seconds_left(60.0, spent=10.0, cost=100.0, later=20.0) == pytest.approx(660.0)
    assert seconds_left(60.0, spent=0.0, cost=100.0, later=20.0) is None


def test_streams_do_not_depend_on_the_generator_that_jax_takes_by_default():
    expected = key_of(3, 1, 2)
    with jax.default_prng_impl("rbg"):
        found = key_of(3, 1, 2)
    np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(expected))
