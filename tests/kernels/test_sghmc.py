"""SGHMC against its own law: it is not exact, but its error is known.

On a normal target the update of (theta, r) is linear with normal noise, so its covariance P solves P = A P A' + Q; on
the double well of the paper's Figure 1 the law of (theta, r) is found on a grid.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.stats

import mintmc
from mintmc.energy import Tempered
from mintmc.kernels import sghmc
from mintmc.kernels.schedule import Polynomial
from mintmc.samplers.stochastic_gradient import SGHMC, SGLD
from truth import LIMIT, distance, gaussian_data, gaussian_log_likelihood

N = 500
X = gaussian_data(N).astype(float)
GAUSS = mintmc.Posterior(gaussian_log_likelihood, X)


def run(sampler, posterior=GAUSS, init=0.0, **settings):
    # Nothing is adapted: without warm-up one program less is compiled, which is what takes time here.
    settings = {"draws": 40_000, "warmup": 0, "chains": 4, "seed": 1, "progress": False} | settings
    return mintmc.sample(posterior, sampler, init=init, **settings)


def theta_of(tree, name="theta", skip=200):
    """Draws without the first 200, made on the way from the start: the slowest target here forgets it in 100 steps."""
    group = "posterior" if tree.attrs["temperature"] == 1 else "tempered_posterior"
    return tree[group][name].values[:, skip:].astype(float)


def gradient_noise(x, m, temperature=1.0):
    """Variance of the batch gradient: n_eff^2 times that of a mean of m of n rows without replacement."""
    n = len(x)
    return (n / temperature) ** 2 * np.var(x, ddof=1) / m * (1 - m / n)


def linear_update(step, friction, precision, noise, noise_estimate):
    """A and Q of (theta, r) <- A (theta, r) + N(0, Q)."""
    kept = 1 - step * friction
    matrix = np.array([[1 - step**2 * precision, step * kept], [-step * precision, kept]])
    pushed = 2 * step * (friction - step * noise_estimate / 2) + step**2 * noise
    return matrix, pushed * np.array([[step**2, step], [step, 1.0]])


def stationary_covariance(*settings):
    return scipy.linalg.solve_discrete_lyapunov(*linear_update(*settings))


def moments_of(theta, step):
    """(theta^2, theta r, r^2) draw by draw: from one draw to the next theta moves by eps r."""
    momentum = np.diff(theta, axis=1) / step
    theta = theta[:, 1:]
    return theta**2, theta * momentum, momentum**2


def worst_distance(tree, step, covariance):
    exact = covariance[0, 0], covariance[0, 1], covariance[1, 1]
    return max(distance(f, e) for f, e in zip(moments_of(theta_of(tree), step), exact, strict=True))


def setting(m, temperature, step, friction, share):
    """A sampler, and the covariance that its draws must have; ``share`` of the gradient noise is corrected for."""
    precision, noise = N / temperature, gradient_noise(X, m, temperature)
    sampler = SGHMC(m, step, friction, share * noise, temperature=temperature, batching="uniform")
    return sampler, stationary_covariance(step, friction, precision, noise, share * noise)


CASES = {
    # name: (m, T, eps, C, share of the noise that is corrected); the frequency is sqrt(n/T) = 22 or 7
    "all data": (N, 1.0, 0.03, 10.0, 0.0),
    "all data, much friction": (N, 1.0, 0.03, 30.0, 0.0),
    "batches, noise known": (50, 1.0, 0.01, 30.0, 1.0),
    "batches, noise ignored": (50, 1.0, 0.01, 30.0, 0.0),
    "batches, half of the noise known": (50, 1.0, 0.01, 30.0, 0.5),
    "batches, all noise from the gradient": (50, 1.0, 0.01, 0.01 * gradient_noise(X, 50) / 2, 1.0),
    "batches, hot": (50, 10.0, 0.1, 5.0, 1.0),
}


@pytest.mark.parametrize("name", CASES)
def test_the_stationary_law_is_the_lyapunov_solution(name):
    sampler, covariance = setting(*CASES[name])
    assert worst_distance(run(sampler), sampler.step_size, covariance) < LIMIT


@pytest.mark.parametrize("name", CASES)
def test_the_documented_variance_is_the_lyapunov_solution(name):
    m, temperature, step, friction, share = CASES[name]
    precision, noise = N / temperature, gradient_noise(X, m, temperature)
    heating = 1 + step * (1 - share) * noise / (2 * friction)
    exact = heating / precision / (1 - step**2 * precision / (4 - 2 * step * friction))
    np.testing.assert_allclose(setting(*CASES[name])[1][0, 0], exact, rtol=1e-9)


def test_noise_that_is_ignored_heats():
    # With the noise known the variance is 1.5% too large, ignored 78%.
    ignored, _ = setting(*CASES["batches, noise ignored"])
    _, covariance = setting(*CASES["batches, noise known"])
    assert worst_distance(run(ignored), ignored.step_size, covariance) > LIMIT


@pytest.mark.parametrize("every", [1, 7])
def test_resampled_momentum(every):
    # The covariance has a period: Cov(r) = 1 and Cov(theta, r) = 0 again before every 7th step.
    m, step, friction = 100, 0.02, 10.0
    noise = gradient_noise(X, m)
    matrix, pushed = linear_update(step, friction, N, noise, 0.0)
    covariance = np.eye(2) / N
    for _ in range(2000):
        covariance, phases = np.diag([covariance[0, 0], 1.0]), []
        for _ in range(every):
            covariance = matrix @ covariance @ matrix.T + pushed
            phases.append(covariance)
    tree = run(SGHMC(m, step, friction, resample_every=every, batching="uniform"))
    assert worst_distance(tree, step, np.mean(phases, axis=0)) < LIMIT
    # It is not what it would be without.
    never = stationary_covariance(step, friction, N, noise, 0.0)
    assert worst_distance(tree, step, never) > LIMIT


def test_with_all_friction_it_is_sgld():
    # eps C = 1 leaves no momentum: theta <- theta + eps^2 g + N(0, 2 eps^2), SGLD of step 2 eps^2, path by path.
    step = 0.02
    vector, unravel = jax.flatten_util.ravel_pytree(jnp.zeros(()))
    model, batch = GAUSS.model(unravel, 1), {"gradient": GAUSS.rows[:50]}
    with_momentum = SGHMC(50, step, 1 / step).kernel(model, vector, unravel, lambda p: p)
    without = SGLD(50, 2 * step**2).kernel(model, vector, unravel, lambda p: p)
    state, other = with_momentum.init(vector, batch), without.init(vector, batch)
    for t in range(5):
        noise = with_momentum.randomness(jax.random.key(t))
        state, _ = with_momentum.advance(noise, state, batch, None)
        other, _ = without.advance(noise.push, other, batch, None)
        np.testing.assert_allclose(state.theta, other.theta, rtol=1e-4)  # float32 differences of larger numbers


@dataclass(frozen=True)
class SumOfTheBatch(Tempered):
    """Broken: the gradient of the batch is not scaled up by n/m."""

    def batch_gradient(self, theta, batch):
        return super().batch_gradient(theta, batch) * 50 / N


def halved_noise(kernel, settings):
    """Broken: N(0, eps (C - B)), the factor 2 forgotten."""
    return kernel._replace(
        randomness=lambda key: (noise := kernel.randomness(key))._replace(push=noise.push / np.sqrt(2))
    )


def noise_added_instead(kernel, settings):
    """Broken: C + B for C - B."""
    return sghmc.kernel(settings._replace(noise_estimate=-settings.noise_estimate))


def noise_as_large_as_its_variance(kernel, settings):
    """Broken: B = V/2, without eps."""
    return sghmc.kernel(settings._replace(noise_estimate=settings.noise_estimate / 0.01))


def no_scaling(kernel, settings):
    target = settings.target
    return sghmc.kernel(settings._replace(target=SumOfTheBatch(target.model, target.temperature, target.temper)))


def position_before_momentum(kernel, settings):
    """Broken: theta moves with the momentum of before the push."""

    def advance(noise, state, batch, tuning):
        after, info = kernel.advance(noise, state, batch, tuning)
        return after._replace(theta=state.theta + settings.step_size * state.momentum), info

    return kernel._replace(advance=advance)


BROKEN = [halved_noise, noise_added_instead, noise_as_large_as_its_variance, no_scaling, position_before_momentum]


@pytest.mark.parametrize("twin", BROKEN)
def test_a_broken_twin_is_caught(twin, monkeypatch):
    build, inside = sghmc.kernel, []

    def broken(settings):
        if inside:  # called by the twin itself
            return build(settings)
        inside.append(True)
        return twin(build(settings), settings)

    monkeypatch.setattr(sghmc, "kernel", broken)
    sampler, covariance = setting(*CASES["batches, noise known"])
    assert worst_distance(run(sampler), sampler.step_size, covariance) > LIMIT


# Figure 1 of Chen, Fox & Guestrin: U = -2 x^2 + x^4, gradient noise N(0, 4), C = 3, eps = .1.
STEP, FRICTION, NOISE = 0.1, 3.0, 4.0


def double_well():
    """The prior is the target; a row z adds z theta, with sum z = 0, and a single row a noise of variance 4."""
    z = scipy.stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
    return mintmc.Posterior(lambda t, z: z * t, z * np.sqrt(NOISE / z.var()) / len(z), lambda t: 2 * t**2 - t**4)


def well_slope(x):
    return -4 * x + 4 * x**3


def law_on_a_grid(slope, pushed):
    """The stationary law of x for slope U', where r gets noise of variance ``pushed``: the chain's own, by quadrature.

    p'(x', r') = sum over r of p(x' - eps r', r) N(r'; a r - eps U'(x' - eps r'), pushed), on a grid that eps r fits.
    """
    r = np.arange(-40, 41) * 0.2  # noise of sd 0.8 between points 0.2 apart: quadrature is exact to 1e-10 and better
    x = np.arange(-130, 131) * 0.02  # 0.02 = eps * 0.2
    mean = (1 - STEP * FRICTION) * r[None, None, :] - STEP * slope(x)[:, None, None]
    to = np.exp(-((r[None, :, None] - mean) ** 2) / (2 * pushed))  # x, r', r
    law = np.exp(2 * x**2 - x**4)[:, None] * np.exp(-(r**2) / 2)[None, :]
    for _ in range(600):
        after = (to @ law[:, :, None])[:, :, 0]
        law = np.stack([_shifted(column, k) for column, k in zip(after.T, range(-40, 41), strict=True)], axis=1)
        law /= law.sum()
    return x, law.sum(axis=1)


def _shifted(column, places):
    moved = np.roll(column, places)
    if places > 0:
        moved[:places] = 0
    elif places < 0:
        moved[places:] = 0
    return moved


def virial(x):
    """x U'(x), 1 on average under exp(-U) (by parts), and T under exp(-U/T)."""
    return x * well_slope(x)


