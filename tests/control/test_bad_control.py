"""What is refused where there are control variates: the argument, what is allowed, and the value, in one line."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.modes.find import check_hessian_fits

X = np.random.default_rng(0).normal(size=500)
POSTERIOR = mintmc.Posterior(lambda theta, x: -0.5 * (x - theta[0]) ** 2, X)


def controlled(**settings):
    given = {"batch_size": 50, "temperature": 1.0, "control": mintmc.Taylor()} | settings
    return mintmc.MINT(**given)


SETTINGS = {
    "control must be a Taylor, or None, got 2": {"control": 2},
    "control must be a Taylor, or None, got the class Taylor: call it": {"control": mintmc.Taylor},
    "estimator must be 'common' with control .differences are controlled., got 'recycled'": {"estimator": "recycled"},
    "estimator must be 'common' with control .differences are controlled., got 'independent'": {
        "estimator": "independent"
    },
    "temperature must be in .1, inf., got 0.5": {"temperature": 0.5},
    "batch_size must be a whole number at least 1 without control, got None": {"batch_size": None, "control": None},
    "temperature must be given where batch_size is left open, got ..alpha": {
        "batch_size": None,
        "alpha": 0.5,
        "temperature": None,
    },
    "batch_size must be at least 2 with penalty=True": {"batch_size": 1},
}


@pytest.mark.parametrize("message", SETTINGS)
def test_settings(message):
    with pytest.raises((ValueError, TypeError), match=message):
        controlled(**SETTINGS[message])


def run(sampler, posterior=POSTERIOR, init=0.0):
    return mintmc.sample(posterior, sampler, init=np.full(1, init), draws=10, warmup=10, chains=1, progress=False)


def without_second_derivatives(theta, x):
    """A custom rule for reverse mode alone."""

    @jax.custom_vjp
    def square(t):
        return t**2

    square.defvjp(lambda t: (t**2, t), lambda t, g: (2 * t * g,))
    return -square(theta[0] - x)


RUNS = {
    "control.centre must have the form of init": lambda: run(controlled(control=mintmc.Taylor(np.zeros(2)))),
    "control.centre must be finite, got": lambda: run(controlled(control=mintmc.Taylor(np.array([np.nan])))),
    "control.centre must lie within 10 standard deviations of a mode .None finds it., got": lambda: run(
        controlled(control=mintmc.Taylor(np.array([3.0])))
    ),
    "batch_size must be in .1, n=500., got 501": lambda: run(controlled(batch_size=501)),
    "control.order must be 2 for Autoregressive, which needs the curvature, got 1": lambda: run(
        controlled(control=mintmc.Taylor(order=1), proposal=mintmc.Autoregressive())
    ),
    "control.order must be 2 for Langevin.preconditioner='laplace'., which needs the curvature, got 1": lambda: run(
        controlled(control=mintmc.Taylor(order=1), proposal=mintmc.Langevin(preconditioner="laplace"))
    ),
    "control needs a log_likelihood with first and second derivatives by JAX, got": lambda: run(
        controlled(), mintmc.Posterior(without_second_derivatives, X)
    ),
    "posterior must have data": lambda: run(controlled(), mintmc.Posterior.from_density(lambda t: -jnp.sum(t**2))),
    "posterior must have a mode": lambda: run(
        controlled(), mintmc.Posterior(lambda t, x: jax.nn.log_sigmoid(t[0] * jnp.abs(x)), X)
    ),
}


@pytest.mark.parametrize("message", RUNS)
def test_runs(message):
    with pytest.raises(ValueError, match=message):
        RUNS[message]()


def test_a_hessian_that_does_not_fit():
    with pytest.raises(
        ValueError, match=r"order must be 1 for 10,000,000 parameters.*GB.*order=1 needs, takes 76.3 MB"
    ):
        check_hessian_fits(10_000_000)
    check_hessian_fits(100)


def test_a_centre_that_was_given_is_taken():
    """Any centre near the mode gives the same law; where it is, is told."""
    tree = mintmc.sample(
        POSTERIOR,
        controlled(control=mintmc.Taylor(np.array([X.mean() + 0.05]))),
        init=np.zeros(1),
        draws=4000,
        chains=2,
        progress=False,
    )
    assert tree.attrs["centre"] == pytest.approx([X.mean() + 0.05], abs=1e-6)
    assert tree.attrs["centre_gradient"] == pytest.approx(0.05 * np.sqrt(500), rel=0.01)
    assert float(tree.posterior["theta"].mean()) == pytest.approx(X.mean(), abs=4 / np.sqrt(500 * 1000))


@pytest.mark.parametrize("ladder", [mintmc.ParallelTempering, mintmc.EquiEnergy])
def test_ladders_do_without_the_curvature(ladder):
    sampler = ladder(mintmc.Ladder([1.0, 4.0]), proposal=mintmc.RandomWalk(preconditioner="laplace"))
    with pytest.raises(ValueError, match=r"preconditioner must be .* on a ladder.*, got 'laplace'"):
        run(sampler)
