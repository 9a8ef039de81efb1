"""The equi-energy sampler end to end: weights of modes, mixed ladders, what is recorded and what is counted."""

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.experiments.tied_means import experiment as tied_means
from mintmc.ladder.rings import subset_size
from mintmc.run import driver
from truth import LIMIT, gaussian_data, gaussian_log_likelihood, mostly_slow

LIGHT, HEAVY = 0.2, 0.8
# Twelve standard deviations apart: with steps of about two, a chain at T = 1 never crosses.
TWO_MODES = mintmc.Posterior.from_density(
    lambda x: jnp.logaddexp(np.log(LIGHT) - 0.5 * (x + 6) ** 2, np.log(HEAVY) - 0.5 * (x - 6) ** 2)
)
LADDER = mintmc.Ladder.geometric(hottest=30, rungs=4)


STEPS = mintmc.RandomWalk(target_acceptance=0.5)


def equi_energy(ladder=LADDER, **settings):
    return mintmc.EquiEnergy(ladder, proposal=STEPS, **({"jump_probability": 0.3, "round_length": 1000} | settings))


def run(posterior=TWO_MODES, sampler=None, **settings):
    # Every chain in the heavy mode: what is found elsewhere was found by jumps.
    settings = {
        "init": lambda key: jnp.asarray(6.0),
        "draws": 3000,
        "warmup": 500,
        "chains": 20,
        "progress": False,
    } | settings
    return mintmc.sample(posterior, sampler or equi_energy(feed=2000), **settings)


def chain_distance(values, exact):
    """Standard errors between the mean of (chain, draw) values and the exact one, from the spread of the chains."""
    means = np.asarray(values, float).mean(axis=1)
    return abs(means.mean() - exact) / (means.std(ddof=1) / np.sqrt(len(means)))


MOMENTS = {
    "light mode": (lambda x: x < 0, LIGHT),
    "mean": (lambda x: x, 6 * (HEAVY - LIGHT)),
    "second moment": (lambda x: x**2, 37.0),
    "fourth moment": (lambda x: x**4, 6**4 + 6 * 6**2 + 3),
}
RUNS = {
    "quantile rings": equi_energy(feed=2000),
    "cut off": equi_energy(feed=2000, truncate=True, rings=[2.0, 4.0, 8.0, 16.0]),
    "shared rings": equi_energy(feed=2000, share_rings=True),
}


@pytest.mark.parametrize("name", mostly_slow(RUNS, "quantile rings"))
def test_modes_far_apart_get_their_weights(name):
    tree = run(sampler=RUNS[name])
    x = tree.posterior.theta.values
    distances = {moment: chain_distance(f(x), exact) for moment, (f, exact) in MOMENTS.items()}
    assert max(distances.values()) < LIMIT, distances
    seen, edges = tree.ladder.ring_occupancy.values, tree.ladder.ring_edges.values
    alike = [np.ptp(array[1:], axis=1).max() == 0 for array in (seen, edges)]
    assert alike == {"quantile rings": [False, False], "cut off": [False, True], "shared rings": [True, True]}[name]


def test_without_jumps_no_chain_crosses():
    """The broken twin: so it was the jumps that found the weights."""
    x = run(sampler=equi_energy(jump_probability=0.0), draws=1000, chains=2).posterior.theta.values
    assert (x > 0).all()


def test_draws_depend_neither_on_cores_nor_on_other_chains(monkeypatch):
    sampler = equi_energy(mintmc.Ladder([1, 5]), round_length=100)
    settings = {"draws": 350, "warmup": 50, "seed": 3}
    three = run(sampler=sampler, chains=3, **settings)
    monkeypatch.setattr(driver, "cores", lambda lanes: 1)
    two = run(sampler=sampler, chains=2, **settings)
    np.testing.assert_array_equal(two.posterior.theta, three.posterior.theta[:2])
    np.testing.assert_array_equal(two.ladder.energy, three.ladder.energy[:, :2])
    assert not np.array_equal(three.posterior.theta[0], three.posterior.theta[1])


def test_ctrl_c_returns_the_draws_made_so_far(monkeypatch):
    class Pressed(driver.Interrupt):
        """Ctrl-C after a few looks."""

        looks = 0

        @property
        def requested(self):
            self.looks += 1
            return self.looks > 3

        @requested.setter
        def requested(self, value):
            pass

    monkeypatch.setattr(driver, "Interrupt", Pressed)
    sampler = equi_energy(mintmc.Ladder([1, 5]), round_length=16)
    with pytest.warns(UserWarning, match="interrupted: .* of 500 draws were made"):
        tree = run(sampler=sampler, draws=500, warmup=0, chains=2)
    draws = tree.posterior.sizes["draw"]
    assert 0 < draws < 500
    assert draws % 16 == 0
    assert tree.ladder.sizes["draw"] == draws
    assert np.isfinite(tree.ladder.energy).all()


