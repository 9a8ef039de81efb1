"""TunaMH: detailed balance by summing the Poisson series, draws against quadrature, and twins that must be caught."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc import count
from mintmc.kernels import tuna
from mintmc.proposals import Tuning
from mintmc.samplers.exact import TunaMH
from mistakes import each_refused
from truth import LIMIT, distance, distance_of_means, mostly_slow, walk

# Two states of three factors: energies in both, and scales (times M = 1) that bound their differences.
ENERGIES = np.array([[0.2, 1.0], [0.9, 0.1], [0.3, 0.8]])
SCALES = np.array([0.8, 1.1, 0.6])  # the first is tight
CHI = 0.3


def mean_acceptance(here, there, chi=CHI, temperature=1.0):
    """E min(1, ratio) of a move, from the kernel's own formulae: the kept rows are independent Poisson numbers."""
    scales = SCALES / temperature
    step = scales.sum()
    change = (ENERGIES[:, here] - ENERGIES[:, there]) / temperature / scales
    rates = tuna.mean_rows(step, chi) * scales / step * np.asarray(tuna.keep_probability(change, chi * step), float)
    weights = np.asarray(tuna.log_weight(change, chi * step), float)
    total = 0.0
    for kept in itertools.product(range(40), repeat=3):  # rates are below 3: the rest is 1e-30
        probability = math.prod(math.exp(-r) * r**k / math.factorial(k) for r, k in zip(rates, kept, strict=True))
        total += probability * min(1.0, math.exp(np.dot(kept, weights)))
    return total


def imbalance(**settings):
    """log of pi(0) A(0 -> 1) / pi(1) A(1 -> 0): 0 in detailed balance."""
    log_odds = (ENERGIES[:, 1] - ENERGIES[:, 0]).sum() / settings.get("temperature", 1.0)
    return log_odds + math.log(mean_acceptance(0, 1, **settings) / mean_acceptance(1, 0, **settings))


@pytest.mark.parametrize("settings", [{}, {"chi": 1e-5}, {"chi": 1.0, "temperature": 2.0}])
def test_the_mean_acceptance_is_in_detailed_balance(settings):
    assert abs(imbalance(**settings)) < 1e-5  # the formulae are evaluated in float32


# What to put in the place of a function of the kernel.
BROKEN = {
    "kept without chi": ("keep_probability", lambda r, s: (1 - r) / 2),
    "kept the wrong way": ("keep_probability", lambda r, s: ((1 + r) + 2 * s) / (2 + 2 * s)),
    "factor 2 missing": ("log_weight", lambda r, s: jnp.arctanh(r / (1 + 2 * s))),
    "weight with half of chi": ("log_weight", lambda r, s: 2 * jnp.arctanh(r / (1 + s))),
    "too few rows": ("mean_rows", lambda step, chi: step),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_twin_is_out_of_balance(name, monkeypatch):
    monkeypatch.setattr(tuna, *BROKEN[name])
    assert abs(imbalance()) > 0.01  # a thousand times the tolerance of the right one


TWO_STATES = mintmc.Posterior(lambda theta, row: -jnp.where(theta > 0.5, row[1], row[0]), ENERGIES)
STAYS, LOST = 3, 10
"""A state that is proposed again, and one from which no distance is known."""


def flip(key, theta):
    return jnp.where(theta == STAYS, theta, jnp.where(theta == LOST, theta + 1, 1 - theta))


def state_distance(here, there):
    return jnp.where(here == LOST, jnp.nan, jnp.abs(here - there))


KEPT = ("accepted", "acceptance_rate", "is_defined", "data_touched", "kept", "bound_violations")


def two_states(here, temperature=1.0):
    """Infos of many first steps of the kernel from one of the two states (or of those above)."""
    sampler = TunaMH(SCALES, distance=state_distance, chi=CHI, proposal=mintmc.Custom(flip), temperature=temperature)
    starts = np.full((40_000, 1), float(here))
    settings = {"tuning": Tuning(jnp.ones(()), None), "steps": 1, "skip": 0, "keep": KEPT, "seed": here}
    theta, info = walk(sampler.kernel(TWO_STATES.flat(0.0)), TWO_STATES, starts, **settings)
    return info | {"theta": theta, "data_touched": count.total(info["data_touched"])}


@pytest.mark.parametrize(("here", "temperature"), [(0, 1.0), (1, 1.0), (1, 2.0)])
def test_the_kernel_accepts_as_often_as_the_series_says(here, temperature):
    info = two_states(here, temperature=temperature)
    exact = mean_acceptance(here, 1 - here, temperature=temperature)
    for values in (info["acceptance_rate"], info["accepted"]):
        values = np.asarray(values, float)
        assert abs(values.mean() - exact) < LIMIT * values.std() / math.sqrt(values.size)
    assert int(info["bound_violations"].sum()) == 0


def test_the_rows_read_are_poisson_and_both_ends_count():
    info = two_states(0)
    touched = info["data_touched"]
    mean = SCALES.sum() + CHI * SCALES.sum() ** 2
    assert (touched % 2 == 0).all()
    assert (touched >= 2 * np.asarray(info["kept"])).all()
    assert abs(touched.mean() / 2 - mean) < LIMIT * math.sqrt(mean / touched.size)
    # The variance of a Poisson number is its mean; the variance of that variance is 2 mean^2 + mean.
    assert abs((touched / 2).var() - mean) < LIMIT * math.sqrt((2 * mean**2 + mean) / touched.size)


def test_a_move_to_the_same_state_reads_nothing_and_is_accepted():
    info = two_states(STAYS)
    assert int(info["data_touched"].sum()) == 0
    assert info["accepted"].all()


def test_a_distance_that_is_no_number_is_an_undefined_move():
    info = two_states(LOST)
    assert not info["is_defined"].any()
    assert (info["theta"] == LOST).all()


N = 200
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 2)).astype(np.float32)
Y = np.where(RNG.uniform(size=N) < 1 / (1 + np.exp(-X @ np.array([1.5, -1.0]))), 1, -1).astype(np.float32)
DATA = {"x": X, "y": Y}


