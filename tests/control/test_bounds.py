"""Bounds against numerical searches: each holds, and one that is 2% smaller does not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.control.bounds import row_norms
from mistakes import each_refused

ONE = np.ones((1, 1))


def softplus_poisson(y):
    return lambda eta: y * jnp.log(jax.nn.softplus(eta)) - jax.nn.softplus(eta)


def student(y, degrees, scale):
    return lambda eta: -(degrees + 1) / 2 * jnp.log1p(((y - eta) / scale) ** 2 / degrees)


FAMILIES = {
    # name: (f, bounds of one row with x = 1)
    "logistic": (jax.nn.log_sigmoid, mintmc.RegressionBounds.logistic(ONE)),
    "logistic, y = 0 or 1": (lambda eta: -jax.nn.softplus(eta), mintmc.RegressionBounds.logistic(ONE)),
    "probit": (jax.scipy.stats.norm.logcdf, mintmc.RegressionBounds.probit(ONE)),
    **{
        f"poisson, y = {y}": (softplus_poisson(y), mintmc.RegressionBounds.poisson(ONE, np.array([y])))
        for y in (0, 1, 2, 20)
    },
    **{
        f"student t, {degrees} and {scale}": (
            student(0.7, degrees, scale),
            mintmc.RegressionBounds.student_t(ONE, degrees, scale),
        )
        for degrees, scale in ((1.0, 1.0), (4.0, 1.0), (2.5, 0.3))
    },
}
TIGHT = 0.98
"""How much of a constant must be used: bounds of a sum (Poisson) and of a limit (probit) are a little more than is."""


def largest(f, order):
    """The largest |derivative| of an order on a fine grid, in float64."""
    derivative = f
    for _ in range(order):
        derivative = jax.grad(derivative)
    with jax.enable_x64(True):
        # Farther out float64 loses the derivatives of a probability that is 0 to its last digit.
        grid = jnp.linspace(-8, 8, 160_001, dtype=jnp.float64)
        return float(jnp.abs(jax.vmap(derivative)(grid)).max())


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("order", "constant"), [(1, "first"), (2, "second"), (3, "third")])
def test_constants_are_the_largest_derivatives(name, order, constant):
    f, bounds = FAMILIES[name]
    given = getattr(bounds, constant)
    if given is None:
        assert (name, constant) == ("probit", "first")  # it grows like |eta|
        assert largest(f, order) > 8
        return
    found, given = largest(f, order), float(np.max(given))
    assert found <= given * (1 + 1e-9)
    if constant != "first":  # slopes come close to their bounds only far out
        assert found > TIGHT * given


# Functions that use up what their derivatives are allowed, |f''| = 1 and f''' = 1 everywhere, and whose expansion at
# the centre, where v = 0, is 0.
EXTREME = {1: lambda v: v * np.abs(v) / 2, 2: lambda v: v**3 / 6}


def geometries(rng, dim=3):
    """Pairs of ends: apart by little or much, around the centre and on opposite sides of it."""
    for scale in (0.1, 1.0, 3.0):
        for _ in range(20):
            here = rng.normal(size=dim)
            yield here, here + scale * rng.normal(size=dim)
    here = rng.normal(size=dim)
    yield from ((here, -here), (here, -0.5 * here), (here, 2 * here), (here, 0 * here), (here, here * (1 + 1e-3)))


def ratios(order, published, smaller=1.0, stretch=None):
    """Of every row's remainder to its bound, for rows all around and many ends: the largest of each geometry."""
    rng = np.random.default_rng(1)
    found = []
    for here, there in geometries(rng):
        # Rows all around, and many in the plane of the two ends, where the largest remainders are.
        plane = rng.normal(size=(4000, 2)) @ np.stack([here, there])
        x = np.concatenate([rng.normal(size=(2000, 3)), plane])
        x = x if stretch is None else x * stretch
        ends = [end if stretch is None else end / stretch for end in (here, there)]
        bounds = mintmc.RegressionBounds(x, second=1.0, third=1.0, published=published)
        f = EXTREME[order]
        remainder = np.abs(f(x @ ends[1]) - f(x @ ends[0]))
        with jax.enable_x64(True):
            distance = float(bounds.distance(order, *(jnp.asarray(end) for end in ends), jnp.zeros(3)))
        found.append((remainder / (smaller * bounds.scales(order) * distance)).max())
    return np.array(found)


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_no_remainder_exceeds_its_bound(order, published):
    found = ratios(order, published)
    assert found.max() <= 1 + 1e-6
    # The twin: bounds a little smaller do not hold.
    assert ratios(order, published, smaller=TIGHT if not published else 0.4).max() > 1


def test_the_smallest_distances_are_nearly_used_up_whereever_the_ends_lie():
    """Rows in Euclidean lengths: order 1 is the smallest bound that there is, order 2 is close."""
    rng = np.random.default_rng(2)
    for order, used in ((1, 0.999), (2, 0.6)):
        for here, there in geometries(rng):
            angles = np.linspace(0, np.pi, 2001)
            basis = np.linalg.svd(np.stack([here, there]), full_matrices=False)[2]
            x = np.stack([np.cos(angles), np.sin(angles)], axis=1) @ basis
            plain = mintmc.RegressionBounds(x, second=1.0, third=1.0, published=True)
            # The distance of round rows, for which lengths are Euclidean but for a factor.
            round_rows = mintmc.RegressionBounds(np.eye(3), second=1.0, third=1.0)
            with jax.enable_x64(True):
                ends = [jnp.asarray(end) for end in (here, there)]
                smallest, published = (float(b.distance(order, *ends, jnp.zeros(3))) for b in (round_rows, plain))
            remainder = np.abs(EXTREME[order](x @ there) - EXTREME[order](x @ here)).max()
            assert used * smallest <= remainder <= smallest * (1 + 1e-9)
            assert smallest <= published * (1 + 1e-9)