@pytest.fixture(scope="module")
def tied():
    """Two modes that 4000 observations tell apart from what lies between by 15 nats; all data at T = 1 alone."""
    x = tied_means.simulate(4000)
    posterior = mintmc.Posterior(tied_means.log_likelihood, x, tied_means.log_prior)
    reference = np.array([0.0, 1.0], np.float32)
    # Batches as large as n_eff = 1000 and four times as large.
    ladder = mintmc.Ladder([1, 4, 16], [None, 1000, 1000])
    sampler = equi_energy(ladder, feed=2000, reference=reference, temper="posterior")
    tree = run(posterior, sampler, init=np.array([0.5, 0.0], np.float32), chains=12, draws=2500)
    return x, posterior, reference, tree


@pytest.mark.slow
def test_a_mixed_ladder_has_the_exact_weights_and_energies(tied):
    x, posterior, reference, tree = tied
    exact = tied_means.quadrature(x, temperature=1.0, bins=2000)
    theta = tree.posterior.theta.values
    theta1, theta2 = theta[..., 0], theta[..., 1]
    assert chain_distance(theta2 < 0, exact.mean(lambda a, b: (b < 0) + 0 * a)) < LIMIT
    assert chain_distance(theta1, exact.mean(lambda a, b: a + 0 * b)) < LIMIT
    assert chain_distance(theta2**2, exact.mean(lambda a, b: b**2 + 0 * a)) < LIMIT
    # -log probability is the energy but for a constant, which one point of the grid tells.
    levels = -np.log(np.maximum(exact.probability, 1e-30))
    i, j = np.unravel_index(levels.argmin(), levels.shape)
    lowest = posterior.energy(np.array([exact.theta1[i], exact.theta2[j]], np.float32)) - posterior.energy(reference)
    mean = np.sum(exact.probability * (levels - levels.min())) + lowest
    assert chain_distance(tree.ladder.energy[0], mean) < LIMIT
    above = tree.sample_stats.energy - posterior.energy(reference)
    np.testing.assert_allclose(above, tree.ladder.energy[0], atol=2e-3)


@pytest.mark.slow
def test_the_ladder_group_holds_what_is_documented(tied):
    ladder = tied[-1].ladder
    rungs, chains, draws = 3, 12, 2500
    sizes = {"rung": rungs, "chain": chains, "draw": draws, "ring": 20, "edge": 19, "parameter": 2}
    assert dict(ladder.sizes) == sizes
    assert ladder.temperature.values.tolist() == [1.0, 4.0, 16.0]
    assert ladder.batch_size.values.tolist() == [4000, 1000, 1000]
    shapes = {name: values.dims for name, values in ladder.data_vars.items()}
    each = ("rung", "chain")
    of_all = ("acceptance_rate", "log_ratio_noise", "jump_share", "data_touched", "undefined_moves")
    of_chains, of_states = ("start_energy", "lowest_energy"), ("lowest_state", "hot_mean", "hot_sd")
    of_jumps = ("jump_rate", "jump_noise", "empty_rings")
    assert shapes == {
        "temperature": ("rung",),
        "batch_size": ("rung",),
        "energy": ("rung", "chain", "draw"),
        "ring_occupancy": ("rung", "chain", "ring"),
        "ring_edges": ("rung", "chain", "edge"),
        **dict.fromkeys((*of_all, *of_jumps), each),
        **dict.fromkeys(of_chains, ("chain",)),
        **dict.fromkeys(of_states, ("chain", "parameter")),
    }
    for name in ("energy", "ring_occupancy", "ring_edges", *of_all, *of_chains, *of_states):
        assert np.isfinite(ladder[name]).all(), name
    for name in of_jumps:
        assert np.isfinite(ladder[name][:-1]).all(), name
        # The hottest rung has nowhere to jump to.
        assert np.isnan(ladder[name][-1]).all(), name
    assert (ladder.log_ratio_noise[0] == 0).all()
    assert (ladder.log_ratio_noise[1:] > 0).all()
    np.testing.assert_allclose(ladder.ring_occupancy[1:].sum("ring"), 1.0)
    assert (np.diff(ladder.ring_edges, axis=-1) >= 0).all()
    assert ((ladder.jump_share[:-1] > 0.25) & (ladder.jump_share[:-1] < 0.35)).all()


def tiny(sizes):
    """Twelve observations, three rungs, and a sampler that nearly always wants to jump."""
    posterior = mintmc.Posterior(gaussian_log_likelihood, gaussian_data(12))
    sampler = equi_energy(mintmc.Ladder([1, 2, 4], sizes), jump_probability=0.9, rings=[0.5, 2.0])
    return run(posterior, sampler, init=0.5, draws=200, warmup=100, chains=2)


