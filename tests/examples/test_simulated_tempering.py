"""Simulated tempering is exact on rung 0 of a density with two modes, and visits rungs as its weights say."""

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.energy import Density
from mistakes import each_refused
from simulated_tempering import SimulatedTempering
from truth import LIMIT, distance

APART, LEFT = 6.0, 0.3
"""Of the two modes: how far each is from 0, and the probability of the left one."""
LADDER = mintmc.Ladder.geometric(hottest=20, rungs=4)


def log_density(x):
    left, right = -0.5 * (x + APART) ** 2, -0.5 * (x - APART) ** 2
    return jnp.logaddexp(jnp.log(LEFT) + left, jnp.log(1 - LEFT) + right)


TWO_MODES = mintmc.Posterior.from_density(log_density)
GRID = np.linspace(-60, 60, 20_001)  # 60 is beyond 12 standard deviations of the hottest rung
ENERGY = -np.asarray(log_density(GRID), np.float64)
Z = np.array([np.trapezoid(np.exp(-ENERGY / t), GRID) for t in LADDER.temperatures])


def run(log_weights=None, posterior=TWO_MODES):
    sampler = SimulatedTempering(LADDER, log_weights, mintmc.RandomWalk(step_size=2.0))
    settings = {"draws": 60_000, "warmup": 0, "chains": 4, "progress": False}
    return mintmc.sample(posterior, sampler, init=APART, **settings)


def errors(tree, log_weights):
    """Distances from the truth in standard errors: moments on rung 0, each a ratio of means, and visits to rungs."""
    theta, rung = tree.posterior.theta.values.astype(float), tree["sample_stats"]["rung"].values
    is_cold, visits = rung == 0, Z * np.exp(log_weights)
    density = np.exp(-ENERGY) / Z[0]
    found = [
        distance(is_cold * (f(theta) - np.trapezoid(f(GRID) * density, GRID)), 0)
        for f in (lambda x: x < 0, lambda x: x, lambda x: x**2)
    ]
    return found + [distance(rung == k, visits[k] / visits.sum()) for k in range(len(LADDER))]


@pytest.mark.parametrize("log_weights", [np.zeros(4), -np.log(Z)], ids=["flat weights", "weights that even out"])
def test_rung_0_is_the_posterior_and_rungs_are_visited_as_weighed(log_weights):
    assert max(errors(run(tuple(log_weights.tolist())), log_weights)) < LIMIT


def test_a_wrong_ratio_would_be_caught(monkeypatch):
    """The broken twin: half of the energy is lost on the way to the ladder, and not in local moves."""
    energy_above = Density.energy_above
    monkeypatch.setattr(Density, "energy_above", lambda *args: 0.5 * energy_above(*args))
    anew = mintmc.Posterior.from_density(log_density)  # of which nothing was compiled
    found = errors(run(posterior=anew), np.zeros(4))
    assert max(found[:3]) > LIMIT
    assert max(found[3:]) > LIMIT


MISTAKES = {
    "weights": (lambda: SimulatedTempering(LADDER, [0.0]), "log_weights must have one entry for each of 4 rungs"),
    "ladder": (lambda: SimulatedTempering(3), TypeError, "ladder must be a mintmc.Ladder, got 3"),
    "gradient": (
        lambda: mintmc.sample(TWO_MODES, SimulatedTempering(LADDER, proposal=mintmc.Langevin()), init=0.0),
        "ladder and proposal must be without batches and gradients",
    ),
}
test_a_mistake_is_refused = each_refused(MISTAKES)
