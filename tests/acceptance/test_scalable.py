"""MH-SS: detailed balance by summing the Poisson series, draws against quadrature, and twins that must be caught."""

import itertools
import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32

import mintmc
from mintmc import count
from mintmc.acceptance import scalable, words
from mintmc.control import Expansion
from mintmc.control.alias import weighted
from mintmc.proposals import Tuning
from mistakes import each_refused
from truth import LIMIT, distance, mostly_slow, quickly_compiled

# Two states, theta = 0 and 1, of three factors: what expansions say of the change, what they leave, and bounds on that.
KNOWN = np.array([0.4, -0.9, 0.2])
LEFT = np.array([0.8, -0.5, -0.1])
SCALES = np.array([0.8, 1.1, 0.6])  # the first is tight
SERIES = 40  # terms: the rates are below 1.2, the rest is 1e-40


def known(step, temperature):
    return KNOWN.sum() * step / temperature


def mean_acceptance(here, there, temperature=1.0):
    """Of a move: the first stage times E min(1, product), from the test's own formulae; kept rows are Poisson."""
    residual, bound = LEFT * (there - here) / temperature, SCALES / temperature
    rates = np.asarray(scalable.kept_mean(residual, bound), float)
    # A row that is never kept has no weight.
    weights = np.where(rates > 0, np.asarray(scalable.log_weight(residual, bound), float), 0)
    total = 0.0
    for kept in itertools.product(range(SERIES), repeat=3):
        probability = math.prod(math.exp(-r) * r**k / math.factorial(k) for r, k in zip(rates, kept, strict=True))
        if probability:
            total += probability * min(1.0, math.exp(sum(k * w for k, w in zip(kept, weights, strict=True) if k)))
    return min(1.0, math.exp(known(there - here, temperature))) * total


def imbalance(**settings):
    """log of pi(0) A(0 -> 1) / pi(1) A(1 -> 0): 0 in detailed balance."""
    log_odds = -(KNOWN + LEFT).sum() / settings.get("temperature", 1.0)
    return log_odds + math.log(mean_acceptance(0, 1, **settings) / mean_acceptance(1, 0, **settings))


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_the_mean_acceptance_is_in_detailed_balance(temperature):
    assert abs(imbalance(temperature=temperature)) < 1e-5  # the formulae are evaluated in float32