def test_a_jump_between_rungs_on_all_data_reads_none():
    tree = tiny([None, None, None])
    ladder, jumps = tree.ladder, tree.sample_stats.jumps
    # A local move reads all 12; the hottest rung never jumps.
    steps = 200 * (1 - ladder.jump_share)
    np.testing.assert_allclose(ladder.data_touched, 12 * steps)
    np.testing.assert_array_equal(ladder.data_touched[2], 200 * 12)
    assert jumps.mean() > 0
    np.testing.assert_array_equal(tree.sample_stats.data_touched.sum("draw"), ladder.data_touched.sum("rung"))


@pytest.mark.slow
def test_data_are_counted_by_hand():
    tree = tiny([None, 6, 6])
    ladder, stats = tree.ladder, tree.sample_stats
    subset = subset_size(6, n=12, rings=3)
    # Rung 2: a move compares both ends on 6 rows; the subset is read to file the new state.
    np.testing.assert_array_equal(ladder.data_touched[2], 200 * (2 * 6 + subset))
    jumps = 200 * ladder.jump_share
    # Rung 1: a move or a jump compares both ends on 6 rows; the subset is read to file, and to look up a ring.
    np.testing.assert_allclose(ladder.data_touched[1], 200 * (2 * 6 + subset) + jumps[1] * subset)
    # Rung 0: a move or a jump visits one new state on all data; the subset is read to look up a ring.
    np.testing.assert_allclose(ladder.data_touched[0], 200 * 12 + jumps[0] * subset)
    np.testing.assert_array_equal(stats.data_touched.sum("draw"), ladder.data_touched.sum("rung"))


@pytest.mark.slow
def test_a_single_ring_needs_no_rows_to_tell_rings_apart():
    posterior = mintmc.Posterior(gaussian_log_likelihood, gaussian_data(2000))
    ladder = mintmc.Ladder([1, 4, 16], [None, 400, 200])
    # Uniform, because slices of a shuffle are only n/m = 5 different batches.
    sampler = equi_energy(ladder, rings=mintmc.QuantileRings(1), batching="uniform", feed=2000)
    tree = run(posterior, sampler, init=0.0)
    # A move or a jump compares both ends on a batch, and nothing else is read.
    np.testing.assert_array_equal(tree.ladder.data_touched[2], 3000 * 2 * 200)
    np.testing.assert_array_equal(tree.ladder.data_touched[1], 3000 * 2 * 400)
    theta = tree.posterior.theta.values
    assert chain_distance(theta, 0) < LIMIT
    assert chain_distance(theta**2, 1 / 2000) < LIMIT


@pytest.mark.slow
def test_each_rung_jumps_as_often_as_it_is_told():
    density = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
    sampler = equi_energy(mintmc.Ladder([1, 3, 9]), jump_probability=(0.8, 0.2, 0.5))
    ladder = run(density, sampler, init=0.0, draws=4000).ladder
    for k, probability in enumerate((0.8, 0.2)):
        error = np.sqrt(probability * (1 - probability) / 4000)
        np.testing.assert_allclose(ladder.jump_share[k], probability, atol=LIMIT * error)
        assert chain_distance(ladder.energy.values[k], ladder.temperature.values[k] / 2) < LIMIT
    assert (ladder.jump_share[2] == 0).all()  # there is nothing hotter


@pytest.mark.slow
def test_steps_of_a_hot_rung_are_steps():
    """Three steps a draw and thinning by two is six steps: rates stay rates, jumps are counted in steps."""
    sampler = equi_energy(mintmc.Ladder([1, 3]), steps=(1, 3), rings=mintmc.QuantileRings(4), feed=1000)
    density = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
    tree = run(density, sampler, init=0.0, thin=2, chains=4, draws=4000)
    ladder, stats = tree.ladder, tree.sample_stats
    np.testing.assert_allclose(ladder.jump_share[0], stats.jumps.sum("draw") / 8000)
    np.testing.assert_allclose(ladder.jump_share[0], 0.3, atol=LIMIT * np.sqrt(0.3 * 0.7 / 8000))
    # All steps are moves or jumps.
    rate = ladder.jump_share * ladder.jump_rate + (1 - ladder.jump_share) * ladder.acceptance_rate
    np.testing.assert_allclose(rate[0], stats.acceptance_rate.mean("draw"), rtol=1e-5)
    assert ((ladder.acceptance_rate > 0.3) & (ladder.acceptance_rate < 0.7)).all()
    # h = x^2/2 has mean T/2.
    for k, temperature in enumerate((1.0, 3.0)):
        assert chain_distance(ladder.energy.values[k], temperature / 2) < LIMIT