def on_the_barrier(x):
    """A smooth bump between the wells."""
    return np.exp(-((x / 0.4) ** 2))


@pytest.fixture(scope="module")
def laws():
    known = law_on_a_grid(well_slope, 2 * STEP * FRICTION)
    ignored = law_on_a_grid(well_slope, 2 * STEP * FRICTION + STEP**2 * NOISE)
    return {NOISE: known, 0.0: ignored}


def test_the_grid_agrees_with_lyapunov():
    x, law = law_on_a_grid(lambda x: 8 * x, 2 * STEP * FRICTION)
    np.testing.assert_allclose(law @ x**2, stationary_covariance(STEP, FRICTION, 8.0, 0.0, 0.0)[0, 0], rtol=1e-8)


def test_the_bias_on_the_double_well_is_what_is_documented(laws):
    errors = {}
    for estimate, (x, law) in laws.items():
        target = np.exp(2 * x**2 - x**4)
        target /= target.sum()
        np.testing.assert_allclose(target @ virial(x), 1.0, rtol=1e-9)
        errors[estimate] = np.abs(law - target).sum() / 2, law @ virial(x) - 1
    # Total variation from the exact density, and by how much it runs too hot: 1.8% with the noise known, 8.6% without.
    np.testing.assert_allclose(errors[NOISE], (0.00733, 0.0183), rtol=0.01)
    np.testing.assert_allclose(errors[0.0], (0.01740, 0.0863), rtol=0.01)


