"""Firefly Monte Carlo against quadrature, its bound against the likelihood, and twins that must be caught."""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.control import lower_bounds
from mintmc.control.lower_bounds import JaakkolaJordan
from mintmc.kernels import firefly
from mintmc.kernels.firefly import FireflyKernel
from mintmc.proposals import Tuning
from mintmc.samplers.exact import FireflyMC
from mistakes import each_refused
from truth import LIMIT, distance, distance_of_means, mostly_slow, quickly_compiled, walk

N = 200
SIGMA = 1.0  # of the prior: at T = 4 as wide as the likelihood, so that its scaling shows


def log_likelihood(theta, row):
    return jax.nn.log_sigmoid(row["y"] * (row["x"] @ theta))


def log_prior(theta):
    return -0.5 * jnp.sum(theta**2) / SIGMA**2


def logistic_data(n=N, theta=(1.5, -1.0), seed=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, len(theta))).astype(np.float32)
    y = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(-x @ np.array(theta))), 1, -1).astype(np.float32)
    return {"x": x, "y": y}


DATA = logistic_data()
X, Y = DATA["x"], DATA["y"]
POSTERIOR = mintmc.Posterior(log_likelihood, DATA, log_prior)
TARGET = POSTERIOR.flat(np.zeros(2, np.float32))
MOMENTS = {"a": (1, 0), "b": (0, 1), "aa": (2, 0), "bb": (0, 2), "ab": (1, 1)}


def exact_moments(temperature, temper):
    """Moments of the tempered posterior by quadrature on a grid that is fine and wide for all of them."""
    axis = np.linspace(-6, 7, 261)
    a, b = np.meshgrid(axis, axis, indexing="ij")
    likelihood = sum(-np.logaddexp(0, -y * (a * x[0] + b * x[1])) for x, y in zip(X, Y, strict=True))
    prior = -0.5 * (a**2 + b**2) / SIGMA**2
    log_density = likelihood / temperature + prior / (temperature if temper == "posterior" else 1)
    weight = np.exp(log_density - log_density.max())
    assert max(weight[0].max(), weight[-1].max(), weight[:, 0].max(), weight[:, -1].max()) < 1e-6
    return {name: float((weight * a**i * b**j).sum() / weight.sum()) for name, (i, j) in MOMENTS.items()}