def log_likelihood(theta, row):
    return jax.nn.log_sigmoid(row["y"] * (row["x"] @ theta))


def log_prior(theta):
    return -0.5 * jnp.sum(theta**2)  # at T = 4 about as wide as the likelihood, so that its scaling shows


POSTERIOR = mintmc.Posterior(log_likelihood, DATA, log_prior)
TARGET = POSTERIOR.flat(np.zeros(2))
MOMENTS = {"a": (1, 0), "b": (0, 1), "aa": (2, 0), "bb": (0, 2), "ab": (1, 1)}


def exact_moments(temperature, temper):
    """Moments of the tempered posterior by quadrature on a grid that is fine and wide for all of them."""
    axis = np.linspace(-6, 7, 261)
    a, b = np.meshgrid(axis, axis, indexing="ij")
    likelihood = sum(-np.logaddexp(0, -y * (a * x[0] + b * x[1])) for x, y in zip(X, Y, strict=True))
    prior = -0.5 * (a**2 + b**2)
    log_density = likelihood / temperature + prior / (temperature if temper == "posterior" else 1)
    weight = np.exp(log_density - log_density.max())
    return {name: float((weight * a**i * b**j).sum() / weight.sum()) for name, (i, j) in MOMENTS.items()}


def worst_distance(sampler, target=TARGET):
    """The largest distance of a mean or second moment from its exact value, in standard errors."""
    kernel, starts = sampler.kernel(target), np.tile([1.0, -1.0], (64, 1))
    tuning = Tuning(jnp.asarray(sampler.proposal.step_size), None)
    theta, kept = walk(kernel, POSTERIOR, starts, tuning, 500, 250, ("chi",), keep=("bound_violations",))
    assert kept["bound_violations"].sum() == 0
    exact = exact_moments(sampler.temperature, sampler.temper)
    found = {n: distance_of_means(theta[..., 0] ** i * theta[..., 1] ** j, exact[n]) for n, (i, j) in MOMENTS.items()}
    return max(found.values())


def drifting_walk(correct):
    """A walk that prefers to go up in both coordinates, with and without the ratio that makes up for it."""

    def sample(key, theta):
        return theta + 0.2 * jax.random.normal(key, (2,)) + 0.05

    def log_ratio(here, there):
        back, forth = here - there - 0.05, there - here - 0.05
        return jnp.sum(forth**2 - back**2) / (2 * 0.2**2)

    return mintmc.Custom(sample, log_ratio if correct else None)


def steps_of(step_size):
    """A given step needs no warm-up to be compiled."""
    return mintmc.RandomWalk(step_size=step_size)


RIGHT = {
    "small chi": TunaMH.logistic(X, proposal=steps_of(0.15)),
    "large chi": TunaMH.logistic(X, chi=0.01, proposal=steps_of(0.2)),
    "hot posterior": TunaMH.logistic(X, chi=0.01, proposal=steps_of(0.5), temperature=4.0),
    "hot likelihood": TunaMH.logistic(X, proposal=steps_of(0.4), temperature=4.0, temper="likelihood"),
    "custom": TunaMH.logistic(X, chi=0.01, proposal=drifting_walk(correct=True)),
}


