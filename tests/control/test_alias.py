"""Alias tables: every row's share of all cells, counted in whole units, is its weight."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mintmc.control import alias

WEIGHTS = {
    "one row": np.array([3.0]),
    "two rows": np.array([1.0, 2.0]),
    "equal": np.ones(1000),
    "a power of two": np.ones(1024),
    "unequal": np.random.default_rng(0).lognormal(0, 3, size=5000),
    "many zeros": np.random.default_rng(1).integers(0, 2, size=777) * 1.0,
    "one for all": np.eye(1, 300, 17)[0],
    "large and small": np.concatenate([np.full(500, 1e-12), np.full(5, 1e12)]),
}


def shares(multiples):
    """Units of every row over all cells."""
    begins, other = alias._table(multiples)
    assert (begins >= 0).all()
    assert (begins < alias._CELL).all()
    found = np.zeros(len(begins), np.int64)
    np.add.at(found, np.arange(len(begins)), begins)
    np.add.at(found, other, alias._CELL - begins)
    return found


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_cells_hold_what_the_rows_weigh(name):
    weights = WEIGHTS[name]
    multiples, unit = alias._whole(weights)
    found = shares(multiples)
    np.testing.assert_array_equal(found[: len(weights)], multiples)  # exactly
    assert not found[len(weights) :].any()
    assert (multiples * unit >= weights * (1 - 1e-15)).all()  # rounded up
    assert multiples.sum() * unit == pytest.approx(weights.sum(), rel=1e-6)
    assert not multiples[weights == 0].any()


@pytest.mark.parametrize("name", WEIGHTS)
def test_what_is_on_the_device_is_no_smaller(name):
    weights = WEIGHTS[name]
    rows = alias.weighted(weights, np.float32)
    assert (np.asarray(rows.each, float) >= weights).all()
    np.testing.assert_allclose(rows.each, weights, rtol=1e-6, atol=1e-6 * weights.max())
    assert rows.total >= weights.sum() * (1 - 1e-12)


def test_no_weight_at_all_draws_anything():
    rows = alias.weighted(np.zeros(5), np.float32)
    assert rows.total == 0
    assert int(rows.pick(jnp.array([0, 7], jnp.uint32))) < 8


def chi_square(weights, drawn):
    """In standard deviations of its law."""
    expected = weights / weights.sum() * len(drawn)
    found = np.bincount(drawn, minlength=len(weights))[expected > 0]
    expected = expected[expected > 0]
    return (((found - expected) ** 2 / expected).sum() - (len(expected) - 1)) / np.sqrt(2 * (len(expected) - 1))


def test_rows_are_drawn_in_proportion():
    weights = np.random.default_rng(3).lognormal(0, 1, size=300)
    weights[7] = 0
    rows = alias.weighted(weights, np.float32)
    words = jax.random.bits(jax.random.key(0), (200_000, 2), jnp.uint32)
    drawn = np.asarray(rows.pick(words))
    assert 7 not in drawn
    assert abs(chi_square(weights, drawn)) < 4
    # The twin: the rows beside those meant.
    assert chi_square(np.roll(weights, 1), drawn) > 100