@pytest.mark.parametrize("estimate", [NOISE, 0.0])
def test_figure_1_the_double_well(laws, estimate):
    sampler = SGHMC(1, STEP, FRICTION, estimate, batching="uniform")
    theta = theta_of(run(sampler, double_well(), draws=60_000, thin=4))
    for f in (np.square, virial, on_the_barrier):
        x, law = laws[estimate]
        assert distance(f(theta), law @ f(x)) < LIMIT
    # Known and ignored noise can be told apart.
    x, law = laws[NOISE - estimate]
    assert distance(virial(theta), law @ virial(x)) > LIMIT


def test_params_may_be_a_tree_and_noise_a_vector():
    data = {"x": X, "y": np.stack([X[::-1], X / 2], axis=1)}

    def log_likelihood(p, row):
        return -0.5 * (row["x"] - p["a"]) ** 2 - 2.0 * jnp.sum((row["y"] - p["b"]) ** 2)

    m, step, friction = 100, 0.005, 100.0
    # The gradient for b is 4 (y - b) a row.
    noise = np.array([gradient_noise(scale * X, m) for scale in (1.0, 4.0, 2.0)])
    sampler = SGHMC(m, step, friction, noise, batching="uniform")
    tree = run(sampler, mintmc.Posterior(log_likelihood, data), init={"a": 0.0, "b": np.zeros(2)})
    columns = [theta_of(tree, "a"), *np.moveaxis(theta_of(tree, "b"), -1, 0)]
    for column, precision, v in zip(columns, (N, 4 * N, 4 * N), noise, strict=True):
        assert distance(column**2, stationary_covariance(step, friction, precision, v, v)[0, 0]) < LIMIT