# What to put in the place of a function of the test.
BROKEN = {
    "nothing is thinned": ("kept_mean", lambda e, b: b * jnp.ones_like(e)),
    "kept the wrong way": ("kept_mean", lambda e, b: b - jnp.maximum(-e, 0)),
    "weights forgotten": ("log_weight", lambda e, b: 0 * e),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_twin_is_out_of_balance(name, monkeypatch):
    monkeypatch.setattr(scalable, *BROKEN[name])
    assert abs(imbalance()) > 0.01  # a thousand times the tolerance of the right one


def test_a_first_stage_that_is_forgotten_is_out_of_balance(monkeypatch):
    monkeypatch.setitem(globals(), "known", lambda step, temperature: 0.0)
    assert abs(imbalance()) > 0.01


def two_states(here, repeats=40_000, move=True, temperature=1.0, scales=SCALES):
    """Infos of many steps of the kernel from one of the two states."""
    rows = {"known": KNOWN, "left": LEFT}
    # The step at 1/2 is what no expansion at the centre, 0, sees.
    posterior = mintmc.Posterior(lambda t, row: row["known"] * t + jnp.where(t > 0.5, row["left"], 0.0), rows)
    flip = mintmc.Custom(lambda key, theta: 1 - theta if move else theta)
    bounds = mintmc.RemainderBounds(scales, lambda a, b, centre: jnp.abs(a - b))
    sampler = mintmc.ScalableMH(bounds, order=1, centre=0.0, proposal=flip, temperature=temperature)
    theta, kernel = jnp.full((1,), float(here)), sampler.kernel(posterior.flat(0.0))
    expansion = Expansion(jnp.zeros(1), jnp.asarray([KNOWN.sum()]), None)
    batch, tuning = {"all": posterior.rows, "control": expansion}, Tuning(jnp.ones(()), None)
    keys = jax.random.split(jax.random.key(here), repeats)
    return quickly_compiled(jax.vmap(lambda key: kernel.step(key, kernel.init(theta, batch), batch, tuning)[1]))(keys)


def from_series(here, temperature=1.0):
    """Standard errors between how often the kernel accepts and what the series says."""
    info = two_states(here, temperature=temperature)
    assert int(info["bound_violations"].sum()) == 0
    exact = mean_acceptance(here, 1 - here, temperature=temperature)
    found = (np.asarray(values, float) for values in (info["acceptance_rate"], info["accepted"]))
    return max(abs(values.mean() - exact) / values.std() * math.sqrt(values.size) for values in found)


@pytest.mark.parametrize(("here", "temperature"), [(0, 1.0), (1, 1.0), (1, 2.0)])
def test_the_kernel_accepts_as_often_as_the_series_says(here, temperature):
    assert from_series(here, temperature) < LIMIT


# Broken twins, in the kernel's own machinery.
MECHANICS = {
    "nothing is thinned": lambda points: points._replace(uniform=points.uniform - 2),
    "rows beside those drawn": lambda points: points._replace(row=(points.row + 1) % 3),
    "half as many points": lambda points: points._replace(gaps=2 * points.gaps),
}


@pytest.mark.parametrize("name", mostly_slow(MECHANICS, "half as many points"))
def test_a_kernel_that_is_broken_does_not(name, monkeypatch):
    twin = MECHANICS[name]
    right = scalable.Scalable._points
    monkeypatch.setattr(scalable.Scalable, "_points", lambda *args: twin(right(*args)))
    assert max(from_series(0), from_series(1)) > LIMIT


@pytest.mark.slow
def test_a_kernel_without_the_first_stage_does_not(monkeypatch):
    monkeypatch.setattr(Expansion, "total", lambda self, here, there: jnp.zeros(()))
    assert max(from_series(0), from_series(1)) > LIMIT


def test_the_rows_read_are_poisson_and_counted():
    info = two_states(0)  # n = 3 and the rate is 2.5; from 0 to 1 the first stage lets 0.74 of the moves go on
    passes, mean = math.exp(KNOWN.sum()), SCALES.sum()
    read = np.asarray(info["rows_read"])
    np.testing.assert_array_equal(
        count.total(info["data_touched"]), 3 * read
    )  # both ends, and the expansion at the centre
    assert (read >= np.asarray(info["kept"])).all()
    variance = passes * (mean + mean**2) - (passes * mean) ** 2
    assert abs(read.mean() - passes * mean) < LIMIT * math.sqrt(variance / read.size)
    # Of those that went on, as often none as a Poisson number is 0.
    none = 1 - passes + passes * math.exp(-mean)
    assert abs((read == 0).mean() - none) < LIMIT * math.sqrt(none * (1 - none) / read.size)


def test_a_rate_of_n_is_decided_on_all_data():
    info = two_states(0, scales=SCALES * 2)
    assert bool((info["on_all_data"] == 1).all())
    assert (count.total(info["data_touched"]) == 6).all()
    exact = min(1.0, math.exp((KNOWN + LEFT).sum()))
    accepted = np.asarray(info["accepted"], float)
    assert abs(accepted.mean() - exact) < LIMIT * math.sqrt(exact * (1 - exact) / accepted.size)


def test_scales_that_do_not_hold_are_counted():
    info = two_states(0, scales=SCALES / 2)
    assert int(info["bound_violations"].sum()) > 1000


def test_a_move_to_the_same_state_reads_nothing_and_is_accepted():
    info = two_states(0, repeats=100, move=False)
    assert int(count.total(info["data_touched"]).sum()) == 0
    assert bool(info["accepted"].all())


def test_the_words_are_those_of_jax():
    key, counts = jax.random.key_data(jax.random.key(5)), jnp.arange(10, dtype=jnp.uint32)
    ours = jnp.concatenate(words.threefry(key[0], key[1], counts[:5], counts[5:]))
    np.testing.assert_array_equal(ours, threefry_2x32(key, counts))


def test_points_are_a_poisson_process_in_proportion_to_bounds():
    test = scalable.Scalable(weighted(np.arange(1.0, 9.0), np.float32), None)
    keys = jax.random.split(jax.random.key(1), 2000)
    gaps, rows, uniform = jax.vmap(lambda key: test._points(key, 3, 16, jnp.float32))(keys)
    gaps, uniform = np.asarray(gaps, float).ravel(), np.asarray(uniform, float).ravel()
    assert abs(gaps.mean() - 1) < LIMIT / math.sqrt(gaps.size)
    assert abs((gaps**2).mean() - 2) < LIMIT * math.sqrt(20 / gaps.size)
    assert abs(uniform.mean() - 0.5) < LIMIT / math.sqrt(12 * uniform.size)
    share = np.arange(1, 9) / 36
    errors = np.sqrt(share * (1 - share) / rows.size)
    assert (np.abs(np.bincount(np.asarray(rows).ravel(), minlength=8) / rows.size - share) < LIMIT * errors).all()
    for one, other in itertools.combinations((gaps, uniform, np.asarray(rows, float).ravel()), 2):
        assert abs(np.corrcoef(one, other)[0, 1]) < LIMIT / math.sqrt(gaps.size)


N = 200
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 2)).astype(np.float32)
X[:, 1] *= 3  # columns of other units
NOISE = RNG.uniform(size=N)
ETA = X @ np.array([1.0, -0.4])


