"""All modes that starts lead to: told apart by barriers, counted, and the unseen estimated."""

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.modes.many import Found, gather
from mistakes import each_refused

CORNERS = np.array([[3.0, 3.0], [-3.0, 3.0], [3.0, -3.0], [-3.0, -3.0]])


def four_modes(x):
    """Wells at the corners of a square; a saddle between any two, a maximum in the middle."""
    return -0.5 * ((x**2 - 9.0) ** 2).sum()


def flat_well(x):
    """Two valleys, at x_0 = -2 and 2, flat to second order in all other directions."""
    return -8 * (x[0] ** 2 - 4) ** 2 - (x[1:] ** 4).sum()


def gathered(log_density, starts, **settings):
    target = mintmc.Posterior.from_density(log_density).flat(np.zeros(starts.shape[1], np.float32))
    return gather(target, starts.astype(np.float32), **settings)


def test_every_mode_is_found_once_and_its_starts_are_counted():
    starts = np.random.default_rng(0).normal(size=(60, 2)) * 4
    found = gathered(four_modes, starts)
    assert len(found.theta) == 4
    for corner in CORNERS:
        j = np.linalg.norm(found.theta - corner, axis=1).argmin()
        np.testing.assert_allclose(found.theta[j], corner, atol=0.01)
        assert found.starts[j] == (np.sign(starts) == np.sign(corner)).all(axis=1).sum()
    assert found.unseen == 0


def test_modes_that_are_flat_to_second_order_are_neither_merged_nor_split():
    starts = np.random.default_rng(1).normal(size=(40, 10)) * 2
    found = gathered(flat_well, starts)
    assert len(found.theta) == 2
    np.testing.assert_allclose(np.sort(found.theta[:, 0]), [-2, 2], atol=0.05)


def test_it_ends_when_hardly_any_mode_can_be_missing():
    starts = np.random.default_rng(2).normal(size=(400, 2)) * 4
    found = gathered(four_modes, starts, is_enough=True)
    assert len(found.theta) == 4
    assert found.starts.sum() == 256  # the fewest, of 400


def test_starts_of_no_density_lead_nowhere():
    starts = np.array([[1.0], [-1.0]])
    found = gathered(lambda x: jnp.where(x[0] > 0, -0.5 * (x[0] - 2) ** 2, -jnp.inf), starts)
    assert (len(found.theta), found.lost) == (1, 1)


@pytest.mark.parametrize(("starts", "unseen"), [([5, 7], 0.0), ([1, 1, 1, 2], 1.5), ([1] * 10, 45.0)])
def test_the_unseen_are_estimated_from_those_seen_once_and_twice(starts, unseen):
    assert Found(np.zeros((len(starts), 1)), np.zeros(len(starts)), np.array(starts), 0, 0).unseen == unseen


@pytest.mark.parametrize("alike", [0.02, 0.2])
def test_modes_that_no_chain_led_to_are_estimated_from_how_many_led_to_the_others(alike):
    """Fifty modes, each on the way of a beta-binomial number of 20 chains."""
    modes, origins, share = 50, 20, 0.2
    rng, spread = np.random.default_rng(8), 1 / alike - 1
    estimated, missing = [], []
    for _ in range(300):
        chains = rng.binomial(origins, rng.beta(share * spread, (1 - share) * spread, modes))
        seen = chains[chains > 0]
        found = Found(np.zeros((len(seen), 1)), np.zeros(len(seen)), 9 * seen, 0, 0, seen, origins)
        estimated.append(found.unseen)
        missing.append(modes - len(seen))
    assert 0.5 < np.mean(estimated) / np.mean(missing) < 2


def test_a_mode_may_be_missing_though_all_others_were_reached_twice():
    chains = np.array([2] * 12 + [3] * 20 + [4] * 17)
    found = Found(np.zeros((49, 1)), np.zeros(49), 2 * chains, 0, 0, chains, 16)
    assert found.unseen > 0.5
    assert Found(np.zeros((49, 1)), np.zeros(49), 9 * chains, 0, 0, 4 * chains, 16).unseen < 0.1


def test_what_hardly_any_chain_led_to_is_not_counted_in_thousands():
    """Where most modes were on the way of one chain only, any number of others would fit: Chao's least one is said."""
    chains = np.array([1] * 16 + [2] * 4 + [3] * 3)
    found = Found(np.zeros((23, 1)), np.zeros(23), 9 * chains, 0, 0, chains, 28)
    assert 16 * 15 / (2 * 5) <= found.unseen < 9 * 23


@pytest.mark.slow
def test_a_part_of_the_rows_goes_ahead():
    """A mixture of two normals whose labels can be swapped, on 30,000 rows."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=30_000) + np.where(rng.random(30_000) < 0.5, -2.0, 2.0)
    posterior = mintmc.Posterior(
        lambda theta, x: jnp.logaddexp(-0.5 * (x - theta[0]) ** 2, -0.5 * (x - theta[1]) ** 2), x.astype(np.float32)
    )
    modes = mintmc.find_modes(posterior, init=np.zeros(2), chains=2, starts=64)
    assert len(modes) == 2
    np.testing.assert_allclose(np.sort(modes.params, axis=1), [[-2, 2], [-2, 2]], atol=0.05)
    assert "2 modes, about 0.0 not seen" in str(modes)
    assert modes.to_dataset().sizes["mode"] == 2
    assert len(modes.plot().axes) == 2
    # Half of the rows tell each mean.
    np.testing.assert_allclose(modes.deviation, 1 / np.sqrt(15_000), rtol=0.2)


def test_widths_by_curvature_and_none_where_it_is_flat():
    def modes_of(log_density):
        return mintmc.find_modes(mintmc.Posterior.from_density(log_density), init=np.zeros(2), chains=1, starts=8)

    curved = modes_of(lambda x: -0.5 * (x[0] / 3) ** 2 - 0.5 * (x[1] / 0.1) ** 2)
    np.testing.assert_allclose(curved.deviation, [[3, 0.1]], rtol=1e-3)
    assert "0.1 to 3" in str(curved)
    assert "flat" in str(modes_of(lambda x: -((x - 1) ** 4).sum()))


DENSITY = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
MISTAKES = {
    "posterior": (lambda: mintmc.find_modes(3, init=0.0), TypeError, "posterior must be a mintmc.Posterior"),
    "starts": (lambda: mintmc.find_modes(DENSITY, init=0.0, starts=0), "starts must be at least 1, got 0"),
    "explore": (lambda: mintmc.find_modes(DENSITY, init=0.0, explore=3), TypeError, "explore must be a mintmc sampler"),
}
test_a_mistake_is_refused = each_refused(MISTAKES)