def worst_distance(sampler, draws=6000, warmup=0, posterior=POSTERIOR):
    """The largest distance of a mean or second moment from its exact value, in standard errors."""
    init = np.array([1.0, -1.0])
    tree = mintmc.sample(posterior, sampler, init=init, draws=draws, warmup=warmup, progress=False, seed=5)
    group = tree.posterior if sampler.temperature == 1 else tree.tempered_posterior
    theta = group["theta"].values.astype(float)[:, draws // 20 :]  # the way from the start is not judged
    exact = exact_moments(sampler.temperature, sampler.temper)
    found = {n: distance(theta[..., 0] ** i * theta[..., 1] ** j, exact[n]) for n, (i, j) in MOMENTS.items()}
    return max(found.values()), tree


UNTUNED = JaakkolaJordan.untuned(X, Y)
STAY = mintmc.Custom(lambda key, theta: theta)
MAP = np.array([1.4, -1.0])  # roughly: a bound need not be tuned exactly
WALK = mintmc.RandomWalk(step_size=0.5)  # accepts 0.12 to 0.36 of moves; a given step needs no warm-up to be compiled
HOT = {"proposal": WALK, "temperature": 4.0}
RIGHT = {
    "untuned": FireflyMC(UNTUNED, proposal=WALK),
    "tuned": FireflyMC(JaakkolaJordan.tuned(X, Y, MAP), proposal=WALK, brighten=0.05),
    "hot posterior": FireflyMC(JaakkolaJordan.untuned(X, Y, xi=0.5), **HOT),
    "hot likelihood": FireflyMC(JaakkolaJordan.tuned(X, Y, MAP), **HOT, temper="likelihood", capacity=100),
}


@pytest.mark.parametrize("name", mostly_slow(RIGHT, "untuned"))
def test_the_draws_have_the_moments_of_the_posterior(name):
    worst, tree = worst_distance(RIGHT[name])
    assert worst < LIMIT
    assert tree.sample_stats["bound_violations"].sum() == tree.sample_stats["overflows"].sum() == 0


@pytest.mark.slow
def test_the_draws_are_right_after_warm_up():
    sampler = FireflyMC(JaakkolaJordan.untuned(X, Y), proposal=mintmc.RandomWalk(preconditioner="diagonal"))
    assert worst_distance(sampler, warmup=500)[0] < LIMIT


class PickedAfterDarkening(FireflyKernel):
    """Broken: rows that have just gone dark may light up again."""

    def _pick_dark(self, uniforms, theta, bright, rows):
        return super()._pick_dark(uniforms, theta, jnp.zeros_like(bright), rows)


class OldGaps(FireflyKernel):
    """Broken: an accepted move keeps the gaps of the state it left."""

    def _move_theta(self, randomness, state, rows, tuning):
        info, theta, lit, proposed = super()._move_theta(randomness, state, rows, tuning)
        return info, theta, lit._replace(gaps=state.gaps.at[lit.which].get(mode="clip")), proposed


# What to put in the place of a function of the kernel.
BROKEN = {
    "inequality as printed": ("lights_up", lambda u, odds, q: u > odds - math.log(q)),
    "darkening without q": ("darkens", lambda u, odds, q: u < -odds),
    "odds without the 1": ("log_odds", lambda gap: jnp.where(gap <= 0, -jnp.inf, gap)),
}


@pytest.mark.parametrize("name", mostly_slow(BROKEN, "odds without the 1"))
def test_a_broken_twin_is_caught(name, monkeypatch):
    monkeypatch.setattr(firefly, *BROKEN[name])
    # Of a posterior of its own: what was compiled for the right sampler would be used again.
    twin = mintmc.Posterior(log_likelihood, DATA, log_prior)
    assert worst_distance(RIGHT["untuned"], draws=2000, posterior=twin)[0] > LIMIT


def distance_of_lights(temperature, kind=FireflyKernel):
    """How far the number of bright rows is from its exact mean at a theta that does not move."""
    bound, theta = UNTUNED, jnp.array([1.5, -1.5])
    kernel = kind(**vars(FireflyMC(bound, proposal=STAY, temperature=temperature, brighten=0.3).kernel(TARGET)))
    starts, tuning = np.tile(theta, (16, 1)), Tuning(jnp.ones(()), None)
    _, kept = walk(kernel, POSTERIOR, starts, tuning, steps=1000, skip=20, keep=("bright",))
    gaps = log_likelihood_of_all(theta) - bound_of_all(bound, theta)
    return distance_of_means(kept["bright"], float(np.sum(1 - np.exp(-gaps / temperature))))


def log_likelihood_of_all(theta, data=DATA):
    return np.asarray(jax.vmap(log_likelihood, (None, 0))(theta, data), float)


def bound_of_all(bound, theta, data=DATA):
    return np.asarray(jax.vmap(bound.log_bound, (None, 0, 0))(theta, data, bound.constants), float)


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_the_lights_have_their_conditional_law(temperature):
    assert distance_of_lights(temperature) < LIMIT


def test_lights_that_are_picked_after_darkening_are_caught():
    assert distance_of_lights(1.0, PickedAfterDarkening) > LIMIT


class OutlierBound:
    """A bound of a user's own, for 0.9 N(x | mean, 1) + 0.1 N(x | mean, 9): its first component."""

    constants = None

    def __init__(self, x):
        self.n, self.mean, self.squares = len(x), x.mean(), ((x - x.mean()) ** 2).sum()

    def log_bound(self, params, x, constants):
        return math.log(0.9) - 0.5 * (x - params["mean"]) ** 2

    def total(self, params):
        return self.n * math.log(0.9) - 0.5 * (self.squares + self.n * (self.mean - params["mean"]) ** 2)


def outlier_log_likelihood(params, x):
    square = (x - params["mean"]) ** 2
    return jnp.logaddexp(math.log(0.9) - 0.5 * square, math.log(0.1 / 3) - square / 18)


def test_a_bound_of_ones_own_on_a_tree_of_params():
    x = np.random.default_rng(2).normal(size=100) * np.where(np.arange(100) < 10, 3, 1)
    x = x.astype(np.float32)
    posterior = mintmc.Posterior(outlier_log_likelihood, x)
    sampler = FireflyMC(OutlierBound(x), proposal=mintmc.RandomWalk(step_size=0.25))
    tree = mintmc.sample(posterior, sampler, init={"mean": 0.0}, draws=4000, warmup=0, progress=False)
    grid = np.linspace(-1.5, 1.5, 2001)  # 10 standard deviations each way
    square = (x[:, None].astype(float) - grid) ** 2
    log_density = np.logaddexp(math.log(0.9) - 0.5 * square, math.log(0.1 / 3) - square / 18).sum(axis=0)
    weight = np.exp(log_density - log_density.max())
    means = tree.posterior["mean"].values
    for power in (1, 2):
        assert distance(means**power, float((weight * grid**power).sum() / weight.sum())) < LIMIT
    assert tree.sample_stats["bound_violations"].sum() == 0


@pytest.mark.parametrize("xi", [0.0, 1e-4, 1.5, 30.0])
def test_the_bound_is_below_the_likelihood_and_touches_it_at_xi(xi):
    s = np.concatenate([np.linspace(-60, 60, 4001), [-xi, xi]]).astype(np.float32)
    data = {"x": s[:, None], "y": np.where(np.arange(s.size) % 2, 1, -1).astype(np.float32)}
    bound, one = JaakkolaJordan.untuned(data["x"], data["y"], xi), jnp.ones(1)
    gaps = log_likelihood_of_all(one, data) - bound_of_all(bound, one, data)
    assert (gaps > 0).all()
    # The margin of 1e-5 (1 + xi), and rounding.
    assert (gaps[-2:] < 2e-5 * (1 + xi)).all()


@pytest.mark.parametrize("bound", [JaakkolaJordan.untuned(X, Y), JaakkolaJordan.tuned(X, Y, MAP)])
def test_the_total_is_the_sum_and_the_change_its_difference(bound):
    here, there = jnp.array([0.3, -2.0]), jnp.array([0.35, -1.9])
    exact = bound_of_all(bound, here).sum()
    assert float(bound.total(here)) == pytest.approx(exact, rel=1e-5)  # float32
    difference = bound_of_all(bound, there).sum() - exact
    # Sums of 200 float32 numbers of size 1.
    assert float(lower_bounds.change(bound, here, there)) == pytest.approx(difference, abs=1e-4)


def test_log_odds_of_small_and_large_gaps():
    gaps = np.array([1e-30, 1e-7, 1e-3, 1.0, 50.0, 1000.0])
    exact = np.where(gaps < 100, np.log(np.expm1(np.minimum(gaps, 100))), gaps)
    np.testing.assert_allclose(firefly.log_odds(jnp.asarray(gaps)), exact, rtol=1e-6)
    assert firefly.log_odds(jnp.asarray([0.0, -1.0])).tolist() == [-math.inf, -math.inf]


@cache
def one_step(kind, brighten, capacity, bound):
    """A kernel and its step, compiled."""
    kernel = kind(**vars(FireflyMC(bound, brighten=brighten, capacity=capacity).kernel(TARGET)))
    return kernel, quickly_compiled(kernel.step)


def first_steps(steps=20, kind=FireflyKernel, brighten=0.1, capacity=N, bound=UNTUNED):
    """States and infos of a few steps."""
    kernel, step = one_step(kind, brighten, capacity, bound)
    batch, tuning = {"all": POSTERIOR.rows}, Tuning(jnp.asarray(0.3), None)
    state = kernel.init(jnp.asarray(MAP, jnp.float32), batch)
    for key in jax.random.split(jax.random.key(0), steps):
        after, info = step(key, state, batch, tuning)
        yield state, after, info
        state = after


@pytest.mark.parametrize(("brighten", "dark_rows_read"), [(1e-6, 0), (1 - 1e-6, 1)])
def test_the_rows_read_are_the_bright_ones_and_the_picked_dark_ones(brighten, dark_rows_read):
    # So small a probability picks no dark row in 20 steps, so large a one picks them all.
    for before, after, info in first_steps(brighten=brighten):
        bright = int(before.bright.sum())
        assert int(info["data_touched"]) == bright + dark_rows_read * (N - bright)
        assert int(info["bright"]) == int(after.bright.sum())


def error_of_gaps(kind):
    for _, after, _ in first_steps(kind=kind):
        gaps = log_likelihood_of_all(after.theta) - bound_of_all(UNTUNED, after.theta)
        yield np.max(np.abs(after.gaps - gaps)[after.bright], initial=0)


def test_remembered_gaps_are_those_of_the_state():
    assert max(error_of_gaps(FireflyKernel)) < 1e-5  # float32
    # Its effect on the draws is too small to see in them: rows darken before it matters.
    assert max(error_of_gaps(OldGaps)) > 0.01


def test_dark_rows_are_picked_with_their_probability():
    picked = [
        (int(info["data_touched"]) - int(before.bright.sum())) / (N - int(before.bright.sum()))
        for before, _, info in first_steps(steps=500)
    ]
    # 500 steps of about 190 rows.
    assert abs(np.mean(picked) - 0.1) < LIMIT * math.sqrt(0.1 * 0.9 / (500 * 190))


def test_what_does_not_fit_is_refused_and_counted():
    steps = list(first_steps(200, capacity=8))  # 11 rows are bright on average
    assert np.mean([info["overflows"] for _, _, info in steps]) > 0.1
    assert max(info["bright"] for _, _, info in steps) <= 8


class RisingBound(JaakkolaJordan):
    """Broken: right at MAP, too high away from it."""

    def log_bound(self, params, datum, constants):
        return super().log_bound(params, datum, constants) + 2 * jnp.sum((params - MAP) ** 2)

    def total(self, params):
        return super().total(params) + 2 * N * jnp.sum((params - MAP) ** 2)


def test_a_violated_bound_is_counted():
    rising = RisingBound(**vars(UNTUNED))
    assert sum(int(info["bound_violations"]) for _, _, info in first_steps(100, bound=rising)) > 0


@pytest.mark.slow
def test_a_tuned_bound_reads_few_rows():
    n = 5000
    data = logistic_data(n, theta=(4.0, -3.0))
    posterior = mintmc.Posterior(log_likelihood, data, log_prior)
    theta = np.zeros(2)
    for _ in range(20):  # Newton's method
        p = 1 / (1 + np.exp(-data["x"].astype(float) @ theta))
        gradient = data["x"].T @ ((data["y"] + 1) / 2 - p) - theta / SIGMA**2
        theta = theta + np.linalg.solve((data["x"].T * (p * (1 - p))) @ data["x"] + np.eye(2) / SIGMA**2, gradient)
    bound = JaakkolaJordan.tuned(data["x"], data["y"], theta)
    sampler = FireflyMC(bound, proposal=mintmc.RandomWalk(step_size=0.1), brighten=0.01)
    tree = mintmc.sample(posterior, sampler, init=theta, draws=2000, warmup=0, chains=1, progress=False)
    # 0.01 n rows are picked in a step; as many again are bright at most.
    assert tree.sample_stats["data_touched"].mean() < 0.02 * n
    assert tree.sample_stats["acceptance_rate"].mean() > 0.1  # it does move


def run(posterior=POSTERIOR, **settings):
    sampler = FireflyMC(**({"bound": JaakkolaJordan.untuned(X, Y)} | settings))
    return mintmc.sample(posterior, sampler, init=np.zeros(2), draws=5, warmup=5, progress=False)


MISTAKES = {
    # name: (what to call, error, what the message says)
    "no bound": (lambda: FireflyMC(None), TypeError, "bound must have constants, log_bound and total.*got None"),
    "a bound's class": (lambda: FireflyMC(JaakkolaJordan), TypeError, "bound must have constants.*got <class"),
    "brighten 0": (lambda: run(brighten=0.0), ValueError, r"brighten must be in \(0, 1\), got 0"),
    "brighten 1": (lambda: run(brighten=1.0), ValueError, r"brighten must be in \(0, 1\), got 1"),
    "temperature 0": (lambda: run(temperature=0.0), ValueError, r"temperature must be in \(0, inf\), got 0"),
    "unknown temper": (lambda: run(temper="x"), ValueError, "temper must be one of 'posterior'.*got 'x'"),
    "capacity 0": (lambda: run(capacity=0), ValueError, "capacity must be at least 1, got 0"),
    "capacity above n": (lambda: run(capacity=201), ValueError, r"capacity must be in \[1, n=200\], got 201"),
    "gradient": (
        lambda: run(proposal=mintmc.Langevin()),
        ValueError,
        "proposal must be one without gradient, RandomWalk or Custom, got Langevin",
    ),
    "no data": (
        lambda: run(mintmc.Posterior.from_density(log_prior)),
        ValueError,
        "posterior must have data.*got a density without data",
    ),
    "bound of other rows": (
        lambda: run(bound=JaakkolaJordan.untuned(X[:50], Y[:50])),
        ValueError,
        r"bound.constants\['a'\] must have n=200 rows, got shape \(50,\)",
    ),
    "bound of other data": (
        lambda: mintmc.sample(POSTERIOR, FireflyMC(JaakkolaJordan.untuned(2 * X, Y)), init=MAP, progress=False),
        ValueError,
        "bound.total must be the sum of log_bound over all rows, .*got",
    ),
    "bound too high": (
        lambda: run(mintmc.Posterior(lambda theta, row: 2 * log_likelihood(theta, row), DATA)),
        ValueError,
        r"bound must lie below log_likelihood, got .* in row 0 at init \(200 such rows\)",
    ),
    "labels 0 and 1": (lambda: JaakkolaJordan.untuned(X, (Y + 1) / 2), ValueError, r"y must be -1 or \+1, got 0"),
    "labels missing": (lambda: JaakkolaJordan.untuned(X, Y[:9]), ValueError, r"y must have shape \(n=200,\), got \(9,"),
    "x a vector": (lambda: JaakkolaJordan.untuned(Y, Y), ValueError, r"x must be a finite array of shape \(n, d\)"),
    "xi negative": (lambda: JaakkolaJordan.untuned(X, Y, -1.0), ValueError, r"xi must be in \[0, inf\), got -1"),
    "mode too long": (lambda: JaakkolaJordan.tuned(X, Y, np.ones(3)), ValueError, "theta_map must hold d=2 finite"),
}


test_mistake_is_refused = each_refused(MISTAKES)
