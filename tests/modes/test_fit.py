"""Fits of modes from draws: right in the limit, shrunk where draws are few, and better for it."""

import numpy as np
import pytest

from mintmc.modes.fit import Moments, fit

DIM, MODES = 20, 6
RNG = np.random.default_rng(0)
WIDTH = np.exp(RNG.normal(size=DIM) * 0.5)
NARROW = 0.01


def draws_of(mode, number, rng, correlation=0.0):
    """Normal draws around an end, alike in all modes but for one narrow direction in each."""
    scale = WIDTH.copy()
    scale[mode] *= NARROW
    shared = np.sqrt(correlation) * rng.normal(size=(number, 1))
    return scale * (np.sqrt(1 - correlation) * rng.normal(size=(number, DIM)) + shared)


def fitted(number, offset=0.0, correlation=0.0, seed=1):
    rng, moments = np.random.default_rng(seed), Moments.none(MODES + 2, DIM)
    ends = np.zeros((MODES, DIM))
    for mode in range(MODES):
        moments.add(mode, offset * WIDTH + draws_of(mode, number, rng, correlation), ends[mode])
    return fit(moments, ends)


def scales(found):
    return np.sqrt((found.factor**2).sum(axis=2))


def truth(mode):
    scale = WIDTH.copy()
    scale[mode] *= NARROW
    return scale


def test_many_draws_tell_means_scales_and_correlations():
    found = fitted(100_000, offset=0.5, correlation=0.4)
    for mode in range(MODES):
        covariance = found.factor[mode] @ found.factor[mode].T
        correlation = covariance / np.outer(truth(mode), truth(mode))
        np.testing.assert_allclose(np.diagonal(correlation), 1, rtol=0.03)
        np.testing.assert_allclose(correlation[~np.eye(DIM, dtype=bool)], 0.4, atol=0.02)
        np.testing.assert_allclose(found.mean[mode] / WIDTH, 0.5, atol=0.02)


def test_few_draws_give_a_diagonal_and_means_near_the_ends():
    number = 30
    found = fitted(number)
    off = [(f / scales(found)[j][:, None])[~np.eye(DIM, dtype=bool)] for j, f in enumerate(found.factor)]
    assert np.abs(off).max() < 0.2  # sample correlations reach 0.5
    errors = np.array([found.mean[mode] / truth(mode) for mode in range(MODES)])
    assert (errors**2).mean() < 0.2 / number  # five times nearer than the means of the draws


def test_what_modes_share_is_told_by_the_draws_of_all_of_them():
    # Ends of descents that say nothing (flat directions), and one direction in which every mode is a place of its own.
    number, modes = 20, 30
    rng, moments, apart = np.random.default_rng(5), Moments.none(modes, DIM), 8 * np.arange(modes)
    ends = rng.normal(size=(modes, DIM))
    ends[:, 0] += apart
    draws = rng.normal(size=(modes, number, DIM))
    by_draws = (draws.mean(axis=1) ** 2).mean(axis=0)
    draws[:, :, 0] += apart[:, None]
    for mode in range(modes):
        moments.add(mode, draws[mode], ends[mode])
    errors = fit(moments, ends).mean
    errors[:, 0] -= apart
    assert (errors[:, 1:] ** 2).mean() < 0.2 * by_draws[1:].mean()
    assert (errors[:, 0] ** 2).mean() < 1.2 * by_draws[0]


def test_a_narrow_direction_stays_narrow():
    found = fitted(30)
    for mode in range(MODES):
        assert scales(found)[mode, mode] == pytest.approx(truth(mode)[mode], rel=0.5)
    common = np.array([np.delete(scales(found)[mode] / truth(mode), mode) for mode in range(MODES)])
    # Six modes share them: nearer than the draws of one alone could tell (1 / sqrt(60) = 0.13).
    assert np.sqrt(((common - 1) ** 2).mean()) < 0.09


def test_draws_that_depend_on_each_other_tell_less():
    # Each draw is repeated ten times: taken for independent, their correlations would look like something.
    number, repeats = 40, 10
    rng, moments, ends = np.random.default_rng(6), Moments.none(MODES, DIM), np.zeros((MODES, DIM))
    for mode in range(MODES):
        moments.add(mode, np.repeat(rng.normal(size=(number, DIM)), repeats, axis=0), ends[mode])
    found = fit(moments, ends)
    off = found.factor[:, ~np.eye(DIM, dtype=bool)]
    assert np.abs(off).max() < 0.2
    np.testing.assert_allclose(scales(found), 1, atol=0.2)


def test_moments_are_of_halves_and_fade():
    rng = np.random.default_rng(3)
    thetas, moments = rng.normal(size=(50, DIM)), Moments.none(1, DIM)
    moments.add(0, thetas, np.zeros(DIM))
    for half, some in enumerate(np.split(thetas, 2)):
        draws, offset, covariance = moments.of(1, half)
        assert draws == [25]
        np.testing.assert_allclose(offset[0], some.mean(axis=0))
        np.testing.assert_allclose(covariance[0], np.cov(some.T))
    moments = moments.faded(0.5)
    moments.add(0, thetas, np.zeros(DIM))
    draws, offset, _ = moments.of(1)
    assert draws == [75]
    np.testing.assert_allclose(offset[0], thetas.mean(axis=0))
