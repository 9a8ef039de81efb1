"""A small run on three parameters, to be stopped: alone, or on a ladder."""

from functools import cache

import numpy as np

import mintmc

SAMPLERS = {
    "metropolis-hastings": mintmc.MetropolisHastings(),
    "equi-energy": mintmc.EquiEnergy(mintmc.Ladder([1, 4]), round_length=70, feed=70, capacity=50),
}


@cache
def density():
    """One object: what was compiled for it serves all runs."""
    return mintmc.Posterior.from_density(lambda p: -0.5 * (p["a"] ** 2 + (p["b"] ** 2).sum()))


def run(name="metropolis-hastings", **settings):
    settings = {"draws": 5000, "warmup": 100, "chains": 2, "progress": False} | settings
    return mintmc.sample(density(), SAMPLERS[name], init={"a": 0.0, "b": np.zeros(2)}, **settings)