@pytest.mark.parametrize("temper", ["posterior", "likelihood"])
def test_prior_and_likelihood_are_tempered_as_asked(temper):
    prior_precision, temperature, m, step, friction = 200.0, 10.0, 100, 0.05, 10.0
    posterior = mintmc.Posterior(gaussian_log_likelihood, X, lambda mean: -0.5 * prior_precision * mean**2)
    precision = N / temperature + prior_precision * (1 / temperature if temper == "posterior" else 1.0)
    noise = gradient_noise(X, m, temperature)
    sampler = SGHMC(m, step, friction, noise, temperature=temperature, temper=temper, batching="uniform")
    covariance = stationary_covariance(step, friction, precision, noise, noise)
    assert distance(theta_of(run(sampler, posterior)) ** 2, covariance[0, 0]) < LIMIT


def test_decreasing_steps():
    # The covariance of step t follows P <- A P A' + Q: what the weighted average must be is known.
    m, friction, warmup, draws, chains = 50, 20.0, 100, 2000, 60
    noise = gradient_noise(X, m)
    schedule = Polynomial.between(0.03, 0.003, warmup + draws)
    sampler = SGHMC(m, schedule, friction, batching="uniform")
    tree = run(sampler, draws=draws, warmup=warmup, chains=chains)
    steps = schedule.at(np.arange(warmup + draws))
    covariance, variances = np.zeros((2, 2)), []
    for step in steps:
        matrix, pushed = linear_update(step, friction, N, noise, 0.0)
        covariance = matrix @ covariance @ matrix.T + pushed
        variances.append(covariance[0, 0])
    recorded = tree.sample_stats["step_size"].values
    np.testing.assert_allclose(recorded[0], steps[warmup:], rtol=1e-5)
    averages = np.average(theta_of(tree, skip=0) ** 2, weights=recorded, axis=1)  # one for each chain: independent
    assert distance(averages[None], np.average(variances[warmup:], weights=steps[warmup:])) < LIMIT


def test_it_stays_in_the_mode_where_it_starts():
    # Tied means (Welling & Teh): modes at (0, 1) and (1, -1), with a barrier of about 40 at n = 10,000.
    rng = np.random.default_rng(0)
    x = rng.normal(size=10_000) * np.sqrt(2) + (rng.random(10_000) < 0.5)

    def log_likelihood(t, x):
        return jnp.logaddexp(-((x - t[0]) ** 2) / 4, -((x - t[0] - t[1]) ** 2) / 4)

    posterior = mintmc.Posterior(log_likelihood, x, lambda t: -(t[0] ** 2) / 20 - t[1] ** 2 / 2)
    starts = mintmc.PerChain(np.array([[0.0, 1.0], [1.0, -1.0]]))
    settings = {"init": starts, "chains": 2, "draws": 10_000}
    cold = theta_of(run(SGHMC(100, 3e-3, 50.0), posterior, **settings))[..., 1]
    assert (cold[0] > 0).all()
    assert (cold[1] < 0).all()
    # At T = 1000 nothing is left of the barrier.
    hot = theta_of(run(SGHMC(100, 0.1, 1.0, temperature=1000.0), posterior, **settings))[..., 1]
    assert ((hot > 0).mean(axis=1) > 0.2).all()
    assert ((hot < 0).mean(axis=1) > 0.2).all()


def test_what_is_recorded():
    tree = run(SGHMC(50, 1e-3, 10.0), draws=100, warmup=30, thin=3)
    stats = tree.sample_stats
    assert (stats["data_touched"] == 150).all()
    assert tree.attrs["data_touched_setup"] == [30 * 50] * 4
    assert stats["accepted"].all()
    assert (stats["acceptance_rate"] == 1).all()
    assert (stats["log_ratio_noise"] == 0).all()
    np.testing.assert_allclose(stats["step_size"], 1e-3, rtol=1e-6)


def test_a_step_that_diverges_is_kept_back_and_counted():
    tree = run(SGHMC(10, 0.2, 1.0), draws=200)  # eps^2 H = 20, stable below 4 - 2 eps C
    accepted = tree.sample_stats["accepted"].values
    assert np.isfinite(theta_of(tree, skip=0)).all()
    assert accepted[:, 0].all()
    assert not accepted[:, -1].any()
    assert tree.attrs["undefined_moves"] == (~accepted).sum()


