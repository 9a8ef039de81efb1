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
        moments.add(mode, offset * WIDTH + draws_of(mode, number, rng, correlation), number, ends[mode])
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


def test_a_narrow_direction_stays_narrow():
    found = fitted(30)
    for mode in range(MODES):
        assert scales(found)[mode, mode] == pytest.approx(truth(mode)[mode], rel=0.5)
    common = np.array([np.delete(scales(found)[mode] / truth(mode), mode) for mode in range(MODES)])
    # Six modes share them: nearer than the draws of one alone could tell (1 / sqrt(60) = 0.13).
    assert np.sqrt(((common - 1) ** 2).mean()) < 0.09


def test_moments_do_not_depend_on_how_draws_come():
    rng = np.random.default_rng(3)
    thetas, whole, parts = rng.normal(size=(50, DIM)), Moments.none(1, DIM), Moments.none(1, DIM)
    whole.add(0, thetas, 50, np.ones(DIM))
    for part in np.split(thetas, 5):
        parts.add(0, part, 10, np.ones(DIM))
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-9)
