"""Step schedules: the published numbers, the ends, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

from mintmc.kernels.schedule import Polynomial, check_step_size, largest_step, step_at
from mistakes import each_refused


def test_the_schedule_of_welling_and_teh():
    # Tied means: 10^6 updates from 1e-2 to 1e-4 at gamma = .55; a and b as solved in closed form elsewhere.
    schedule = Polynomial.between(1e-2, 1e-4, 10**6)
    assert (round(schedule.a, 5), round(schedule.b, 2), schedule.gamma) == (0.19955, 231.07, 0.55)


@pytest.mark.parametrize("gamma", [0.51, 0.55, 1.0])
@pytest.mark.parametrize("steps", [1, 1000, 10**8])
def test_it_goes_from_first_to_last(gamma, steps):
    schedule = Polynomial.between(0.3, 2e-5, steps, gamma)
    np.testing.assert_allclose([schedule.at(0), schedule.at(steps)], [0.3, 2e-5], rtol=1e-10)
    times = np.linspace(0, steps, 20)
    assert (np.diff(schedule.at(times)) < 0).all()
    assert largest_step(schedule) == schedule.at(0)


def test_under_jit_it_is_the_same_in_single_precision():
    schedule = Polynomial.between(1e-2, 1e-4, 10**6)
    times = np.array([0, 1, 77, 12_345, 10**6, 10**9], np.int32)
    steps = [float(step_at(schedule, jnp.asarray(t), jnp.float32)) for t in times]
    # A few roundings of float32 (6e-8), through a power.
    np.testing.assert_allclose(steps, schedule.at(times.astype(float)), rtol=1e-6)


def test_a_number_is_a_constant_step():
    check_step_size(0.25)
    assert largest_step(0.25) == 0.25
    assert float(step_at(0.25, jnp.asarray(10**6), jnp.float32)) == 0.25


MISTAKES = {
    "a 0": (lambda: Polynomial(0.0, 1.0, 0.6), ValueError, r"a must be in \(0, inf\), got 0"),
    "b 0": (lambda: Polynomial(1.0, 0.0, 0.6), ValueError, r"b must be in \(0, inf\), got 0"),
    "gamma 1/2": (lambda: Polynomial(1.0, 1.0, 0.5), ValueError, r"gamma must be in \(0.5, 1\], got 0.5"),
    "gamma above 1": (lambda: Polynomial(1.0, 1.0, 1.1), ValueError, r"gamma must be in \(0.5, 1\], got 1.1"),
    "gamma nan": (lambda: Polynomial(1.0, 1.0, np.nan), ValueError, r"gamma must be in \(0.5, 1\], got nan"),
    "first negative": (lambda: Polynomial.between(-1.0, 0.1, 10), ValueError, r"first must be in \(0, inf\), got -1"),
    "last 0": (lambda: Polynomial.between(1.0, 0.0, 10), ValueError, r"last must be in \(0, inf\), got 0"),
    "increasing": (
        lambda: Polynomial.between(1e-4, 1e-2, 10),
        ValueError,
        "last must be below first=0.0001, for a step schedule must decrease, got 0.01",
    ),
    "constant": (lambda: Polynomial.between(0.1, 0.1, 10), ValueError, "last must be below first=0.1"),
    "no steps": (lambda: Polynomial.between(1.0, 0.1, 0), ValueError, "steps must be at least 1, got 0"),
    "gamma between": (lambda: Polynomial.between(1.0, 0.1, 10, 0.3), ValueError, r"gamma must be in \(0.5, 1\]"),
    "step 0": (lambda: check_step_size(0.0), ValueError, r"step_size must be in \(0, inf\), got 0"),
    "step infinite": (lambda: check_step_size(np.inf), ValueError, r"step_size must be in \(0, inf\), got inf"),
    "step a word": (lambda: check_step_size("small"), TypeError, r"step_size must be a number.*got 'small'"),
    "step a function": (lambda: check_step_size(lambda t: 0.1), TypeError, "step_size must be a number"),
}


test_mistake_is_refused = each_refused(MISTAKES)
