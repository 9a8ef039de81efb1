import math

import numpy as np
import pytest

from mintmc.acceptance import correction
from mintmc.acceptance.correction import LOGISTIC_VARIANCE, Atoms, Table


def published_error(table, variance):
    """The authors' measure: the mass of each cell sits at its centre, and is not renormalised."""
    centres = (table.grid[1:] + table.grid[:-1]) / 2
    return correction.cdf_error(Atoms(centres, np.diff(table.cdf)), variance)


# The fit reaches 3.6e-10, 8.5e-10, 7.3e-8, 1.9e-6 and 2.2e-5.
@pytest.mark.parametrize(("sigma", "bar"), [(0.8, 1e-9), (0.9, 1e-8), (1.0, 1e-6), (1.1, 3e-6), (1.2, 3e-5)])
def test_atoms_plus_normal_is_logistic(sigma, bar):
    assert correction.cdf_error(correction.atoms(sigma**2), sigma**2) < bar


# A symmetric law; its variance is what the normal part leaves over, as far as the fit is good in the tails.
@pytest.mark.parametrize(("variance", "tolerance"), [(0.64, 1e-6), (0.81, 1e-6), (1.0, 1e-6), (1.21, 2e-5)])
def test_moments_of_the_atoms(variance, tolerance):
    values, weights = correction.atoms(variance)
    assert (weights > 0).all()
    assert weights.sum() == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_array_equal(values, -values[::-1])
    np.testing.assert_array_equal(weights, weights[::-1])
    assert weights @ values**2 == pytest.approx(LOGISTIC_VARIANCE - variance, abs=tolerance)


def test_atoms_are_few_and_read_only():
    values, weights = correction.atoms(1.0)
    assert len(values) == len(weights) <= 60  # of 401 candidates
    assert correction.atoms(1.0).values is values
    with pytest.raises(ValueError, match="read-only"):
        weights[0] = 0.0


def test_drawn_noise_accepts_like_barker():
    # Independent of cdf_error: 10^6 draws, compared with S(D) in binomial standard errors.
    rng = np.random.default_rng(20170)
    values, weights = correction.atoms(1.0)
    noise = rng.normal(size=10**6) + rng.choice(values, size=10**6, p=weights)
    for log_ratio in (-3.0, -1.0, 0.0, 0.5, 2.0):
        expected = 1 / (1 + math.exp(-log_ratio))
        error = (log_ratio + noise > 0).mean() - expected
        assert abs(error) < 4 * math.sqrt(expected * (1 - expected) / 10**6)


# Broken twins of the first test: they must fail its bar of 1e-6.
def test_atoms_for_another_variance_are_caught():
    assert correction.cdf_error(correction.atoms(1.0), 1.44) > 1e-2


def test_interpolating_between_atoms_is_caught():
    values, weights = correction.atoms(1.0)
    edges = np.concatenate([[2 * values[0] - values[1]], values])
    assert correction.cdf_error(Table(edges, np.concatenate([[0.0], np.cumsum(weights)])), 1.0) > 1e-2


def test_no_correction_at_all_is_caught():
    # A normal law alone is within 0.0095 at its best sd, 1.702.
    nothing = Atoms(np.zeros(1), np.ones(1))
    assert correction.cdf_error(nothing, 1.702**2) == pytest.approx(0.0095, abs=5e-5)
    assert correction.cdf_error(nothing, 1.0) > 0.05


# Printed for half_grid 4000 (Seita et al. 2017); equal to half a unit of the last printed digit.
@pytest.mark.parametrize(
    ("sigma", "penalty", "printed"),
    [
        (0.8, 10.0, 1.3e-4),
        (0.9, 10.0, 2.6e-4),
        (1.0, 10.0, 8.9e-4),
        (0.9, 1.0, 1.0e-4),
        (1.0, 100.0, 1.9e-3),
    ],
)
def test_ridge_reproduces_the_published_errors(sigma, penalty, printed):
    table = correction.ridge(sigma**2, 4000, penalty)
    unit = 10.0 ** (math.floor(math.log10(printed)) - 1)
    assert abs(published_error(table, sigma**2) - printed) <= unit / 2


def test_ridge_for_another_variance_is_caught():
    assert published_error(correction.ridge(1.0), 0.81) > 1e-2


def test_ridge_depends_on_the_penalty_over_the_squared_grid():
    fine, coarse = correction.ridge(1.0, 1000, 2.5), correction.ridge(1.0, 500, 0.625)  # neither is rescaled
    x = np.linspace(-10, 10, 101)
    # The cells of the coarse one are 0.04 wide: its piecewise linear cdf is this good.
    np.testing.assert_allclose(np.interp(x, *fine), np.interp(x, *coarse), atol=1e-4)
    assert published_error(fine, 1.0) == pytest.approx(published_error(coarse, 1.0), rel=1e-2)


def test_ridge_as_it_is_drawn():
    grid, cdf = correction.ridge(1.0)
    assert cdf[0] == 0.0
    assert (np.diff(cdf) >= 0).all()
    assert cdf[-1] == pytest.approx(1.000886, abs=1e-6)
    centres, mass = (grid[1:] + grid[:-1]) / 2, np.diff(cdf) / cdf[-1]
    # Clipping widens the law: 2.361 instead of pi^2/3 - 1 = 2.290 (the authors' table: 2.363).
    assert mass @ centres**2 == pytest.approx(2.361, abs=1e-3)
    # Cells are centred: interpolation moves nothing.
    assert mass @ centres == pytest.approx(0.0, abs=1e-5)
    # Renormalising is better than the published measure.
    assert correction.cdf_error(Table(grid, cdf / cdf[-1]), 1.0) == pytest.approx(5.6e-4, abs=5e-6)


def test_the_error_of_a_table_is_that_of_its_interpolated_law():
    # Cut into 200 atoms per cell, the same law: independent of the integrated normal cdf.
    table = Table(np.array([-4.0, -1.0, 0.5, 3.0]), np.array([0.0, 0.2, 0.7, 1.0]))
    mass = np.repeat(np.diff(table.cdf) / 200, 200)
    inside = [
        low + (high - low) * (np.arange(200) + 0.5) / 200 for low, high in zip(table.grid, table.grid[1:], strict=False)
    ]
    cut = Atoms(np.concatenate(inside), mass)
    assert correction.cdf_error(table, 1.0) == pytest.approx(correction.cdf_error(cut, 1.0), abs=1e-5)


@pytest.mark.parametrize("function", [correction.atoms, correction.ridge, lambda v: correction.cdf_error(None, v)])
@pytest.mark.parametrize("variance", [0.0, -1.0, LOGISTIC_VARIANCE, 4.0, math.nan])
def test_variance_out_of_range(function, variance):
    with pytest.raises(ValueError, match=rf"variance must be in \(0, 3\.28987\), got {variance:g}"):
        function(variance)


def test_bad_ridge_settings():
    with pytest.raises(ValueError, match=r"half_grid must be at least 1, got 0"):
        correction.ridge(1.0, half_grid=0)
    with pytest.raises(ValueError, match=r"penalty must be in \(0, inf\), got 0"):
        correction.ridge(1.0, penalty=0.0)
