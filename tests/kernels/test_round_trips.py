"""Swap rates and round trips of parallel tempering on a Gaussian path, against theory."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.energy import Density
from mintmc.kernels.parallel_tempering import SCHEMES, ParallelTemperingKernel
from mintmc.proposals import Proposal, Tuning
from truth import LIMIT, quickly_compiled

TEMPERATURES = (1.0, 2.0, 5.0, 9.0, 20.0, 60.0)
NOTHING = {"all": None}


@dataclass(frozen=True)
class Independent(Proposal):
    """Draws from N(0, step_size^2): with step size sqrt(T) it explores a rung in one move, always accepted."""

    step_size: ClassVar[None] = None
    preconditioner: ClassVar[None] = None
    uses_gradient: ClassVar[bool] = False
    visits: ClassVar[int] = 1

    def randomness(self, key, dim, dtype):
        return jax.random.normal(key, (dim,), dtype)

    def move(self, randomness, here, visit, tuning):
        there = visit(tuning.step_size * randomness)
        ratio = (jnp.vdot(there.theta, there.theta) - jnp.vdot(here.theta, here.theta)) / (2 * tuning.step_size**2)
        return there, ratio


def explore(scheme, scans=4000, ladders=64):
    """Statistics of every scan of independent ladders on a Gaussian path, (ladders, scans, ...)."""
    model = mintmc.Posterior.from_density(lambda x: -0.5 * jnp.sum(x**2)).model(lambda theta: theta, 2)
    reference = Density(*jnp.zeros(3))
    settings = (reference, TEMPERATURES, (0,) * 6, scheme, True, 2, reference.prior.dtype)
    kernel = ParallelTemperingKernel(model, Independent(), *settings)
    tuning = Tuning(jnp.sqrt(jnp.asarray(TEMPERATURES)), None)

    def one(key):
        def scan(state, key):
            state, info = kernel.step(key, state, NOTHING, tuning)
            return state, {name: info[name] for name in ("swaps", "swap_rate", "round_trips", "replica")}

        return jax.lax.scan(scan, kernel.init(jnp.ones(2), NOTHING), jax.random.split(key, scans))[1]

    keys = jax.random.split(jax.random.key(5), ladders)
    return jax.tree.map(np.asarray, quickly_compiled(jax.vmap(one))(keys))


@pytest.fixture(scope="module")
def explored():
    return {scheme: explore(scheme) for scheme in SCHEMES}


def rejections(info):
    return 1 - info["swap_rate"].sum(axis=(0, 1)) / info["swaps"].sum(axis=(0, 1))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_swap_rates_of_a_gaussian_path(explored, scheme):
    info = explored[scheme]
    # Energies of N(0, T) in two dimensions are exponential with mean T: acceptance 2 P(h_i > h_{i+1}).
    t = np.array(TEMPERATURES)
    exact = 2 * t[:-1] / (t[:-1] + t[1:])
    tried = info["swaps"].sum(axis=(0, 1))
    error = 0.5 / np.sqrt(tried)  # no probability varies more
    assert np.abs((1 - rejections(info)) - exact).max() < LIMIT * error.max()
    # Every other pair in every scan: half of all scans each, up to the coin.
    np.testing.assert_allclose(tried / info["swaps"][..., 0].size, 0.5, atol=0 if scheme == "deo" else 0.01)


def round_trip_rates(rejections):
    """Round trips a scan of all replicas together, for deo and seo: see ``ladder/barrier.py``."""
    inefficiency = np.sum(rejections / (1 - rejections))
    return 1 / (2 + 2 * inefficiency), 1 / (2 * len(rejections) + 2 * inefficiency)


def measured_rate(info):
    """Round trips a scan and its standard error; the start is cut off, until replicas have been everywhere."""
    each = info["round_trips"][:, 500:].mean(axis=1)
    return each.mean(), each.std(ddof=1) / np.sqrt(len(each))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_round_trips_are_as_frequent_as_theory_says(explored, scheme):
    info = explored[scheme]
    predicted = round_trip_rates(rejections(info))[SCHEMES.index(scheme)]
    rate, error = measured_rate(info)
    assert abs(rate - predicted) < LIMIT * error
    assert error < 0.02 * predicted


def test_deo_is_not_as_slow_as_seo(explored):
    info = explored["deo"]
    rate, error = measured_rate(info)
    assert rate - round_trip_rates(rejections(info))[1] > 10 * error


@pytest.mark.parametrize("scheme", SCHEMES)
def test_round_trips_are_counted_by_replica(explored, scheme):
    info = explored[scheme]
    status, trips = [0] * 5 + [1], []
    for on_rung in info["replica"][0]:
        cold, hot = on_rung[0], on_rung[-1]
        trips.append(int(status[hot] == 2))
        status[hot] = 1
        status[cold] = 2 if status[cold] else 0
    assert sum(trips) > 100
    np.testing.assert_array_equal(info["round_trips"][0], trips)
    # A replica moves by one rung at most.
    place = np.argsort(info["replica"], axis=-1)
    assert np.abs(np.diff(place, axis=1)).max() == 1
