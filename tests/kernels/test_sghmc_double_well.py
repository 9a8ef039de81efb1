"""SGHMC on the double well of its paper's Figure 1, against its own law, which is found on a grid."""

import numpy as np
import pytest
import scipy.stats

import mintmc
from mintmc.samplers.stochastic_gradient import SGHMC
from stochastic import kernel_of, positions, stationary_covariance
from truth import LIMIT, distance_of_means

# Figure 1 of Chen, Fox & Guestrin: U = -2 x^2 + x^4, gradient noise N(0, 4), C = 3, eps = .1.
STEP, FRICTION, NOISE = 0.1, 3.0, 4.0


def double_well():
    """The prior is the target; a row z adds z theta, with sum z = 0, and a single row a noise of variance 4."""
    z = scipy.stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
    return mintmc.Posterior(lambda t, z: z * t, z * np.sqrt(NOISE / z.var()) / len(z), lambda t: 2 * t**2 - t**4)


WELL = double_well()


def well_slope(x):
    return -4 * x + 4 * x**3


def law_on_a_grid(slope, pushed):
    """The stationary law of x for slope U', where r gets noise of variance ``pushed``: the chain's own, by quadrature.

    p'(x', r') = sum over r of p(x' - eps r', r) N(r'; a r - eps U'(x' - eps r'), pushed), on a grid that eps r fits.
    """
    r = np.arange(-40, 41) * 0.2  # noise of sd 0.8 between points 0.2 apart: quadrature is exact to 1e-10 and better
    x = np.arange(-130, 131) * 0.02  # 0.02 = eps * 0.2
    mean = (1 - STEP * FRICTION) * r[None, None, :] - STEP * slope(x)[:, None, None]
    to = np.exp(-((r[None, :, None] - mean) ** 2) / (2 * pushed))  # x, r', r
    law = np.exp(2 * x**2 - x**4)[:, None] * np.exp(-(r**2) / 2)[None, :]
    for _ in range(600):
        after = (to @ law[:, :, None])[:, :, 0]
        law = np.stack([_shifted(column, k) for column, k in zip(after.T, range(-40, 41), strict=True)], axis=1)
        law /= law.sum()
    return x, law.sum(axis=1)


def _shifted(column, places):
    moved = np.roll(column, places)
    if places > 0:
        moved[:places] = 0
    elif places < 0:
        moved[places:] = 0
    return moved


def virial(x):
    """x U'(x), 1 on average under exp(-U) (by parts), and T under exp(-U/T)."""
    return x * well_slope(x)


def on_the_barrier(x):
    """A smooth bump between the wells."""
    return np.exp(-((x / 0.4) ** 2))


@pytest.fixture(scope="module")
def laws():
    known = law_on_a_grid(well_slope, 2 * STEP * FRICTION)
    ignored = law_on_a_grid(well_slope, 2 * STEP * FRICTION + STEP**2 * NOISE)
    return {NOISE: known, 0.0: ignored}


def test_the_grid_agrees_with_lyapunov():
    x, law = law_on_a_grid(lambda x: 8 * x, 2 * STEP * FRICTION)
    np.testing.assert_allclose(law @ x**2, stationary_covariance(STEP, FRICTION, 8.0, 0.0, 0.0)[0, 0], rtol=1e-8)


def test_the_bias_on_the_double_well_is_what_is_documented(laws):
    errors = {}
    for estimate, (x, law) in laws.items():
        target = np.exp(2 * x**2 - x**4)
        target /= target.sum()
        np.testing.assert_allclose(target @ virial(x), 1.0, rtol=1e-9)
        errors[estimate] = np.abs(law - target).sum() / 2, law @ virial(x) - 1
    # Total variation from the exact density, and by how much it runs too hot: 1.8% with the noise known, 8.6% without.
    np.testing.assert_allclose(errors[NOISE], (0.00733, 0.0183), rtol=0.01)
    np.testing.assert_allclose(errors[0.0], (0.01740, 0.0863), rtol=0.01)


@pytest.mark.parametrize("estimate", [NOISE, 0.0])
def test_figure_1_the_double_well(laws, estimate):
    kernel = kernel_of(SGHMC(1, step_size=STEP, friction=FRICTION, noise_estimate=estimate), WELL)
    theta = positions(kernel, WELL, chains=256, steps=4000)[..., 0]
    for f in (np.square, virial, on_the_barrier):
        x, law = laws[estimate]
        assert distance_of_means(f(theta), law @ f(x)) < LIMIT
    # Known and ignored noise can be told apart.
    x, law = laws[NOISE - estimate]
    assert distance_of_means(virial(theta), law @ virial(x)) > LIMIT