def softplus(eta):
    return np.logaddexp(0, eta)


def normal_cdf(eta):
    return np.asarray(jax.scipy.stats.norm.cdf(eta))


def poisson_counts():
    return RNG.poisson(softplus(ETA)).astype(np.float32)


MODELS = {
    # name: (y, log-likelihood of y and eta, bounds)
    "logistic": (
        np.where(NOISE * (1 + np.exp(-ETA)) < 1, 1, -1).astype(np.float32),
        lambda y, eta: jax.nn.log_sigmoid(y * eta),
        lambda y, **how: mintmc.RegressionBounds.logistic(X, **how),
    ),
    "probit": (
        np.where(normal_cdf(ETA) > NOISE, 1, -1).astype(np.float32),
        lambda y, eta: jax.scipy.stats.norm.logcdf(y * eta),
        lambda y, **how: mintmc.RegressionBounds.probit(X, **how),
    ),
    "poisson": (
        poisson_counts(),
        lambda y, eta: y * jnp.log(jax.nn.softplus(eta)) - jax.nn.softplus(eta),
        lambda y, **how: mintmc.RegressionBounds.poisson(X, y, **how),
    ),
    "student t": (
        (ETA + 0.5 * RNG.standard_t(4, size=N)).astype(np.float32),
        lambda y, eta: -2.5 * jnp.log1p((y - eta) ** 2 / (4 * 0.25)),
        lambda y, **how: mintmc.RegressionBounds.student_t(X, 4.0, 0.5, **how),
    ),
}
MOMENTS = {"a": (1, 0), "b": (0, 1), "aa": (2, 0), "bb": (0, 2), "ab": (1, 1)}


def log_prior(theta):
    return -0.5 * jnp.sum(theta**2)  # at T = 4 about as wide as the likelihood, so that its scaling shows


def posterior_of(model):
    y, log_likelihood, _ = MODELS[model]
    return mintmc.Posterior(lambda t, row: log_likelihood(row["y"], row["x"] @ t), {"x": X, "y": y}, log_prior)


def bounds_of(model, times=1.0, **how):
    made = MODELS[model][2](MODELS[model][0], **how)
    return replace(made, second=made.second * times, third=made.third * times)


