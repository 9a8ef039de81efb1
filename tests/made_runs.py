"""Trees as whole runs leave them, with all that ``diagnose`` and ``report`` read: made, not sampled."""

import json

import jax.numpy as jnp
import numpy as np
import xarray

import mintmc
from made_tree import made_tree
from mintmc.result.ladder import LadderFacts, ladder_group

DENSITY = mintmc.Posterior.from_density(lambda p: -0.5 * sum(jnp.sum(leaf**2) for leaf in p.values()))
STRANGE = "<script>alert('x')</script> $\\alpha$ & \"quoted\""
"""A name as users may give it."""
AUDIT = {
    "rung": 0,
    "temperature": 1.0,
    "pairs": 64,
    "bias": 0.01,
    "bias_error": 0.01,
    "parameter": 0,
    "spread": 0.002,
    "spread_error": 0.004,
    "log_ratio_noise": 0.2,
    "noise_known": 1.0,
    "without_variance": 0.0,
    "skewness": 0.01,
    "excess_kurtosis": 0.02,
    "impossible": 0,
    "impossible_moves": 0.0,
    "undefined": 0,
}


def whole_run(theta, init=None, temperature=1.0, noise=0.2, **settings):
    """A run whose chains moved along ``theta`` (chain, draw, d); trusted if they agree."""
    shape, rng = theta.shape[:2], np.random.default_rng(7)
    statistics = {
        "acceptance_rate": rng.uniform(0.3, 0.9, shape),
        "log_ratio_noise": noise * rng.exponential(size=shape),
        "data_touched": np.full(shape, 100),
        **settings.pop("statistics", {}),
    }
    facts = {"undefined_moves": 0, "step_size": [0.1] * shape[0], "data_touched_setup": [0] * shape[0]}
    facts |= {"starts_apart": True, "audit": json.dumps([AUDIT])} | settings
    init = {"beta": np.zeros(theta.shape[2], np.float32)} if init is None else init
    return made_tree(DENSITY, init, theta, temperature, statistics=statistics, **facts)


def good(chains=4, draws=500, dim=3, **settings):
    return whole_run(np.random.default_rng(0).normal(size=(chains, draws, dim)), **settings)


def bad(chains=4, draws=500, dim=3):
    """Chains that are far apart, of which one hardly moves."""
    theta = np.random.default_rng(0).normal(size=(chains, draws, dim)) + 3 * np.arange(chains)[:, None, None]
    return whole_run(theta, noise=9.0)


def strange(draws=400):
    """Names that would be code if they were not escaped, and a parameter that never changed."""
    theta = np.random.default_rng(0).normal(size=(2, draws, 3))
    theta[..., 1] = 5.0  # leaves of a dict are in the order of its keys
    init = {STRANGE.replace("/", ""): 0.0, "constant": 0.0, "x" * 150: 0.0}
    return whole_run(theta, init={name: np.float32(value) for name, value in init.items()})


def swapping(chains=4, draws=500, rungs=12):
    """Parallel tempering on many rungs up to a high temperature."""
    replica = np.stack([np.roll(np.arange(rungs), step) for step in range(draws)], axis=1)
    more = {"round_trips": np.arange(3, 3 + chains), "replica": np.repeat(replica[:, None], chains, axis=1)}
    return _on_a_ladder("swap", chains, draws, rungs, {}, more)


def jumping(chains=4, draws=500, rungs=8, rings=6):
    """An equi-energy sampler, on batches but for its coldest rung; some of its rings are empty."""
    occupancy = np.random.default_rng(3).dirichlet(np.ones(rings), size=(rungs, chains))
    occupancy[2:4, :, -2:] = 0
    edges = np.broadcast_to(np.arange(1.0, rings), (rungs, chains, rings - 1))
    rates = {"empty_rings": np.zeros((rungs, chains))}
    return _on_a_ladder("jump", chains, draws, rungs, rates, {"ring_occupancy": occupancy, "ring_edges": edges})


def _on_a_ladder(exchange, chains, draws, rungs, rates, more):
    rng, each = np.random.default_rng(1), (rungs, chains)
    temperatures = np.geomspace(1, 12345, rungs)
    rates = {
        "acceptance_rate": rng.uniform(0.3, 0.6, each),
        "log_ratio_noise": rng.uniform(0, 2, each),
        f"{exchange}_rate": rng.uniform(0.5, 0.9, each),
        f"{exchange}_noise": np.zeros(each),
        **rates,
    }
    energy = temperatures[:, None, None] * rng.gamma(3.0, size=(rungs, chains, draws))
    facts = LadderFacts(temperatures, [1000] * rungs, energy, rates, **more)
    return good(chains, draws, groups={"ladder": ladder_group(facts)}, audit="[]")


def leaping(chains=4, draws=500, modes=12):
    """A run that knows its modes."""
    rng = np.random.default_rng(2)
    mode = rng.integers(0, modes, (chains, draws))
    theta = rng.normal(size=(chains, draws, 5))
    theta[..., 1] += 8 * mode
    theta[..., 4] -= 5 * (mode % 3)
    shares = np.stack([np.bincount(own, minlength=modes) / draws for own in mode])
    rates = rng.uniform(0.2, 0.9, (chains, draws))
    known = {
        "weight": ("mode", shares.mean(axis=0)),
        "chain_weight": (("chain", "mode"), shares),
        "fitted_weight": ("mode", np.full(modes, 1 / modes)),
        "energy": ("mode", rng.uniform(3, 5, modes)),
        "starts": ("mode", rng.integers(2, 30, modes)),
    }
    statistics = {"mode": mode, "leap_from": mode, "leap_rate": rates, "leap_noise": np.zeros((chains, draws))}
    coords = {"mode": np.arange(modes), "chain": np.arange(chains)}
    groups, facts = {"modes": xarray.Dataset(known, coords)}, {"modes_unseen": 0.1, "modes_late": [], "audit": "[]"}
    return whole_run(theta, statistics=statistics, groups=groups, modes_crowded_out=0, **facts)
