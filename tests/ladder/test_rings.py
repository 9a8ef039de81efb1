"""Rings: where their edges lie, which states they keep, and that they keep no more."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.energy import Density
from mintmc.ladder.rings import Rings, States, fixed_edges, ring_of
from truth import LIMIT

LIKE = np.zeros(1, np.float32)


def states(values):
    return States(np.asarray(values, np.float32)[:, None]).packed()


def file_numbers(rings, first, last, rng, energy=lambda number: np.zeros(len(number))):
    """File states that are their own numbers."""
    numbers = np.arange(first, last)
    rings.file(energy(numbers), states(numbers), rng)


def kept(rings, ring=0):
    frozen = rings.frozen(None)
    return np.asarray(frozen.states)[ring, : int(frozen.filled[ring]), 0].astype(int)


def distance_from_uniform(rng_of, stretch, past=200, capacity=10, runs=1500):
    """How far it is from keeping every state of the past equally often, in standard deviations."""
    counts = np.zeros(past)
    # Rings that differ in nothing but chance share one array: 50 runs at a time.
    for seed in range(runs // 50):
        rng, rings = rng_of(seed), Rings(np.arange(49) + 0.5, 50, capacity, LIKE)
        for first in range(0, past, stretch):
            numbers = np.arange(first, min(first + stretch, past))
            rings.file(np.repeat(np.arange(50), len(numbers)), states(np.tile(numbers, 50)), rng)
        for ring in range(50):
            counts += np.bincount(kept(rings, ring), minlength=past)
    expected = runs * capacity / past
    # One state's count is binomial; all of them sum to runs * capacity.
    chi_square = np.sum((counts - expected) ** 2 / (expected * (1 - capacity / past)))
    # The mean age sees at once whether the new or the old are preferred.
    mean, error = counts @ np.arange(past) / counts.sum(), past / np.sqrt(12 * runs * capacity)
    return max(abs(chi_square - past) / np.sqrt(2 * past), abs(mean - (past - 1) / 2) / error)


class PrefersTheNew:
    """Broken: a state draws its place among nine tenths of the past."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def integers(self, low, high):
        return self.rng.integers(low, np.maximum(1, 0.9 * high))


@pytest.mark.parametrize("stretch", [200, 7])
def test_a_ring_keeps_a_uniform_sample_of_its_past(stretch):
    assert distance_from_uniform(np.random.default_rng, stretch) < LIMIT


def test_a_ring_that_prefers_the_new_is_caught():
    assert distance_from_uniform(PrefersTheNew, 200) > LIMIT


def test_capacity_is_never_exceeded_and_all_states_are_counted():
    rng, rings = np.random.default_rng(0), Rings([10.0, 20.0], 3, 4, LIKE)
    for first in range(0, 60, 5):
        file_numbers(rings, first, first + 5, rng, energy=lambda number: number % 30)
        filled = np.asarray(rings.frozen(None).filled)
        np.testing.assert_array_equal(filled, np.minimum(rings.seen, 4))
        for ring in range(3):
            of_ring = [number for number in range(first + 5) if number % 30 // 10 == ring]
            assert rings.seen[ring] == len(of_ring)
            assert set(kept(rings, ring)) <= set(of_ring)
            assert len(set(kept(rings, ring))) == filled[ring]


def test_memory_does_not_grow():
    rng, rings = np.random.default_rng(0), Rings([0.0], 2, 8, LIKE)

    def held():
        return rings.kept.rows.nbytes + rings.seen.nbytes + rings.edges.nbytes + len(rings.kept.unsettled()[0])

    before = held()
    for _ in range(20):
        rings.file(rng.normal(size=500), states(rng.normal(size=500)), rng)
    assert rings.seen.sum() == 10_000
    assert held() == before
    assert vars(rings).keys() == {"edges", "capacity", "seen", "kept"}


def test_of_states_with_one_place_the_last_stays():
    """The outcome is that of filing them one by one, with the same chance numbers."""

    class Dice:
        """Says where every state goes that comes when the ring is full."""

        def __init__(self, places):
            self.places = list(places)

        def integers(self, low, high):
            assert (np.asarray(low) <= np.array(self.places[: len(high)])).all()
            assert (np.array(self.places[: len(high)]) < high).all()
            drawn, self.places = self.places[: len(high)], self.places[len(high) :]
            return np.array(drawn)

    places = [1, 0, 1, 3, 1, 0]  # of states 2 to 7; place 3 is beyond the capacity
    at_once, one_by_one = Rings([], 1, 2, LIKE), Rings([], 1, 2, LIKE)
    file_numbers(at_once, 0, 8, Dice(places))
    dice = Dice(places)
    for number in range(8):
        file_numbers(one_by_one, number, number + 1, dice)
    np.testing.assert_array_equal(kept(at_once), [7, 6])
    np.testing.assert_array_equal(kept(one_by_one), [7, 6])


def test_everything_known_of_a_state_is_kept_beside_it():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(300, 2)).astype(np.float32)
    x = theta[:, 0]
    filed = States(theta, -theta, Density(x, 2 * x, 3 * x)).packed()
    rings = Rings([0.0], 2, 50, filed[0])
    rings.file(x, filed, rng)
    found = States.unpacked(rings.frozen(None).states, dim=2)
    x = np.asarray(found.theta)[..., 0]
    assert (x[0] < 0).all()
    assert (x[1] > 0).all()
    np.testing.assert_array_equal(found.gradient, -found.theta)
    for factor, part in enumerate(jax.tree.leaves(found.density), start=1):
        np.testing.assert_array_equal(part, factor * x)