def exact_moments(model, temperature, temper):
    """Moments of the tempered posterior by quadrature on a grid that is fine and wide for all of them."""
    y, log_likelihood, _ = MODELS[model]
    axes = np.linspace(-1.5, 4.5, 241), np.linspace(-2.2, 1.2, 241)
    a, b = np.meshgrid(*axes, indexing="ij")
    total = jax.jit(lambda a, b: log_likelihood(y, X[:, 0] * a + X[:, 1] * b).sum())
    likelihood = np.asarray(jax.lax.map(lambda ab: total(*ab), (jnp.asarray(a.ravel()), jnp.asarray(b.ravel()))))
    likelihood = likelihood.reshape(a.shape).astype(float)
    prior = -0.5 * (a**2 + b**2)
    log_density = likelihood / temperature + prior / (temperature if temper == "posterior" else 1)
    weight = np.exp(log_density - log_density.max())
    return {name: float((weight * a**i * b**j).sum() / weight.sum()) for name, (i, j) in MOMENTS.items()}


def worst_distance(sampler, model="logistic", draws=8000, warmup=0):
    """The largest distance of a mean or second moment from its exact value, in standard errors."""
    init = np.array([1.0, -0.4])
    settings = {"init": init, "draws": draws, "warmup": warmup, "progress": False, "seed": 5}
    tree = mintmc.sample(posterior_of(model), sampler, **settings)
    group = tree.posterior if sampler.temperature == 1 else tree.tempered_posterior
    theta = group["theta"].values.astype(float)[:, draws // 20 :]  # the way from the start is not judged
    exact = exact_moments(model, sampler.temperature, sampler.temper)
    found = {n: distance(theta[..., 0] ** i * theta[..., 1] ** j, exact[n]) for n, (i, j) in MOMENTS.items()}
    return max(found.values()), tree


def walk(step_size):
    """A given step needs no warm-up to be compiled."""
    return mintmc.RandomWalk(step_size=step_size, preconditioner=np.array([1.0, 0.1]))


def drifting_walk(correct):
    """A walk that prefers to go up in both coordinates, with and without the ratio that makes up for it."""

    def sample(key, theta):
        return theta + 0.15 * jax.random.normal(key, (2,)) + 0.04

    def log_ratio(here, there):
        back, forth = here - there - 0.04, there - here - 0.04
        return jnp.sum(forth**2 - back**2) / (2 * 0.15**2)

    return mintmc.Custom(sample, log_ratio if correct else None)


def sampler_of(model="logistic", times=1.0, published=False, **settings):
    settings = {"proposal": walk(0.3)} | settings
    return mintmc.ScalableMH(bounds_of(model, times, published=published), **settings)


RIGHT = {
    # name: (model, sampler)
    "order 2": ("logistic", sampler_of()),
    "order 1": ("logistic", sampler_of(order=1)),
    "published, order 2": ("logistic", sampler_of(published=True)),
    "published, order 1": ("logistic", sampler_of(published=True, order=1, proposal=walk(0.15))),
    "around the mode": ("logistic", sampler_of(proposal=mintmc.Autoregressive(0.3))),
    "a centre elsewhere": ("logistic", sampler_of(centre=np.array([1.3, -0.25]))),
    "loose bounds, many blocks": ("logistic", sampler_of(times=100.0)),
    "often on all data": ("logistic", sampler_of(times=2000.0)),
    "hot posterior": ("logistic", sampler_of(temperature=4.0, proposal=walk(0.6))),
    "hot likelihood": ("logistic", sampler_of(temperature=4.0, proposal=walk(0.5), temper="likelihood")),
    "custom": ("logistic", sampler_of(proposal=drifting_walk(correct=True))),
    "probit": ("probit", sampler_of("probit", proposal=walk(0.2))),
    "poisson": ("poisson", sampler_of("poisson", proposal=walk(0.2))),
    "student t": ("student t", sampler_of("student t", proposal=walk(0.1))),
}


@pytest.mark.parametrize("name", mostly_slow(RIGHT, "order 2", "published, order 1"))
def test_the_draws_have_the_moments_of_the_posterior(name):
    model, sampler = RIGHT[name]
    worst, tree = worst_distance(sampler, model)
    assert worst < LIMIT
    stats = tree.sample_stats
    assert stats["bound_violations"].sum() == 0
    on_all, read = float(stats["on_all_data"].mean()), stats["rows_read"].values[stats["on_all_data"].values == 0]
    if name == "loose bounds, many blocks":
        assert read.max() > 4 + 2 * 64  # the points drawn in bulk, and two blocks
    if name == "often on all data":
        assert 0.2 < on_all < 0.9
    else:
        assert on_all < 0.1


@pytest.mark.slow
def test_the_draws_are_right_after_warm_up():
    sampler = mintmc.ScalableMH(bounds_of("logistic"))
    worst, tree = worst_distance(sampler, warmup=500)
    assert worst < LIMIT
    assert tree.attrs["data_touched_setup"][0] >= 2 * N  # the mode, and the expansion there


# The location of Cauchy noise, whose likelihoods are curved upwards and downwards, with bounds that are used up: what
# rows say is of either sign, and much is left to them at order 1.
CAUCHY = np.random.default_rng(1).standard_cauchy(60).astype(np.float32)


def cauchy_distance(times=1.0):
    """The largest distance of the first two moments from quadrature, in standard errors."""
    grid = np.linspace(-3, 3, 6001)
    log_density = -np.log1p((CAUCHY.astype(float) - grid[:, None]) ** 2).sum(axis=1)
    weight = np.exp(log_density - log_density.max())
    exact = [(weight * grid**k).sum() / weight.sum() for k in (1, 2)]
    bounds = mintmc.RegressionBounds.student_t(np.ones((60, 1)), degrees=1.0)
    bounds = replace(bounds, second=times * bounds.second)
    posterior = mintmc.Posterior(lambda t, y: -jnp.log1p((y - t[0]) ** 2), CAUCHY)
    at = np.array([exact[0]])
    sampler = mintmc.ScalableMH(bounds, order=1, centre=at, proposal=mintmc.RandomWalk(step_size=0.4))
    tree = mintmc.sample(posterior, sampler, init=at, draws=10_000, warmup=0, progress=False, seed=5)
    theta = tree.posterior.theta.values[..., 0].astype(float)[:, 500:]
    return max(distance(theta**k, value) for k, value in zip((1, 2), exact, strict=True)), tree


@pytest.mark.slow
def test_rows_of_either_sign_are_weighed_right():
    worst, tree = cauchy_distance()
    assert worst < LIMIT
    assert int(tree.sample_stats["bound_violations"].sum()) == 0
    assert 0 < float(tree.sample_stats["on_all_data"].mean()) < 0.2  # both kinds of steps


@pytest.mark.parametrize("name", ["kept the wrong way", "weights forgotten"])
def test_a_broken_twin_is_caught(name, monkeypatch):
    monkeypatch.setattr(scalable, *BROKEN[name])
    assert cauchy_distance()[0] > LIMIT


def test_bounds_that_do_not_hold_are_counted_and_said(monkeypatch):
    # They are refused near init; but they might hold there and not elsewhere.
    monkeypatch.setattr("mintmc.samplers.scalable._check_they_hold", lambda *args: None)
    worst, tree = cauchy_distance(times=0.3)
    violations = int(tree.sample_stats["bound_violations"].sum())
    assert violations > 1000
    said = mintmc.diagnose(tree)
    assert not said.trusted
    assert any(f"bounds were violated {violations:,} times: this run is not exact" in w for w in said.warnings)
    assert worst > LIMIT  # and so it is


@pytest.mark.slow
def test_a_first_stage_that_is_forgotten_is_caught(monkeypatch):
    monkeypatch.setattr(Expansion, "total", lambda self, here, there: jnp.zeros(()))
    assert worst_distance(sampler_of())[0] > LIMIT


@pytest.mark.slow
def test_a_walk_whose_ratio_is_forgotten_is_caught():
    assert worst_distance(sampler_of(proposal=drifting_walk(correct=False)))[0] > LIMIT


def run(posterior=None, sampler=None, init=None, **settings):
    sampler = sampler or sampler_of(**settings)
    posterior = posterior or posterior_of("logistic")
    return mintmc.sample(
        posterior, sampler, init=np.zeros(2) if init is None else init, draws=5, warmup=5, progress=False
    )


OTHER = mintmc.Posterior(lambda t, row: jax.nn.log_sigmoid(row @ t), X[::-1].copy())
MISTAKES = {
    # name: (what to call, error, what the message says)
    "no bounds": (lambda: mintmc.ScalableMH(None), TypeError, "bounds must be RegressionBounds .* got None"),
    "rows for bounds": (lambda: mintmc.ScalableMH(X), TypeError, "bounds must be RegressionBounds"),
    "order 3": (lambda: sampler_of(order=3), ValueError, r"order must be in \[1, 2\], got 3"),
    "no third derivative": (
        lambda: mintmc.ScalableMH(mintmc.RegressionBounds(X, second=1.0)),
        ValueError,
        "bounds must have third, a bound on that derivative, for order 2, got None",
    ),
    "temperature negative": (lambda: sampler_of(temperature=-1.0), ValueError, r"temperature must be in \(0, inf\)"),
    "unknown temper": (lambda: sampler_of(temper="x"), ValueError, "temper must be one of 'posterior'.*got 'x'"),
    "around the mode at order 1": (
        lambda: sampler_of(order=1, proposal=mintmc.Autoregressive()),
        ValueError,
        "order must be 2 for Autoregressive, which needs the curvature, got 1",
    ),
    "gradient": (
        lambda: run(proposal=mintmc.Langevin()),
        ValueError,
        "proposal must be one without gradient.*got Langevin",
    ),
    "bounds of other rows": (
        lambda: run(sampler=mintmc.ScalableMH(mintmc.RegressionBounds.logistic(X[:50]))),
        ValueError,
        "bounds must be of n=200 rows, got 50",
    ),
    "bounds of other columns": (
        lambda: run(sampler=mintmc.ScalableMH(mintmc.RegressionBounds.logistic(np.ones((N, 3))))),
        ValueError,
        "bounds.x must have one column for each of the d=2 parameters, got 3",
    ),
    "rows in another order": (
        lambda: run(OTHER),
        ValueError,
        "bounds.x must be the rows x_i of a log_likelihood that depends on x_i'params alone, got row 0",
    ),
    "bounds too small": (
        lambda: run(times=0.001),
        ValueError,
        "bounds must hold for log_likelihood, got a remainder near init of .* in row .* is allowed",
    ),
    "a distance that is a vector": (
        lambda: run(sampler=mintmc.ScalableMH(mintmc.RemainderBounds(np.ones(N), lambda a, b, c: a - b))),
        ValueError,
        r"distance must return a scalar, got shape \(2,\)",
    ),
    "a centre of another form": (
        lambda: run(centre=np.zeros(3)),
        ValueError,
        "centre must have the form of init",
    ),
    "a centre that is not finite": (lambda: run(centre=np.array([np.nan, 0])), ValueError, "centre must be finite"),
    "no data": (
        lambda: run(mintmc.Posterior.from_density(log_prior)),
        ValueError,
        "posterior must have data.*got a density without data",
    ),
}


test_mistakes_are_refused = each_refused(MISTAKES)


@pytest.mark.usefixtures("no_compiler")
def test_a_centre_far_from_any_mode_is_refused():
    with pytest.raises(ValueError, match=r"centre must lie within 10 standard deviations of a mode \(None finds it\)"):
        run(centre=np.array([3.0, 3.0]))
