"""Every mistake is refused before anything compiles, by argument, with what is allowed and the value."""

from decimal import Decimal
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pandas
import pytest
import xarray

import mintmc
from mintmc.run.task import Task
from mistakes import each_refused

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


def large():
    posterior = make()
    posterior.data.n = 3_000_000_000
    return posterior


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
        lambda: mintmc.MetropolisHastings(mintmc.RandomWalk(), temperature=0.0),
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
            mintmc.MetropolisHastings(mintmc.RandomWalk(), temperature=2.0, temper="likelihood"),
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
    "true or false": (
        lambda: run(init={"mean": True}),
        TypeError,
        r"init\['mean'\] must be an array of floats, got",
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
        "proposal must be RandomWalk, Langevin, Hamiltonian, NUTS or Custom, got 'walk'",
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
        "preconditioner must be None, 'diagonal', 'dense', 'laplace' or an array, got 'full'",
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
    "a class for a sampler": (
        lambda: run(sampler=mintmc.MINT),
        TypeError,
        r"sampler must be a mintmc sampler such as MINT\(...\), got the class MINT: call it",
    ),
    "half a sampler": (
        lambda: run(sampler=type("Half", (), {"kernel": None})()),
        TypeError,
        r"sampler must be a mintmc sampler such as MINT\(...\), got <.*Half object",
    ),
    "a class for a proposal": (
        lambda: mint(alpha=0.5, proposal=mintmc.RandomWalk),
        TypeError,
        "proposal must be RandomWalk, .*got the class RandomWalk: call it",
    ),
    "a class for a ladder": (
        lambda: mintmc.EquiEnergy(mintmc.Ladder),
        TypeError,
        "ladder must be a mintmc.Ladder, got the class Ladder: call it",
    ),
    "likelihood a tuple": (
        lambda: run(make(lambda p, x: (x, p["mean"]))),
        ValueError,
        r"log_likelihood must return a scalar, got \(float32\[\], float32\[\]\) for params like init",
    ),
    "likelihood a word": (
        lambda: run(make(lambda p, x: "high")),
        ValueError,
        "log_likelihood must return a scalar, got 'high'",
    ),
    "likelihood sums over all rows": (
        lambda: run(make(lambda p, x: jnp.sum(-0.5 * (X - p["mean"]) ** 2))),
        ValueError,
        "log_likelihood must be that of the one row it is given .*got a function that does not look at it",
    ),
    "likelihood nothing": (lambda: run(make(lambda p, x: None)), ValueError, "log_likelihood must return .*got None"),
    "likelihood complex": (
        lambda: run(make(lambda p, x: p["mean"] * 1j)),
        TypeError,
        "log_likelihood must return a float, got dtype complex64",
    ),
    "likelihood not traceable": (
        lambda: run(make(lambda p, x: float(x))),
        TypeError,
        "log_likelihood must be written with jax.numpy, so that JAX can trace it, got ConcretizationTypeError",
    ),
    "prior not traceable": (
        lambda: run(make(log_prior=lambda p: 0.0 if p["mean"] > 0 else 1.0)),
        TypeError,
        "log_prior must be written with jax.numpy, so that JAX can trace it, got TracerBoolConversionError",
    ),
    "params of another structure": (
        lambda: run(init={"mu": 0.0}),
        ValueError,
        r"log_likelihood must work for params like init, \{'mu': float32\[\]\} and a row of data, float32\[\], "
        "got KeyError: 'mean'",
    ),
    "params of another structure, with gradients": (
        lambda: run(init={"mu": 0.0}, sampler=mint(alpha=0.5, proposal=mintmc.Langevin())),
        ValueError,
        "log_likelihood must work for params like init, .*got KeyError: 'mean'",
    ),
    "prior of another structure": (
        lambda: run(make(log_prior=lambda p: p["sd"])),
        ValueError,
        "log_prior must work for params like init, .*got KeyError: 'sd'",
    ),
    "energy of another structure": (
        lambda: make().energy({"mu": 0.0}),
        ValueError,
        "log_likelihood must work for params like params, .*got KeyError: 'mean'",
    ),
    "a start that fails": (
        lambda: run(init=lambda key: {}["mean"]),
        ValueError,
        "init must work for .*got KeyError: 'mean'",
    ),
    "half-precision params": (
        lambda: run(init={"mean": np.float16(0)}),
        TypeError,
        r"init\['mean'\] must be float32 or float64, got dtype float16",
    ),
    "params of 128 bits": (
        lambda: run(init={"mean": np.longdouble(0)}),
        TypeError,
        r"init\['mean'\] must be float32 or float64, got dtype (float128|longdouble)",
    ),
    "params too large for float32": (
        lambda: run(init={"mean": 1e300}),
        ValueError,
        r"init\['mean'\] must fit float32, got 1e\+300",
    ),
    "keys without order": (
        lambda: run(init={1: 0.0, "mean": 0.0}),
        ValueError,
        "init must be a pytree of arrays, got {1: 0.0, 'mean': 0.0}",
    ),
    "reference of another structure": (
        lambda: run(sampler=mintmc.ParallelTempering(mintmc.Ladder([1, 2]), reference={"mu": 0.0}), init={"mean": 0.0}),
        ValueError,
        "reference must have the form of init, .*'mean'.*got {'mu': 0.0}",
    ),
    "a table within": (
        lambda: make(data={"rows": pandas.DataFrame({"x": X})}),
        TypeError,
        r"data\['rows'\] must be an array or a pytree of arrays.*, got a table, DataFrame",
    ),
    "a list of numbers": (
        lambda: make(data=[1.0, 2.0]),
        ValueError,
        r"data\[0\] must have a leading axis .*pass np.array\(list\).*got a scalar, 1.0",
    ),
    "no data": (lambda: make(data=None), ValueError, "data must hold at least one array, got None"),
    "ragged data": (
        lambda: make(data={"x": np.array([[1.0], [2.0, 3.0]], object)}),
        TypeError,
        r"data\['x'\] must be an array of numbers, got dtype object",
    ),
    "data of 128 bits": (
        lambda: make(data=X.astype(np.longdouble)),
        TypeError,
        "data must be an array of numbers, got dtype (float128|longdouble)",
    ),
    "durations": (
        lambda: make(data=np.arange(3).astype("m8[s]")),
        TypeError,
        r"data must be an array of numbers, got dtype timedelta64\[s\]",
    ),
    "dates": (
        lambda: make(data=np.arange(3).astype("M8[s]")),
        TypeError,
        r"data must be an array of numbers, got dtype datetime64\[s\]",
    ),
    "no such file": (
        lambda: make(data="nowhere.npy"),
        FileNotFoundError,
        "data must be an existing file or folder, got 'nowhere.npy'",
    ),
    "remote data": (
        lambda: make(data="s3://bucket/x.npy"),
        ValueError,
        r"data must be a local path \(remote stores are not supported\), got 's3://bucket/x.npy'",
    ),
    "a remote store": (
        lambda: run(out="s3://bucket/run.zarr"),
        ValueError,
        r"out must be a local path \(remote stores are not supported\), got 's3://bucket/run.zarr'",
    ),
    "a store nowhere": (lambda: run(out=""), ValueError, "out must be a path that the system accepts, got ''"),
    "a store no path": (lambda: run(out=3), TypeError, "out must be a path, a string or a pathlib.Path, got 3"),
    "a store in a file": (
        lambda: run(out="/dev/null/run.zarr"),
        ValueError,
        "out must be in a folder, got '/dev/null/run.zarr', where /dev/null is a file",
    ),
    "a run no path": (
        lambda: mintmc.resume(3, make()),
        TypeError,
        "path must be a path, a string or a pathlib.Path, got 3",
    ),
    "no tree to diagnose": (
        lambda: mintmc.diagnose({"posterior": 3}),
        TypeError,
        "tree must be what mintmc.sample returned, an xarray.DataTree, got {'posterior': 3}",
    ),
    "no tree to plot": (lambda: mintmc.plot_ladder(3), TypeError, "tree must be what mintmc.sample returned.*got 3"),
    "no tree of modes": (lambda: mintmc.mode_weights(3), TypeError, "tree must be what mintmc.sample returned.*got 3"),
    "no tree to audit": (
        lambda: mintmc.audit_rung(make(), 3, 0, init={"mean": 0.0}),
        TypeError,
        "tree must be what mintmc.sample returned.*got 3",
    ),
    "a tree of someone else": (
        lambda: mintmc.plot_ladder(xarray.DataTree()),
        ValueError,
        r"tree must have a group ladder, got \[\]",
    ),
    "more rows than are counted": (
        lambda: run(large(), mintmc.BarkerMH()),
        ValueError,
        r"data must have at most 2147483647 rows for full passes .*got n = 3000000000",
    ),
    "more rows than a pass counts": (
        lambda: run(large(), mintmc.MetropolisHastings()),
        ValueError,
        r"data must have at most 2147483647 rows for full passes .*got n = 3000000000",
    ),
    "a feed beyond everything": (
        lambda: mintmc.EquiEnergy(mintmc.Ladder([1, 2]), feed=10**400),
        ValueError,
        r"feed must be in \[1, 2147483647\], got about 10\^400",
    ),
    "draws beyond everything": (lambda: run(draws=10**400), ValueError, r"draws must be in .*got about 10\^400"),
    "warm-up beyond everything": (lambda: run(warmup=10**400), ValueError, r"warmup must be in .*got about 10\^400"),
    "chains beyond everything": (lambda: run(chains=10**9), ValueError, "chains must be in .*got 1000000000"),
    "a number beyond floats": (
        lambda: mint(temperature=10**400),
        ValueError,
        r"temperature must be in \(1, inf\), got about 10\^400",
    ),
    "an array for a number": (
        lambda: mint(alpha=np.array([0.5])),
        TypeError,
        r"alpha must be a number in \(0, 1\), got array\(\[0.5\]\)",
    ),
    "an array for a word": (
        lambda: mint(alpha=0.5, estimator=np.array(["common", "recycled"])),
        ValueError,
        "estimator must be one of 'common'.*got array",
    ),
    "a million numbers for one": (
        lambda: mint(alpha=np.zeros(10**6)),
        TypeError,
        r"alpha must be a number .*got an array of float64 and shape \(1000000,\)$",
    ),
    "progress a word": (lambda: run(progress="yes"), TypeError, "progress must be True or False, got 'yes'"),
    "a ladder without end": (
        lambda: mintmc.Ladder.mint(10**9, 2, 1 + 1e-12, 0.5),
        ValueError,
        "growth must be so large that 10000 rungs reach n=1000000000, got 1.000000000001",
    ),
    "rungs without end": (
        lambda: mintmc.Ladder.geometric(10, 10**9),
        ValueError,
        r"rungs must be in \[2, 10000\], got 1000000000",
    ),
    "normality batch": (
        lambda: mintmc.normality(make(), {"mean": 0.0}, 500),
        ValueError,
        r"batch_size must be in \[1, n=100\], got 500",
    ),
}


test_a_mistake_is_refused = each_refused(MISTAKES)


@pytest.mark.parametrize("half", [np.float32(0.5), np.array(0.5), jnp.float32(0.5), Decimal("0.5"), Fraction(1, 2)])
def test_numbers_of_any_kind_are_stored_as_python_has_them(half):
    sampler = mint(alpha=half, proposal=mintmc.RandomWalk(step_size=half), penalty=np.bool(True))
    assert sampler == mint(alpha=0.5, proposal=mintmc.RandomWalk(step_size=0.5))
    assert type(sampler.alpha) is float


@pytest.mark.parametrize("dtype", ["f2", ">f8", ">i4", "?"])
def test_numbers_that_jax_has_are_taken(dtype):
    data = np.array([0, 1, 1]).astype(dtype)
    np.testing.assert_array_equal(make(data=data).data.rows, data)
    assert make(data=data).energy({"mean": 1.0}) == pytest.approx(0.5)


def test_the_first_step_knows_more_rows_than_32_bits_count():
    task = Task(large().flat({"mean": 0.0}), [], None, seed=0, draws=1, warmup=1, thin=1)
    assert float(task.first_step(3.0)) == pytest.approx(1e-9**0.5)