def test_units_of_the_columns_do_not_matter():
    """Lengths are measured where rows are round: rows times a matrix, params times its inverse, and all is the same."""
    stretch = np.array([1.0, 1e-3, 50.0])
    plain, stretched = ratios(2, published=False), ratios(2, published=False, stretch=stretch)
    np.testing.assert_allclose(plain, stretched, rtol=1e-4)
    # The twin: Euclidean lengths depend on units, and are the worse for it.
    assert np.median(ratios(2, published=True, stretch=stretch)) < 0.2 * np.median(ratios(2, published=True))


def test_many_columns_are_scaled_but_not_turned(monkeypatch):
    monkeypatch.setattr("mintmc.control.bounds._MOST_ROUNDED", 2)
    for order in (1, 2):
        assert ratios(order, published=False).max() <= 1 + 1e-6
    x = np.random.default_rng(0).normal(size=(50, 3)) * [1, 100, 1e-3]
    turn = mintmc.RegressionBounds.logistic(x)._turn[0]
    assert turn.shape == (3,)
    np.testing.assert_allclose(turn**2, (x**2).sum(axis=0) / 4)


def test_collinear_columns_have_bounds_as_well():
    x = np.random.default_rng(0).normal(size=(100, 2))
    bounds = mintmc.RegressionBounds.logistic(np.column_stack([x, x[:, 0]]))
    assert np.isfinite(bounds.scales(2)).all()


def test_one_more_derivative_is_one_more_power_of_the_length():
    x = np.random.default_rng(0).normal(size=(10, 3))
    bounds = mintmc.RegressionBounds(x, 2.0, 3.0, np.arange(10.0), published=True)
    lengths = np.linalg.norm(x, axis=1)
    np.testing.assert_allclose(bounds.scales(0), 2 * lengths)
    np.testing.assert_allclose(bounds.scales(1), 3 * lengths**2)
    np.testing.assert_allclose(bounds.scales(2), np.arange(10) * lengths**3)
    np.testing.assert_allclose(row_norms(x), lengths)


def test_a_move_that_goes_nowhere_has_distance_zero():
    bounds = mintmc.RegressionBounds.logistic(np.random.default_rng(0).normal(size=(10, 3)))
    for order in (0, 1, 2):
        for at in (jnp.zeros(3), jnp.ones(3)):
            assert float(bounds.distance(order, at, at, jnp.zeros(3))) == 0


def test_logistic_bounds_hold_on_random_moves():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(500, 4)) * [1, 2, 0.1, 1]
    centre, here, there = rng.normal(size=(3, 4)) * 0.5
    change = np.logaddexp(0, -x @ here) - np.logaddexp(0, -x @ there)
    bound = float(mintmc.logistic_bound(x)(jnp.asarray(here), jnp.asarray(there)))
    assert 0.1 * bound < np.abs(change).max() <= bound
    p = 1 / (1 + np.exp(-x @ centre))
    v, v_there = x @ (here - centre), x @ (there - centre)
    expanded = (1 - p) * (v_there - v) - p * (1 - p) * (v_there**2 - v**2) / 2
    bound = float(mintmc.logistic_remainder(x)(*(jnp.asarray(t) for t in (here, there, centre))))
    assert 0.01 * bound < np.abs(change - expanded).max() <= bound


MISTAKES = {
    # name: (what to call, error, what the message says)
    "no x": (lambda: mintmc.RegressionBounds.logistic(None), TypeError, r"x must be a finite array of shape \(n, d\)"),
    "x a vector": (lambda: mintmc.RegressionBounds.logistic(np.ones(3)), ValueError, r"got shape \(3,\)"),
    "no rows": (lambda: mintmc.RegressionBounds.logistic(np.ones((0, 3))), ValueError, r"got shape \(0, 3\)"),
    "x not finite": (lambda: mintmc.RegressionBounds.logistic([[np.nan]]), ValueError, "x must be a finite array"),
    "nothing bounded": (lambda: mintmc.RegressionBounds(ONE), ValueError, "at least one of first, second and third"),
    "a negative bound": (
        lambda: mintmc.RegressionBounds(ONE, third=-1.0),
        ValueError,
        "third must be at least 0, got -1",
    ),
    "bounds of other rows": (
        lambda: mintmc.RegressionBounds(ONE, third=[1.0, 2.0]),
        ValueError,
        "third must be a number, or n=1 of them",
    ),
    "counts below 0": (lambda: mintmc.RegressionBounds.poisson(ONE, [-1]), ValueError, "y must be counts.*got -1"),
    "no degrees": (
        lambda: mintmc.RegressionBounds.student_t(ONE, 0),
        ValueError,
        r"degrees must be in \[1e-09, 1e\+09\]",
    ),
    "an order without bound": (
        lambda: mintmc.RegressionBounds.probit(ONE).scales(0),
        ValueError,
        "bounds must have first, a bound on that derivative, for order 0, got None",
    ),
    "no distance": (lambda: mintmc.RemainderBounds(np.ones(3), 2.0), TypeError, "distance must be a function"),
    "a scale": (lambda: mintmc.RemainderBounds(2.0, abs), TypeError, "scales must be an array of one number a row"),
}


test_mistake_is_refused = each_refused(MISTAKES)