@pytest.mark.parametrize("name", mostly_slow(RIGHT, "small chi", "large chi", "hot posterior"))
def test_the_draws_have_the_moments_of_the_posterior(name):
    assert worst_distance(RIGHT[name]) < LIMIT


@pytest.mark.slow
def test_the_draws_are_right_after_warm_up():
    settings = {"draws": 8000, "warmup": 500, "seed": 5, "progress": False}
    tree = mintmc.sample(POSTERIOR, TunaMH.logistic(X), init=np.array([1.0, -1.0]), **settings)
    theta = tree.posterior["theta"].values.astype(float)
    for name, exact in exact_moments(1.0, "posterior").items():
        i, j = MOMENTS[name]
        assert distance(theta[..., 0] ** i * theta[..., 1] ** j, exact) < LIMIT
    assert tree.sample_stats["bound_violations"].sum() == 0


# Where chi is missing is for the series to see: small steps make such a chain hotter, large ones colder.
@pytest.mark.parametrize("name", mostly_slow(["kept the wrong way", "factor 2 missing"], "factor 2 missing"))
def test_a_broken_twin_is_caught(name, monkeypatch):
    monkeypatch.setattr(tuna, *BROKEN[name])
    # Of a posterior of its own: what was compiled for the right sampler would be used again.
    twin = mintmc.Posterior(log_likelihood, DATA, log_prior)
    assert worst_distance(RIGHT["large chi"], twin.flat(np.zeros(2))) > LIMIT


@pytest.mark.slow
def test_a_walk_whose_ratio_is_forgotten_is_caught():
    assert worst_distance(TunaMH.logistic(X, chi=0.01, proposal=drifting_walk(correct=False))) > LIMIT


def test_scales_that_do_not_hold_are_counted():
    kernel, tuning = TunaMH(np.linalg.norm(X, axis=1) / 4).kernel(TARGET), Tuning(jnp.asarray(0.1), None)
    _, kept = walk(kernel, POSTERIOR, np.zeros((8, 2)), tuning, steps=20, skip=0, keep=("bound_violations",))
    assert kept["bound_violations"].sum() > 0


def run(posterior=POSTERIOR, **settings):
    sampler = TunaMH(**({"scales": np.ones(N)} | settings))
    return mintmc.sample(posterior, sampler, init=np.zeros(2), draws=5, warmup=5, progress=False)


MISTAKES = {
    # name: (what to call, error, what the message says)
    "no scales": (lambda: TunaMH(None), TypeError, "scales must be an array of one number a row, got None"),
    "one scale": (lambda: TunaMH(2.0), TypeError, "scales must be an array of one number a row, got 2.0"),
    "negative scale": (
        lambda: TunaMH([1.0, -1.0]),
        ValueError,
        r"scales must be finite, at least 0.*got \[1.0, -1.0\]",
    ),
    "nan scale": (lambda: TunaMH([1.0, np.nan]), ValueError, "scales must be finite, at least 0"),
    "zero scales": (lambda: TunaMH([0.0, 0.0]), ValueError, "not all 0"),
    "scales of other rows": (lambda: run(scales=np.ones(9)), ValueError, "scales must have n=200 numbers, got 9"),
    "distance no function": (lambda: run(distance=1.0), TypeError, "distance must be a function, got 1.0"),
    "distance a vector": (
        lambda: run(distance=lambda a, b: a - b),
        ValueError,
        r"distance must return a scalar, got shape \(2,\)",
    ),
    "chi 0": (lambda: run(chi=0.0), ValueError, r"chi must be in \(0, inf\), got 0"),
    "temperature negative": (lambda: run(temperature=-1.0), ValueError, r"temperature must be in \(0, inf\), got -1"),
    "unknown temper": (lambda: run(temper="x"), ValueError, "temper must be one of 'posterior'.*got 'x'"),
    "gradient": (
        lambda: run(proposal=mintmc.Hamiltonian()),
        ValueError,
        "proposal must be one without gradient, RandomWalk or Custom, got Hamiltonian",
    ),
    "no data": (
        lambda: run(mintmc.Posterior.from_density(log_prior)),
        ValueError,
        "posterior must have data.*got a density without data",
    ),
    "x a vector": (lambda: TunaMH.logistic(Y), ValueError, r"x must have shape \(n, d\), got \(200,\)"),
}


test_mistake_is_refused = each_refused(MISTAKES)