@pytest.mark.parametrize(
    ("gradient", "density"), [(None, None), (None, Density(1.0, 2.0, 3.0)), (np.ones(3), Density(1.0, 2.0, 3.0))]
)
def test_what_is_not_known_of_a_state_takes_no_room(gradient, density):
    packed = States(np.zeros(3), gradient, density).packed()
    assert packed.shape == (3 + 3 * (gradient is not None) + 3 * (density is not None),)
    found = States.unpacked(packed, dim=3)
    assert found.density == density
    np.testing.assert_array_equal(found.gradient, gradient)


def test_quantile_edges_come_from_the_first_states_and_stay():
    rng, rings = np.random.default_rng(0), Rings(None, 4, 10, LIKE)
    assert np.isnan(rings.known_edges).all()
    energies = rng.exponential(size=1001)
    rings.file(energies, states(energies), rng)
    expected = np.quantile(energies, [1 / 16, 4 / 16, 9 / 16]).astype(np.float32)
    np.testing.assert_array_equal(rings.edges, expected)
    # Finer towards low energies: 1/16 of the states, then 3/16, 5/16, 7/16.
    np.testing.assert_allclose(rings.seen / 1001, np.array([1, 3, 5, 7]) / 16, atol=2e-3)
    rings.file(100 + energies, states(energies), rng)
    np.testing.assert_array_equal(rings.edges, expected)
    assert rings.seen[-1] > 1001


def test_the_rule_of_the_paper():
    ladder = mintmc.Ladder([1, 3, 9, 27])
    edges = mintmc.SpacedRings(c=5.0, lowest=2.0).edges(ladder)
    assert edges == (7.0, 22.0, 67.0)
    # (H_{k+1} - H_k) / T_k = c, H_0 the lowest.
    np.testing.assert_allclose(np.diff([2.0, *edges]) / ladder.temperatures[:-1], 5.0)


def test_what_is_known_beforehand():
    ladder = mintmc.Ladder([1, 2])
    assert fixed_edges(mintmc.QuantileRings(), ladder) is None
    assert fixed_edges(mintmc.SpacedRings(c=3.0), ladder) == (3.0,)
    assert fixed_edges(np.array([1, 4]), ladder) == (1.0, 4.0)


def test_the_ring_of_an_energy():
    rng = np.random.default_rng(0)
    edges = np.sort(rng.normal(size=7)).astype(np.float32)
    # A state on an edge belongs to the ring above it.
    energies = np.concatenate([rng.normal(scale=2, size=500).astype(np.float32), edges])
    np.testing.assert_array_equal(ring_of(energies, jnp.asarray(edges)), np.searchsorted(edges, energies, side="right"))
    np.testing.assert_array_equal(ring_of(edges, jnp.asarray(edges)), np.arange(1, 8))


def test_a_state_is_looked_up_where_it_was_filed():
    rng, rings = np.random.default_rng(1), Rings(None, 5, 2000, LIKE)
    energies = rng.normal(size=2000).astype(np.float32)
    rings.file(energies, states(energies), rng)
    frozen = rings.frozen(None)
    for ring in range(5):
        inside = frozen.states[ring, : int(frozen.filled[ring]), 0]
        assert (ring_of(inside, frozen.edges) == ring).all()
