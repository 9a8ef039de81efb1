"""Exact invariance: draw from the target, apply the kernel, compare with the target.

The target is the tempered posterior of a Gaussian mean: N(0, 1/n_eff) exactly, and differences of log-likelihoods are
normal, so that mini-batch kernels with the penalty are exact as well (up to the estimate of the variance).
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.acceptance.base import log_uniform
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.proposals import Tuning
from truth import LIMIT, apply_kernel, gaussian_data, gaussian_log_likelihood, mostly_slow

N_EFF, M, STATES = 100, 200, 40_000
MANY = mintmc.Posterior(gaussian_log_likelihood, gaussian_data(20_000))  # for batches
FEW = mintmc.Posterior(gaussian_log_likelihood, gaussian_data(100))  # for full passes
TEMPERATURE, FULL_TEMPERATURE = MANY.n / N_EFF, FEW.n / N_EFF


@dataclass(frozen=True)
class LangevinWithoutReverse(mintmc.Langevin):
    """Broken: as if the proposal were symmetric."""

    def move(self, randomness, here, visit, tuning):
        there, ratio = super().move(randomness, here, visit, tuning)
        return there, jnp.zeros_like(ratio)


def drifting_walk(correct):
    """A walk that prefers to go right, with and without the ratio that makes up for it."""

    def sample(key, theta):
        return theta + 0.1 * jax.random.normal(key) + 0.05

    def log_ratio(here, there):
        return (-((here - there - 0.05) ** 2) + (there - here - 0.05) ** 2) / (2 * 0.1**2)

    return mintmc.Custom(sample, log_ratio if correct else None)


@dataclass(frozen=True)
class KeyUsedTwice(MetropolisKernel):
    """Broken: proposal and decision from one key."""

    def randomness(self, key):
        return super().randomness(key)._replace(test=log_uniform(jax.random.split(key)[0], self.dtype))


def worst_distance(sampler, kind=MetropolisKernel, steps=4, step_size=0.15, posteriors=(FEW, MANY), precision=N_EFF):
    """Largest distance, in standard errors, of mean, variance and fourth moment after a few steps."""
    posterior = posteriors[0] if isinstance(sampler, mintmc.MetropolisHastings) else posteriors[1]
    kernel = kind(**vars(sampler.kernel(posterior.flat(0.0))))
    z = np.random.default_rng(7).normal(size=(STATES, 1)).astype(np.float32)
    # Exact moments of the starting sample, so that only what the kernel adds is judged.
    z = (z - z.mean()) / z.std()
    tuning = Tuning(jnp.asarray(step_size), None)
    ends = apply_kernel(kernel, posterior, z / np.sqrt(precision), tuning, steps, seed=11)
    ends = ends[:, 0].astype(float) * np.sqrt(precision)
    deviations = [ends.mean() / 1, (np.mean(ends**2) - 1) / np.sqrt(2), (np.mean(ends**4) - 3) / np.sqrt(96)]
    return float(np.max(np.abs(deviations)) * np.sqrt(STATES))


def mint(**settings):
    return mintmc.MINT(**({"batch_size": M, "temperature": TEMPERATURE} | settings))


QUICK = ("full random walk", "full Langevin", "full Hamiltonian", "MINT random walk", "MINT Langevin")
RIGHT = {
    "full random walk": mintmc.MetropolisHastings(mintmc.RandomWalk(), temperature=FULL_TEMPERATURE),
    "full Langevin": mintmc.MetropolisHastings(mintmc.Langevin(), temperature=FULL_TEMPERATURE),
    "full Hamiltonian": mintmc.MetropolisHastings(mintmc.Hamiltonian(steps=3), temperature=FULL_TEMPERATURE),
    "full custom": mintmc.MetropolisHastings(drifting_walk(correct=True), temperature=FULL_TEMPERATURE),
    "MINT random walk": mint(),
    "MINT Langevin": mint(proposal=mintmc.Langevin()),
    "MINT Hamiltonian": mint(proposal=mintmc.Hamiltonian(steps=3)),
    "MINT custom": mint(proposal=drifting_walk(correct=True)),
}


@pytest.mark.parametrize("name", mostly_slow(RIGHT, *QUICK))
def test_the_target_is_invariant(name):
    assert worst_distance(RIGHT[name]) < LIMIT


BROKEN = {
    "wrong n_eff": replace(RIGHT["MINT random walk"], temperature=TEMPERATURE * 1.1),
    "wrong n_eff, full": replace(RIGHT["full random walk"], temperature=FULL_TEMPERATURE * 1.1),
    "no reverse density": mint(proposal=LangevinWithoutReverse()),
    "no reverse density, full": mintmc.MetropolisHastings(LangevinWithoutReverse(), temperature=FULL_TEMPERATURE),
    "no reverse density, custom": mint(proposal=drifting_walk(correct=False)),
    "no penalty": mint(penalty=False),
    "independent batches without penalty": mint(estimator="independent", penalty=False),
}


@pytest.mark.parametrize(
    "name", mostly_slow(BROKEN, "wrong n_eff", "wrong n_eff, full", "no reverse density, full", "no penalty")
)
def test_a_broken_twin_is_caught(name):
    assert worst_distance(BROKEN[name], steps=6) > LIMIT


@pytest.mark.parametrize("name", mostly_slow(["MINT random walk", "full random walk"], "full random walk"))
def test_a_key_used_twice_is_caught(name):
    assert worst_distance(RIGHT[name], KeyUsedTwice, steps=6) > LIMIT


PRIOR, JACOBIAN, T = 60.0, 40.0, 2.0
"""Precisions of a normal prior and of a factor that stands for a Jacobian, and the temperature of full passes."""
LIKELIHOOD = {
    # name: (sampler, precision)
    "full Langevin": (
        mintmc.MetropolisHastings(mintmc.Langevin(), temperature=T, temper="likelihood"),
        100 / T + PRIOR + JACOBIAN,
    ),
    "full random walk, posterior": (mintmc.MetropolisHastings(temperature=T), (100 + PRIOR) / T + JACOBIAN),
    "MINT Langevin": (mint(proposal=mintmc.Langevin(), temper="likelihood"), N_EFF + PRIOR + JACOBIAN),
}


def with_prior(jacobian_in_the_prior=False):
    def log_prior(theta):
        return -(PRIOR + JACOBIAN * jacobian_in_the_prior) * theta**2 / 2

    log_jacobian = None if jacobian_in_the_prior else lambda theta: -JACOBIAN * theta**2 / 2
    return [
        mintmc.Posterior(gaussian_log_likelihood, few_or_many.data, log_prior, log_jacobian=log_jacobian)
        for few_or_many in (FEW, MANY)
    ]


WITH_PRIOR = with_prior()


@pytest.mark.parametrize("name", mostly_slow(LIKELIHOOD, "full Langevin", "full random walk, posterior"))
def test_what_is_not_tempered_stays_as_it_is(name):
    sampler, precision = LIKELIHOOD[name]
    assert worst_distance(sampler, posteriors=WITH_PRIOR, precision=precision) < LIMIT


@pytest.mark.parametrize("name", mostly_slow(["full Langevin", "MINT Langevin"], "full Langevin"))
def test_a_tempered_prior_is_caught(name):
    sampler, precision = LIKELIHOOD[name]
    sampler = replace(sampler, temper="posterior")
    assert worst_distance(sampler, posteriors=WITH_PRIOR, precision=precision) > LIMIT


def test_a_tempered_jacobian_is_caught():
    sampler, precision = LIKELIHOOD["full random walk, posterior"]
    assert worst_distance(sampler, posteriors=with_prior(jacobian_in_the_prior=True), precision=precision) > LIMIT


def rates_distance(jacobian_in_the_prior):
    """Of rates on the log scale at T = 5 from their gamma law, in standard errors."""
    x, a, b, temperature = np.random.default_rng(0).exponential(size=10), 3.0, 2.0, 5.0

    def log_prior(eta):  # gamma(a, b), in terms of the rate
        return (a - 1) * eta - b * jnp.exp(eta) + jacobian_in_the_prior * eta

    posterior = mintmc.Posterior(
        lambda eta, x: eta - jnp.exp(eta) * x,
        x.astype(np.float32),
        log_prior,
        log_jacobian=None if jacobian_in_the_prior else lambda eta: eta,
    )
    # What a sampler of the rate itself has: its density to the power 1/T.
    shape, rate = (len(x) + a - 1) / temperature + 1, (x.sum() + b) / temperature
    eta = np.log(np.random.default_rng(1).gamma(shape, 1 / rate, size=(STATES, 1))).astype(np.float32)
    kernel = mintmc.MetropolisHastings(temperature=temperature).kernel(posterior.flat(0.0))
    tuning = Tuning(jnp.asarray(1.0), None)
    ends = np.exp(apply_kernel(kernel, posterior, eta, tuning, steps=6, seed=3).astype(float))
    return abs(ends.mean() - shape / rate) / (np.sqrt(shape) / rate) * np.sqrt(STATES)


def test_a_tempered_law_does_not_depend_on_the_parametrisation():
    assert rates_distance(jacobian_in_the_prior=False) < LIMIT
    # The broken twin: a Jacobian in the prior is tempered with it.
    assert rates_distance(jacobian_in_the_prior=True) > LIMIT
