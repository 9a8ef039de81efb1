"""Where the density is zero a move is rejected, and nothing is undefined; what is not a number is counted.

Rates of exponential data: the log-likelihood of a rate below 0 is not a number, but the prior is zero there.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.data import Uniform
from mintmc.energy import Tempered
from mintmc.ladder.reference import Reference
from mintmc.proposals import Tuning
from truth import fresh_batches, mostly_slow, quickly_compiled

X = np.random.default_rng(0).exponential(size=40).astype(np.float32)
ROWS, KEYS = jnp.asarray(X), 64


def exponential(rate, x):
    return jnp.log(rate) - rate * x


def positive(rate):
    return jnp.where(rate > 0, -rate, -jnp.inf)


def bounded(rate):
    """A log Jacobian that is the first to know."""
    return jnp.where(rate > 0, 0.0, -jnp.inf)


RATES = mintmc.Posterior(exponential, X, positive)
HOT = {"temperature": 20.0}
SAMPLERS = {
    "full": mintmc.MetropolisHastings(),
    "full Langevin": mintmc.MetropolisHastings(mintmc.Langevin()),
    "full Hamiltonian": mintmc.MetropolisHastings(mintmc.Hamiltonian(steps=3)),
    "common": mintmc.MINT(10, **HOT),
    "common Langevin": mintmc.MINT(10, **HOT, proposal=mintmc.Langevin()),
    "recycled": mintmc.MINT(10, **HOT, estimator="recycled"),
    "Barker": mintmc.BarkerMH(10, **HOT),
    "TunaMH": mintmc.TunaMH(np.ones(40), **HOT),
    "parallel tempering": mintmc.ParallelTempering(mintmc.Ladder([1, 20], [None, 10]), proposal=mintmc.Langevin()),
}


def one_step(posterior, sampler, start=3.0):
    """States and infos after one long step from ``start``, for many keys."""
    target, step = posterior.flat(start), jnp.asarray(3.0)
    if isinstance(sampler, mintmc.ParallelTempering):
        reference = Reference.of(target, sampler.ladder, None, start, None)
        target, kernel = reference.target, sampler.kernel(reference)
        step = jnp.full(len(sampler.ladder), 3.0)
    else:
        kernel = sampler.kernel(target)
    theta = jnp.full(1, start)
    batch = fresh_batches(jax.random.key(0), kernel, Uniform(target.n), target.posterior.rows)

    # From 3, a sixth of the steps of a walk lead below 0, and nearly all along the gradient.
    def step_of(key):
        state, info = kernel.step(key, kernel.init(theta, batch), batch, Tuning(step, None))
        return kernel.position(state), info

    return quickly_compiled(jax.vmap(step_of))(jax.random.split(jax.random.key(0), KEYS))


@pytest.mark.parametrize("name", mostly_slow(SAMPLERS, "parallel tempering"))
def test_a_prior_of_zero_rejects_before_the_likelihood_is_asked(name):
    theta, info = one_step(RATES, SAMPLERS[name])
    assert info["is_defined"].all()
    assert np.isfinite(info["log_ratio_noise"]).all()
    assert (theta > 0).all()
    assert (info["acceptance_rate"] == 0).mean() > 0.05


def test_so_does_a_jacobian():
    theta, info = one_step(mintmc.Posterior(exponential, X, log_jacobian=bounded), SAMPLERS["common Langevin"])
    assert info["is_defined"].all()
    assert (theta > 0).all()


@pytest.mark.parametrize("name", ["full Langevin", "common"])
def test_what_is_not_a_number_where_the_prior_allows_it_is_counted(name):
    theta, info = one_step(mintmc.Posterior(exponential, X), SAMPLERS[name])
    assert (~info["is_defined"]).mean() > 0.05
    assert (theta > 0).all()


def uniform(upper, x):
    """Uniform on [0, upper]: the support depends on the parameter."""
    return jnp.where(x < upper, -jnp.log(upper), -jnp.inf)


@pytest.mark.parametrize("name", ["full", "full Langevin", "common", "recycled"])
def test_a_likelihood_of_zero_rejects(name):
    posterior = mintmc.Posterior(uniform, X, lambda upper: jnp.where(upper > 0, -0.1 * upper, -jnp.inf))
    theta, info = one_step(posterior, SAMPLERS[name], start=float(X.max()) + 0.5)
    assert info["is_defined"].all()
    assert np.isfinite(info["log_ratio_noise"]).all()
    if name.startswith("full"):
        assert (theta > X.max()).all()
        assert (info["acceptance_rate"] == 0).mean() > 0.3


def test_a_row_that_is_impossible_at_both_ends_rejects():
    model = mintmc.Posterior(uniform, X).model(lambda theta: theta[0], 1)
    target = Tempered(model, 2.0)
    change = target.difference(jnp.array([0.1]), jnp.array([0.2]), ROWS)
    assert change.value == -np.inf
    assert change.noise == 0
    here, there = (model.density(jnp.array([at]), ROWS) for at in (0.1, 0.2))
    assert target.log_ratio(here, there) == -np.inf
    # From an impossible state to a possible one every move is good.
    assert target.log_ratio(here, model.density(jnp.array([20.0]), ROWS)) == np.inf


@pytest.mark.parametrize("n", [10, 20_000])
def test_an_energy_of_likelihood_zero_is_infinite(n):
    """The two-sum of infinities made it NaN."""
    posterior = mintmc.Posterior(uniform, np.linspace(0, 1, n, dtype=np.float32), lambda upper: -upper)
    assert posterior.energy(0.5) == np.inf
    np.testing.assert_allclose(posterior.energy(2.0), n * np.log(2.0) + 2.0, rtol=1e-6)
    assert np.isnan(mintmc.Posterior(exponential, X).energy(-1.0))
    assert RATES.energy(-1.0) == np.inf


def test_parallel_tempering_counts_undefined_moves_of_all_rungs():
    """Not a number beyond 30: rung 0 never goes there, the rung at T = 400 does all the time."""
    density = mintmc.Posterior.from_density(lambda x: jnp.where(jnp.abs(x) > 30, jnp.nan, -0.5 * x**2))
    sampler = mintmc.ParallelTempering(mintmc.Ladder([1, 20, 400]))
    tree = mintmc.sample(density, sampler, init=0.0, draws=500, warmup=200, chains=2, thin=2, progress=False)
    counts = tree.ladder.undefined_moves
    assert (counts[0] == 0).all()
    assert (counts[-1] > 50).all()
    assert tree.attrs["undefined_moves"] == counts.sum()
