"""Every mistake is refused before anything compiles, by argument, with what is allowed and the value."""

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc

X = np.random.default_rng(0).normal(size=100)


def good(theta, x):
    return -0.5 * (x - theta["mean"]) ** 2


def make(log_likelihood=good, data=X, log_prior=None):
    return mintmc.Posterior(log_likelihood, data, log_prior)


def run(posterior=None, sampler=None, init=None, **settings):
    return mintmc.sample(
        posterior or make(),
        sampler or mintmc.MINT(batch_size=10, alpha=0.5),
        **({"init": {"mean": 0.0} if init is None else init, "draws": 5, "warmup": 5, "progress": False} | settings),
    )


def with_bad(value):
    data = X.copy()
    data[17] = value
    return data


def mint(**settings):
    return mintmc.MINT(**({"batch_size": 10} | settings))


MISTAKES = {
    # name: (what to call, error, what the message says)
    "nan data": (lambda: make(data=with_bad(np.nan)), ValueError, "data must be finite, got nan in row 17"),
    "inf data": (lambda: make(data=with_bad(np.inf)), ValueError, "data must be finite, got inf in row 17"),
    "too large for float32": (
        lambda: make(data=with_bad(1e300)),
        ValueError,
        r"data must fit float32, got 1e\+300 in row 17",
    ),
    "too large for int32": (
        lambda: make(data={"t": np.full(3, 2**40)}),
        ValueError,
        r"data\['t'\] must fit int32, got 1099511627776 in row 0 \(3 such values\)",
    ),
    "seed of 64 bits": (lambda: run(seed=2**40), ValueError, r"seed must be in \[0, 4294967295\], got 1099511627776"),
    "more steps than 32 bits": (
        lambda: run(draws=2**20, thin=2**12),
        ValueError,
        r"draws \* thin must be in \[1, 2147483647\], got 4294967296",
    ),
    "no rows": (
        lambda: make(data=np.zeros((0, 3))),
        ValueError,
        r"data must have at least one row, got shape \(0, 3\)",
    ),
    "no arrays": (lambda: make(data={}), ValueError, "data must hold at least one array, got {}"),
    "scalar data": (lambda: make(data=3.0), ValueError, "data must have a leading axis of observations"),
    "words": (
        lambda: make(data=np.array(["a", "b"])),
        TypeError,
        "data must be an array of numbers, got dtype <U1",
    ),
    "disagreeing rows": (
        lambda: make(data={"x": X, "y": X[:50]}),
        ValueError,
        r"data must have one leading axis.*data\['x'\] has 100, data\['y'\] has 50",
    ),
    "likelihood no function": (
        lambda: make(log_likelihood=3),
        TypeError,
        "log_likelihood must be a function, got 3",
    ),
    "prior no function": (lambda: make(log_prior=3), TypeError, "log_prior must be a function, got 3"),
    "density no function": (
        lambda: mintmc.Posterior.from_density(3),
        TypeError,
        "log_density must be a function, got 3",
    ),
    "batch of none": (
        lambda: mint(batch_size=0, alpha=0.5),
        ValueError,
        "batch_size must be at least 1, got 0",
    ),
    "batch not whole": (
        lambda: mint(batch_size=2.5, alpha=0.5),
        TypeError,
        "batch_size must be a whole number.*got 2.5",
    ),
    "batch of one": (
        lambda: mint(batch_size=1, alpha=0.5),
        ValueError,
        "batch_size must be at least 2 with penalty=True",
    ),
    "batch above n": (
        lambda: run(sampler=mint(batch_size=500, alpha=0.5)),
        ValueError,
        r"batch_size must be in \[1, n=100\], got 500",
    ),
    "alpha 0": (lambda: mint(alpha=0.0), ValueError, r"alpha must be in \(0, 1\), got 0"),
    "alpha 1": (lambda: mint(alpha=1.0), ValueError, r"alpha must be in \(0, 1\), got 1"),
    "alpha nan": (lambda: mint(alpha=np.nan), ValueError, r"alpha must be in \(0, 1\), got nan"),
    "alpha a word": (
        lambda: mint(alpha="high"),
        TypeError,
        r"alpha must be a number in \(0, 1\), got 'high'",
    ),
    "lambda above tau": (
        lambda: run(sampler=mint(lam=0.6)),
        ValueError,
        "lam must be below tau.* = 0.5, got 0.6",
    ),
    "too cold": (
        lambda: run(sampler=mint(temperature=5.0)),
        ValueError,
        r"temperature must be above n/batch_size = 10 .*got 5",
    ),
    "no temperature": (
        lambda: mint(),
        ValueError,
        "exactly one of alpha, lam and temperature must be given, got none",
    ),
    "two temperatures": (
        lambda: mint(alpha=0.5, lam=0.2),
        ValueError,
        "exactly one of alpha, lam and temperature must be given, got {'alpha': 0.5, 'lam': 0.2}",
    ),
    "unknown estimator": (
        lambda: mint(alpha=0.5, estimator="x"),
        ValueError,
        "estimator must be one of 'common'.*got 'x'",
    ),
    "unknown temper": (
        lambda: mint(alpha=0.5, temper="x"),
        ValueError,
        "temper must be one of 'posterior'.*got 'x'",
    ),
    "unknown batching": (
        lambda: mint(alpha=0.5, batching="x"),
        ValueError,
        "batching must be one of 'shuffled'.*got 'x'",
    ),
    "penalty a number": (
        lambda: mint(alpha=0.5, penalty=1),
        TypeError,
        "penalty must be True or False, got 1",
    ),
    "full temperature 0": (
        lambda: mintmc.MetropolisHastings(mintmc.RandomWalk(), 0.0),
        ValueError,
        r"temperature must be in \(0, inf\), got 0",
    ),
    "batches of a density": (
        lambda: run(mintmc.Posterior.from_density(lambda p: -(p["mean"] ** 2))),
        ValueError,
        "posterior must have data to take mini-batches of",
    ),
    "likelihood temper of a density": (
        lambda: run(
            mintmc.Posterior.from_density(lambda p: -(p["mean"] ** 2)),
            mintmc.MetropolisHastings(mintmc.RandomWalk(), 2.0, temper="likelihood"),
        ),
        ValueError,
        "temper must be 'posterior' for a density without data, got 'likelihood'",
    ),
    "likelihood a vector": (
        lambda: run(make(lambda p, x: jnp.array([x, p["mean"]]))),
        ValueError,
        r"log_likelihood must return a scalar, got shape \(2,\)",
    ),
    "likelihood whole": (
        lambda: run(make(lambda p, x: jnp.asarray(1))),
        TypeError,
        "log_likelihood must return a float, got dtype int32",
    ),
    "likelihood not finite": (
        lambda: run(make(lambda p, x: jnp.log(p["mean"] - 1) + x)),
        ValueError,
        "log_likelihood must be finite at init, got nan for row 0",
    ),
    "prior a vector": (
        lambda: run(make(log_prior=lambda p: jnp.zeros(3))),
        ValueError,
        r"log_prior must return a scalar, got shape \(3,\)",
    ),
    "start of probability zero": (
        lambda: run(make(log_prior=lambda p: jnp.where(p["mean"] > 1, 0.0, -jnp.inf))),
        ValueError,
        "log_prior must be finite at init, got -inf",
    ),
    "whole params": (
        lambda: run(init={"mean": 0}),
        TypeError,
        r"init\['mean'\] must be an array of floats, got dtype int",
    ),
    "nan params": (lambda: run(init={"mean": np.nan}), ValueError, r"init\['mean'\] must be finite, got nan"),
    "no params": (lambda: run(init={}), ValueError, "init must hold at least one array of floats, got {}"),
    "wrong chain axis": (
        lambda: run(init=mintmc.PerChain({"mean": np.zeros(3)}), chains=4),
        ValueError,
        r"init\['mean'\] must have a leading axis of chains=4, got shape \(3,\)",
    ),
    "no draws": (lambda: run(draws=0), ValueError, "draws must be at least 1, got 0"),
    "half a draw": (lambda: run(draws=0.5), TypeError, "draws must be a whole number at least 1, got 0.5"),
    "negative warmup": (lambda: run(warmup=-1), ValueError, "warmup must be at least 0, got -1"),
    "no chains": (lambda: run(chains=0), ValueError, "chains must be at least 1, got 0"),
    "no thin": (lambda: run(thin=0), ValueError, "thin must be at least 1, got 0"),
    "negative seed": (lambda: run(seed=-1), ValueError, "seed must be in .*, got -1"),
    "no posterior": (
        lambda: run(posterior=good),
        TypeError,
        "posterior must be a mintmc.Posterior, got <function",
    ),
    "no sampler": (lambda: run(sampler="mint"), TypeError, r"sampler must be a mintmc sampler.*got 'mint'"),
    "no proposal": (
        lambda: run(sampler=mint(alpha=0.5, proposal="walk")),
        TypeError,
        "proposal must be RandomWalk, Langevin, Hamiltonian or Custom, got 'walk'",
    ),
    "step size 0": (
        lambda: mintmc.RandomWalk(step_size=0),
        ValueError,
        r"step_size must be in \(0, inf\), got 0",
    ),
    "target 1": (
        lambda: mintmc.Langevin(target_acceptance=1),
        ValueError,
        r"target_acceptance must be in \(0, 1\), got 1",
    ),
    "no leapfrog": (lambda: mintmc.Hamiltonian(steps=0), ValueError, "steps must be at least 1, got 0"),
    "unknown preconditioner": (
        lambda: mintmc.RandomWalk(preconditioner="full"),
        ValueError,
        "preconditioner must be None, 'diagonal', 'dense' or an array, got 'full'",
    ),
    "negative variance": (
        lambda: mintmc.RandomWalk(preconditioner=np.array([1.0, -1.0])),
        ValueError,
        "preconditioner must have positive variances",
    ),
    "indefinite covariance": (
        lambda: mintmc.RandomWalk(preconditioner=np.array([[1.0, 2.0], [2.0, 1.0]])),
        ValueError,
        "preconditioner must be positive definite",
    ),
    "preconditioner of another size": (
        lambda: run(sampler=mint(alpha=0.5, proposal=mintmc.RandomWalk(preconditioner=np.ones(3)))),
        ValueError,
        r"preconditioner must have shape \(1,\) or \(1, 1\) for 1 parameters, got \(3,\)",
    ),
    "custom of another structure": (
        lambda: run(sampler=mint(alpha=0.5, proposal=mintmc.Custom(lambda key, p: {"other": p["mean"]}))),
        ValueError,
        "sample must return params like init, {'mean': .*}, got {'other'",
    ),
    "custom of another shape": (
        lambda: run(sampler=mint(alpha=0.5, proposal=mintmc.Custom(lambda key, p: {"mean": jnp.zeros(2)}))),
        ValueError,
        "sample must return params like init",
    ),
    "custom ratio a vector": (
        lambda: run(sampler=mint(alpha=0.5, proposal=mintmc.Custom(lambda key, p: p, lambda a, b: jnp.zeros(2)))),
        ValueError,
        "log_ratio must return a scalar",
    ),
    "not differentiable": (
        lambda: run(
            make(lambda p, x: -jnp.asarray(np.asarray(p["mean"] > x), float)),
            mint(alpha=0.5, proposal=mintmc.Langevin()),
        ),
        ValueError,
        "proposal Langevin needs a log density that JAX can differentiate",
    ),
    "normality batch": (
        lambda: mintmc.normality(make(), {"mean": 0.0}, 500),
        ValueError,
        r"batch_size must be in \[1, n=100\], got 500",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.usefixtures("no_compiler")
def test_mistake_is_refused(name):
    call, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        call()
