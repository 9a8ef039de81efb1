"""Ladders that samplers tune by themselves: right weights of modes with no setting at all, and stores that remember."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

import mintmc
from mintmc.ladder.ladder import Ladder
from mintmc.samplers.tuned import Pilot, evened
from truth import LIMIT, distance

SETTINGS = {"draws": 4000, "warmup": 500, "progress": False}
WEIGHT = 0.3


def bimodal(x):
    """Weights 0.3 and 0.7, ten standard deviations of the wide one apart."""
    wide, narrow = -0.5 * (x + 5) ** 2, -0.5 * ((x - 5) / 0.5) ** 2 - jnp.log(0.5)
    return jnp.logaddexp(jnp.log(WEIGHT) + wide, jnp.log(1 - WEIGHT) + narrow)


DENSITY = mintmc.Posterior.from_density(bimodal)


def ladder_of(tree):
    return json.loads(tree.attrs["sampler_settings"])["ladder"]["temperatures"]["tuple"]


@pytest.fixture(scope="module")
def tree():
    return mintmc.sample(DENSITY, mintmc.ParallelTempering(), init=5.0, **SETTINGS)


def test_both_modes_of_a_density_get_their_weights(tree):
    is_left = tree.posterior.theta.values < 0
    assert distance(is_left, WEIGHT) < LIMIT
    assert is_left.mean(axis=1).min() > 0.2
    # The broken twin: chains without a ladder hardly leave the mode where they started.
    alone = mintmc.sample(DENSITY, mintmc.MetropolisHastings(), init=5.0, **SETTINGS)
    assert (alone.posterior.theta.values < 0).mean(axis=1).min() < 0.01


def test_the_ladder_is_told_and_about_half_of_its_swaps_are_accepted(tree):
    temperatures = ladder_of(tree)
    assert (temperatures[0], temperatures[-1]) == (1.0, 100.0)
    assert f"ladder of {len(temperatures)} rungs up to T = 100 tuned by pilot runs" in tree.attrs["settled"]
    rates = tree.ladder.swap_rate.mean("chain").values[:-1]
    assert 0.3 < rates.min() <= rates.max() < 0.8


def symmetric_data():
    """x ~ N(theta^2, 3): two modes, of weights that the prior makes unequal; the exact ones by quadrature."""
    x = np.random.default_rng(1).normal(4.0, 3.0, size=60)
    grid = np.linspace(-6, 6, 20_001)
    log_density = -0.5 * ((x[:, None] - grid**2) / 3) ** 2
    log_density = log_density.sum(axis=0) - 0.5 * ((grid - 0.5) / 2) ** 2
    weight = np.exp(logsumexp(log_density[grid < 0]) - logsumexp(log_density))
    posterior = mintmc.Posterior(lambda t, x: -0.5 * ((x - t**2) / 3) ** 2, x, lambda t: -0.5 * ((t - 0.5) / 2) ** 2)
    return posterior, weight


def test_both_modes_of_few_data_get_their_weights_and_pilots_are_counted():
    posterior, weight = symmetric_data()
    assert 0.1 < weight < 0.4
    tree = mintmc.sample(posterior, mintmc.ParallelTempering(), init=2.0, **SETTINGS)
    assert distance(tree.posterior.theta.values < 0, weight) < LIMIT
    assert ladder_of(tree)[-1] == posterior.n
    # Two pilots of two chains: 1,000 steps each of some rungs that read all data.
    assert tree.attrs["data_touched_setup"][0] > 2 * 2 * 1000 * 3 * posterior.n


@pytest.mark.slow
def test_equi_energy_tunes_the_same_way():
    sampler = mintmc.EquiEnergy(jump_probability=0.3)
    tree = mintmc.sample(DENSITY, sampler, init=5.0, draws=8000, warmup=1000, progress=False)
    assert abs((tree.posterior.theta.values < 0).mean() - WEIGHT) < 0.05
    assert "tuned by pilot runs" in tree.attrs["settled"]


def test_a_stored_run_goes_on_with_its_ladder_and_tunes_none_again(tmp_path, monkeypatch):
    path, settings = tmp_path / "run.zarr", {"init": 5.0, "warmup": 100, "chains": 2, "progress": False}
    whole = mintmc.sample(DENSITY, mintmc.ParallelTempering(), draws=300, **settings)
    first = mintmc.sample(DENSITY, mintmc.ParallelTempering(), draws=100, out=path, **settings)

    def again(*_):
        raise AssertionError("tuned again")

    monkeypatch.setattr("mintmc.samplers.on_ladder.tuned", again)
    on = mintmc.resume(path, DENSITY, draws=200, progress=False)
    same = mintmc.sample(DENSITY, mintmc.ParallelTempering(), draws=300, out=path, **settings)
    for tree in (on, same, whole):
        for name in ("sampler_settings", "settled", "data_touched_setup"):
            assert tree.attrs[name] == first.attrs[name]
    np.testing.assert_array_equal(same.posterior.theta, whole.posterior.theta)
    with pytest.raises(ValueError, match=r"which differs: sampler\.scheme was deo, now seo"):
        mintmc.sample(DENSITY, mintmc.ParallelTempering(scheme="seo"), draws=300, out=path, **settings)


def test_rungs_follow_from_the_barrier():
    ladder = Ladder.geometric(16.0, 5)
    pilot = Pilot(np.full(4, 0.75), None, 0)
    assert len(evened(ladder, pilot)) == 7  # a barrier of 3: six pairs
    np.testing.assert_allclose(evened(ladder, pilot).temperatures, np.geomspace(1, 16, 7))
    assert len(evened(ladder, Pilot(np.zeros(4), None, 0))) == 3
    assert len(evened(ladder, pilot, rungs=4)) == 4


@pytest.mark.parametrize(("n", "smallest"), [(10_000, 50), (60, 30)])
def test_mintee_needs_no_settings(n, smallest):
    ladder = mintmc.MINTEE().for_data(n).settled_ladder
    assert ladder.temperatures[0] == 1
    assert ladder.temperatures[-1] == pytest.approx(n / smallest**0.99)
    assert ladder.batch_sizes is not None
