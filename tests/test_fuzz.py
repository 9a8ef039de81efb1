"""Every public argument gets everything that it should not: each call succeeds or says what is wrong, in one line."""

import inspect
import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from fuzzing import POOL, deadline, unclear

import mintmc
import mintmc.run.program

N = 100
X = np.random.default_rng(0).normal(size=N)
X2 = np.stack([X, X[::-1]], axis=1)
SIGNS = np.where(X > 0, 1.0, -1.0)
LADDER = mintmc.Ladder([1, 4])
NEVER_BUILT = {"Audit", "Bound", "Diagnosis", "Normality"}
"""Results, which users read and do not make, and a protocol."""


class Reached(Exception):
    """All checks were passed: from here on it would compile and run."""


def log_likelihood(theta, x):
    return -0.5 * (x - theta) ** 2


def functions(log_likelihood, data, log_prior, init):
    return run(mintmc.Posterior(log_likelihood, data, log_prior), init=init)


def density(log_density, init):
    return run(mintmc.Posterior.from_density(log_density), mintmc.MetropolisHastings(), init=init)


def proposed(sample, log_ratio):
    return run(POSTERIOR, mintmc.MetropolisHastings(mintmc.Custom(sample, log_ratio)))


def with_proxy(remainder, centre, every):
    return run(POSTERIOR, mintmc.ConfidenceMH(proxy=mintmc.TaylorProxy(remainder, centre, every), batch_size=10))


def with_bound(bound):
    return run(POSTERIOR, mintmc.ConfidenceMH(bound, batch_size=10))


def with_distance(scales, distance):
    return run(POSTERIOR, mintmc.TunaMH(scales, distance))


def with_reference(reference, feed, steps, rings, capacity, jump_probability):
    settings = {"feed": feed, "steps": steps, "rings": rings, "capacity": capacity}
    sampler = mintmc.EquiEnergy(LADDER, reference=reference, jump_probability=jump_probability, **settings)
    return run(POSTERIOR, sampler)


def with_preconditioner(preconditioner, step_size):
    return run(POSTERIOR, mintmc.MetropolisHastings(mintmc.Langevin(step_size, preconditioner=preconditioner)))


def run(posterior, sampler=None, init=0.0, **settings):
    sampler = sampler or mintmc.MINT(batch_size=10, alpha=0.5)
    return mintmc.sample(posterior, sampler, init=init, draws=3, warmup=3, chains=1, progress=False, **settings)


POSTERIOR = mintmc.Posterior(log_likelihood, X)
GOOD = {
    # name: (what to call, arguments without a default, or with one that is not the usual case)
    "MINT": (mintmc.MINT, {"batch_size": 10, "alpha": 0.5}),
    "MINTEE": (mintmc.MINTEE, {"smallest_batch": 10}),
    "MINTEE.for_data": (mintmc.MINTEE(10).for_data, {"n": N}),
    "SGHMC": (mintmc.SGHMC, {"batch_size": 10, "step_size": 0.1, "friction": 1.0}),
    "SGLD": (mintmc.SGLD, {"batch_size": 10, "step_size": 0.1}),
    "AustereMH": (mintmc.AustereMH, {}),
    "AustereMH.conservative": (mintmc.AustereMH.conservative, {"n": 2000, "max_error": 0.1}),
    "BarkerMH": (mintmc.BarkerMH, {}),
    "ConfidenceMH": (mintmc.ConfidenceMH, {"bound": "oracle"}),
    "Custom": (mintmc.Custom, {"sample": lambda key, x: x}),
    "EquiEnergy": (mintmc.EquiEnergy, {"ladder": LADDER}),
    "FireflyMC": (mintmc.FireflyMC, {"bound": mintmc.JaakkolaJordan.untuned(X2, SIGNS)}),
    "Hamiltonian": (mintmc.Hamiltonian, {}),
    "JaakkolaJordan": (mintmc.JaakkolaJordan.untuned, {"x": X2, "y": SIGNS}),
    "JaakkolaJordan.tuned": (mintmc.JaakkolaJordan.tuned, {"x": X2, "y": SIGNS, "theta_map": np.zeros(2)}),
    "Ladder": (mintmc.Ladder, {"temperatures": [1, 4]}),
    "Ladder.mint": (mintmc.Ladder.mint, {"n": N, "smallest_batch": 10, "growth": 1.4, "alpha": 0.9}),
    "Ladder.geometric": (mintmc.Ladder.geometric, {"hottest": 9, "rungs": 3}),
    "Langevin": (mintmc.Langevin, {}),
    "MetropolisHastings": (mintmc.MetropolisHastings, {}),
    "ParallelTempering": (mintmc.ParallelTempering, {"ladder": LADDER}),
    "PerChain": (lambda params: run(POSTERIOR, init=mintmc.PerChain(params)), {"params": np.zeros(1)}),
    "Polynomial": (mintmc.Polynomial, {"a": 0.1, "b": 1.0, "gamma": 0.6}),
    "Polynomial.between": (mintmc.Polynomial.between, {"first": 0.1, "last": 0.01, "steps": 100}),
    "Posterior": (mintmc.Posterior, {"log_likelihood": log_likelihood, "data": X}),
    "Posterior.from_density": (mintmc.Posterior.from_density, {"log_density": lambda x: -(x**2)}),
    "Posterior.energy": (POSTERIOR.energy, {"params": 0.0}),
    "QuantileRings": (mintmc.QuantileRings, {}),
    "RandomWalk": (mintmc.RandomWalk, {}),
    "SpacedRings": (mintmc.SpacedRings, {}),
    "TaylorProxy": (mintmc.TaylorProxy, {"remainder": lambda here, there, centre: 0.0}),
    "TunaMH": (mintmc.TunaMH, {"scales": np.ones(N)}),
    "TunaMH.logistic": (mintmc.TunaMH.logistic, {"x": X2}),
    "logistic_bound": (mintmc.logistic_bound, {"x": X2}),
    "logistic_remainder": (mintmc.logistic_remainder, {"x": X2}),
    "relative_variance": (mintmc.relative_variance, {"weights": [0.5, 0.5]}),
    "normality": (mintmc.normality, {"posterior": POSTERIOR, "params": 0.0, "batch_size": 10, "batches": 5}),
    "sample": (
        mintmc.sample,
        {"posterior": POSTERIOR, "sampler": mintmc.MINT(10, alpha=0.5), "init": 0.0, "chains": 1, "progress": False},
    ),
    "tune_ladder": (
        mintmc.tune_ladder,
        {"posterior": POSTERIOR, "init": 0.0, "hottest": 4.0, "rungs": 2, "chains": 1},
    ),
    "a model": (functions, {"log_likelihood": log_likelihood, "data": X, "log_prior": None, "init": 0.0}),
    "a density": (density, {"log_density": lambda x: -(x**2), "init": 0.0}),
    "a proposal": (proposed, {"sample": lambda key, x: x, "log_ratio": None}),
    "a proxy": (with_proxy, {"remainder": lambda here, there, at: 0.0, "centre": None, "every": None}),
    "a bound": (with_bound, {"bound": lambda here, there: 1.0}),
    "a distance": (with_distance, {"scales": np.ones(N), "distance": None}),
    "a ladder": (
        with_reference,
        {"reference": None, "feed": None, "steps": None, "rings": [1.0], "capacity": 10, "jump_probability": 0.1},
    ),
    "a preconditioner": (with_preconditioner, {"preconditioner": None, "step_size": 0.1}),
}
FROM_FILES = {"open_data", "prepare", "resume", "audit_rung", "diagnose", "diagnose_ladder", "mode_weights", "plot_ladder"}
