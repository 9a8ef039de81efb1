"""Draws that are wrong are called wrong, and draws that are right are not: the law's error beside the verdict.

Every case has one parameter, so that the exact law is a sum over a grid. Wrong is more than 0.1 standard deviations in
the mean or 5% in the spread.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.result.law import audits
from truth import mostly_slow

pytestmark = pytest.mark.audited
WRONG_BIAS, WRONG_SPREAD = 0.1, 0.05


@dataclasses.dataclass(frozen=True)
class Case:
    """A sampler, data, a model (in jax.numpy, and in numpy for the exact law), and where the law lies."""

    sampler: Any
    data: np.ndarray
    model: tuple[Callable, Callable]
    grid: tuple[float, float]
    init: float
    log_prior: Any = None  # 0 on the grid, -inf elsewhere


class Judged:
    """Errors of the draws, in standard deviations and of them, and what is said of them."""

    def __init__(self, case, draws=8000, warmup=500, seed=1, **settings):
        log_likelihood, on_grid = case.model
        x = case.data.astype(np.float32)
        posterior = mintmc.Posterior(log_likelihood, x, case.log_prior)
        run = {"init": case.init, "draws": draws, "warmup": warmup, "seed": seed, "progress": False} | settings
        self.tree = mintmc.sample(posterior, case.sampler, **run)
        n_eff = len(x) / case.sampler.target_temperature(len(x))
        mean, deviation = exact_law(on_grid, x.astype(float), n_eff, *case.grid)
        group = "posterior" if "posterior" in self.tree.children else "tempered_posterior"
        theta = self.tree[group].theta.values.astype(float)
        self.bias, self.spread = (theta.mean() - mean) / deviation, theta.std() / deviation - 1
        self.verdict = mintmc.diagnose(self.tree)

    @property
    def is_wrong(self):
        return abs(self.bias) > WRONG_BIAS or abs(self.spread) > WRONG_SPREAD


def exact_law(log_likelihood, x, n_eff, low, high):
    """Mean and standard deviation of exp(n_eff * mean log-likelihood), in float64."""
    grid = np.linspace(low, high, 2001)
    values, counts = np.unique(x, return_counts=True)
    levels = np.array([np.average(log_likelihood(t, values), weights=counts) for t in grid])
    weights = np.exp(n_eff * (levels - levels.max()))
    weights /= weights.sum()
    mean = weights @ grid
    return mean, np.sqrt(weights @ (grid - mean) ** 2)


def same(formula):
    """A formula that reads the same in jax.numpy and in numpy."""
    return lambda t, x: formula(jnp, t, x), lambda t, x: formula(np, t, x)


GAUSS = same(lambda xp, t, x: -0.5 * (x - t) ** 2)
EXPONENTIAL = same(lambda xp, t, x: t - xp.exp(t) * x)
POISSON = same(lambda xp, t, x: x * t - xp.exp(t))
GAMMA = same(lambda xp, t, x: 2 * t - xp.exp(t) * x)
LOGISTIC = same(lambda xp, t, x: -xp.logaddexp(0.0, -t * x))
CHANCE = same(lambda xp, t, x: x * xp.log(t) + (1 - x) * xp.log1p(-t))
LOG_ODDS = same(lambda xp, t, x: x * t - xp.logaddexp(0.0, t))

N = 50_000
RNG = np.random.default_rng(3)
RARE = (RNG.random(200_000) < 0.002).astype(float)
NORMAL, EXPO, COUNTS, GAMMAS = RNG.normal(size=N), RNG.exponential(size=N), RNG.poisson(3.0, N), RNG.gamma(2.0, size=N)
LOGNORMAL = np.exp(1.5 * RNG.normal(size=N))
HEAVY = np.random.default_rng(2).standard_t(2, size=10_000)
SIGNED = RNG.normal(size=N) * np.where(RNG.random(N) < jax.nn.sigmoid(1.0), 1, -1)


def inside(t):
    return jnp.where((t > 0) & (t < 1), 0.0, -jnp.inf)


def mint(m, n_eff, n=N, **settings):
    return mintmc.MINT(m, temperature=n / n_eff, **settings)


# As found: rare events -0.28 standard deviations, lognormal data 0.32, exponential 0.12, all trusted; SGLD and SGHMC
# with 41 and 60 times the right variance.
WRONG = {
    "rare events": Case(mintmc.MINT(500, alpha=0.95), RARE, CHANCE, (1e-6, 0.05), 0.004, inside),
    "lognormal data": Case(mint(100, 20), LOGNORMAL, EXPONENTIAL, (-4, 2), -1.1),
    "exponential data": Case(mint(30, 25), EXPO, EXPONENTIAL, (-2, 2), 0.0),
    "Student's t(2) data": Case(mint(100, 90, 10_000), HEAVY, GAUSS, (-1, 1), 0.0),
    "no penalty": Case(mint(200, 60, penalty=False), NORMAL, GAUSS, (-1.5, 1.5), 0.0),
    "SGLD": Case(mintmc.SGLD(100, step_size=0.1 / N), NORMAL, GAUSS, (-0.05, 0.05), 0.0),
    "SGHMC": Case(mintmc.SGHMC(100, step_size=0.1 / N**0.5, friction=0.5 * N**0.5), NORMAL, GAUSS, (-0.05, 0.05), 0.0),
}


@pytest.mark.parametrize("name", mostly_slow(WRONG, "rare events", "SGLD"))
def test_a_wrong_law_is_called_wrong(name):
    judged = Judged(WRONG[name])
    assert judged.is_wrong
    assert any("all data" in warning or "no variance" in warning for warning in judged.verdict.warnings)
    (audit,) = audits(judged.tree)
    if "bias" in audit and abs(judged.bias) > WRONG_BIAS:
        # What the audit expects is what the draws show, to about a third, or within its own error.
        assert abs(audit["bias"] - judged.bias) < 0.4 * abs(judged.bias) + 0.05 + 2 * audit["bias_error"]


# The mean noise of the last is 191, because of hopeless proposals; weighed by acceptance it is 0.3.
RIGHT = {
    "Gauss": Case(mintmc.MINT(1000, alpha=0.99), NORMAL, GAUSS, (-0.5, 0.5), 0.0),
    "Poisson": Case(mintmc.MINT(500, alpha=0.8), COUNTS, POISSON, (0, 2), 1.1),
    "gamma": Case(mintmc.MINT(500, alpha=0.8), GAMMAS, GAMMA, (-1, 1), 0.0),
    "logistic": Case(mintmc.MINT(500, alpha=0.8), SIGNED, LOGISTIC, (-1, 3), 1.0),
    "Langevin": Case(mintmc.MINT(500, alpha=0.8, proposal=mintmc.Langevin()), COUNTS, POISSON, (0, 2), 1.1),
    "recycled, no penalty": Case(
        mintmc.MINT(1000, alpha=0.45, estimator="recycled", penalty=False), NORMAL, GAUSS, (-2, 2), 0.0
    ),
    "BarkerMH": Case(mintmc.BarkerMH(100, temperature=N / 100), NORMAL, GAUSS, (-1, 1), 0.0),
    "SGLD": Case(mintmc.SGLD(N // 2, step_size=0.05 / N), NORMAL, GAUSS, (-0.05, 0.05), 0.0),
    "exponential data, hot": Case(mint(30, 5), EXPO, EXPONENTIAL, (-5, 4), 0.0),
}


@pytest.mark.parametrize("name", mostly_slow(RIGHT, "Poisson", "exponential data, hot"))
def test_a_right_law_is_not_blamed(name):
    judged = Judged(RIGHT[name], draws=20_000)
    assert not judged.is_wrong
    assert judged.verdict.trusted, judged.verdict


# As found, trusted: -34 standard deviations with 28 times the spread, and -38.
@pytest.mark.parametrize(
    "sampler", [mintmc.BarkerMH(100, temperature=200.0), mintmc.AustereMH(500, epsilon=0.01, temperature=200.0)]
)
def test_a_growing_batch_does_not_stop_on_a_variance_that_it_cannot_know(sampler):
    judged = Judged(Case(sampler, RARE, LOG_ODDS, (-16, -2), -6.2), draws=1000, warmup=300, chains=2, audit=False)
    # 1,000 draws of two chains tell a mean to about a tenth of a standard deviation.
    assert abs(judged.bias) < 0.4
    assert abs(judged.spread) < 0.3


def test_batches_without_variance_are_told():
    judged = Judged(WRONG["rare events"], draws=1000)
    # A batch of 500 has no event with probability 0.37.
    assert 0.2 < audits(judged.tree)[0]["without_variance"] < 0.6
    assert any("show no variance" in warning for warning in judged.verdict.warnings)


def test_a_support_that_depends_on_the_parameters_is_told():
    # Uniform on (0, t): a batch does not know the largest row.
    x = np.random.default_rng(0).uniform(0, 1, size=5000)
    uniform = mintmc.Posterior(lambda t, x: jnp.where(x < t, -jnp.log(t), -jnp.inf), x)
    tree = mintmc.sample(uniform, mintmc.MINT(100, alpha=0.5), init=1.1, draws=500, progress=False)
    assert any("likelihood zero on all data" in warning for warning in mintmc.diagnose(tree).warnings)


@pytest.mark.parametrize(("location", "coarse"), [(1e6, True), (1e5, True), (10.0, False)])
def test_a_parameter_that_float32_cannot_resolve_is_told(location, coarse):
    density = mintmc.Posterior.from_density(lambda t: -0.5 * ((t - location) / 0.01) ** 2)
    walk = mintmc.RandomWalk(step_size=0.02)
    tree = mintmc.sample(density, mintmc.MetropolisHastings(walk), init=location, draws=4000, progress=False)
    said = any("float32 is too coarse for theta" in warning for warning in mintmc.diagnose(tree).warnings)
    assert said == coarse


def test_one_undefined_noise_does_not_hide_the_others():
    tree = Judged(WRONG["no penalty"], draws=500, audit=False).tree
    tree.sample_stats["log_ratio_noise"][:] = 9.0
    tree.sample_stats["log_ratio_noise"][0, 0] = np.nan
    assert any("log-ratio noise 9.0 is above" in warning for warning in mintmc.diagnose(tree).warnings)


def test_a_batch_of_one_row_has_no_noise_to_judge():
    case = Case(mintmc.MINT(1, alpha=0.5, penalty=False), NORMAL, GAUSS, (-5, 5), 0.0)
    assert any("noise of the log ratio is not known" in w for w in Judged(case, draws=500).verdict.warnings)


def test_advice_names_settings_that_the_sampler_has():
    case = Case(
        mintmc.AustereMH(100, epsilon=0.4, temperature=N / 100, proposal=mintmc.RandomWalk(step_size=3.0)),
        NORMAL,
        GAUSS,
        (-1, 1),
        0.0,
    )
    assert not any("alpha" in warning for warning in Judged(case, draws=300, audit=False).verdict.warnings)


def test_without_an_audit_it_is_said():
    judged = Judged(RIGHT["Poisson"], draws=500, audit=False)
    assert any("not compared with all data" in note for note in judged.verdict.notes)
    assert "What it cannot know" in str(judged.verdict)


def test_chains_that_start_in_one_place_cannot_know_of_other_modes():
    one_place = Judged(RIGHT["Poisson"], draws=500, audit=False)
    assert any("started in one place" in note for note in one_place.verdict.notes)
    apart = Judged(RIGHT["Poisson"], draws=500, audit=False, init=mintmc.PerChain(np.array([0.7, 1.0, 1.3, 1.6])))
    assert not any("started in one place" in note for note in apart.verdict.notes)


@pytest.mark.parametrize(("starts", "is_said"), [([9.0, 10.0, 11.0, 12.0], True), ([-10.0, 10.0, 11.0, 15.0], False)])
def test_chains_that_start_within_one_mode_cannot_know_of_another(starts, is_said):
    """Two modes, at -10 and 10: from starts around one of them no chain disagrees. As found: trusted without a word."""
    modes = mintmc.Posterior.from_density(lambda t: jnp.logaddexp(-0.5 * (t - 10) ** 2, -0.5 * (t + 10) ** 2))
    init = mintmc.PerChain(np.array(starts))
    tree = mintmc.sample(modes, mintmc.MetropolisHastings(), init=init, draws=4000, progress=False)
    verdict = mintmc.diagnose(tree)
    assert verdict.trusted == is_said  # chains in both modes disagree
    assert any("within the range of their draws" in note for note in verdict.notes) == is_said