def test_an_undefined_step_keeps_position_and_momentum():
    vector, unravel = jax.flatten_util.ravel_pytree(jnp.zeros(()))
    model = mintmc.Posterior(lambda t, x: jnp.where(x > 0, jnp.nan, 1.0) * t, X).model(unravel, 1)
    kernel = SGHMC(1, 0.1, 1.0, resample_every=1).kernel(model, vector, unravel, lambda p: p)
    fine, bad = {"gradient": jnp.array([-1.0])}, {"gradient": jnp.array([1.0])}
    first, info = kernel.step(jax.random.key(0), kernel.init(vector, fine), fine, None)
    assert info.is_defined
    second, info = kernel.step(jax.random.key(1), first, bad, None)
    assert not info.is_defined
    assert (second.theta, second.momentum, second.time) == (first.theta, first.momentum, 2)


GOOD = SGHMC(10, 1e-3, 1.0)

MISTAKES = {
    # name: (what to call, error, what the message says)
    "batch of none": (lambda: replace(GOOD, batch_size=0), ValueError, "batch_size must be at least 1, got 0"),
    "batch above n": (lambda: run(SGHMC(501, 1e-3, 1.0)), ValueError, r"batch_size must be in \[1, n=500\], got 501"),
    "step 0": (lambda: replace(GOOD, step_size=0.0), ValueError, r"step_size must be in \(0, inf\), got 0"),
    "no friction": (lambda: replace(GOOD, friction=0.0), ValueError, r"friction must be in \(0, inf\), got 0"),
    "friction below the noise": (
        lambda: replace(GOOD, noise_estimate=4000.0),
        ValueError,
        r"friction must be at least step_size \* noise_estimate / 2 = 2 .*got 1",
    ),
    "friction below the noise of one parameter": (
        lambda: replace(GOOD, noise_estimate=[0.0, 4000.0]),
        ValueError,
        r"friction must be at least step_size \* noise_estimate / 2 = 2 .*got 1",
    ),
    "friction below the noise at the first step": (
        lambda: replace(GOOD, step_size=Polynomial.between(1e-2, 1e-4, 100), noise_estimate=400.0),
        ValueError,
        r"friction must be at least step_size \* noise_estimate / 2 = 2 .*got 1",
    ),
    "friction above 1/step": (
        lambda: replace(GOOD, friction=2000.0),
        ValueError,
        "friction must be at most 1/step_size = 1000, got 2000",
    ),
    "negative noise": (
        lambda: replace(GOOD, noise_estimate=-1.0),
        ValueError,
        r"noise_estimate must be a number or a vector of numbers in \[0, inf\), got -1.0",
    ),
    "nan noise": (lambda: replace(GOOD, noise_estimate=[1.0, np.nan]), ValueError, "noise_estimate must be.*nan"),
    "noise a word": (lambda: replace(GOOD, noise_estimate="low"), TypeError, "noise_estimate must be.*got 'low'"),
    "noise a matrix": (lambda: replace(GOOD, noise_estimate=np.eye(2)), ValueError, "noise_estimate must be a number"),
    "noise of another size": (
        lambda: run(replace(GOOD, noise_estimate=np.ones(3))),
        ValueError,
        r"noise_estimate must be a number or have shape \(1,\), got shape \(3,\)",
    ),
    "never resampled": (
        lambda: replace(GOOD, resample_every=0),
        ValueError,
        "resample_every must be at least 1, got 0",
    ),
    "temperature 0": (lambda: replace(GOOD, temperature=0.0), ValueError, r"temperature must be in \(0, inf\), got 0"),
    "unknown temper": (lambda: replace(GOOD, temper="x"), ValueError, "temper must be one of 'posterior'.*got 'x'"),
    "unknown batching": (lambda: replace(GOOD, batching="x"), ValueError, "batching must be one of.*got 'x'"),
    "density without data": (
        lambda: run(GOOD, mintmc.Posterior.from_density(lambda t: -(t**2))),
        ValueError,
        "posterior must have data to take mini-batches of",
    ),
    "not differentiable": (
        lambda: run(GOOD, mintmc.Posterior(lambda t, x: -jnp.asarray(np.asarray(t > x), float), X)),
        ValueError,
        "SGHMC needs a log density that JAX can differentiate",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.usefixtures("no_compiler")
def test_mistake_is_refused(name):
    call, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        call()
