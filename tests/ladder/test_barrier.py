"""Against closed forms: in two dimensions the energies of N(0, T) are exponential with mean T.

The acceptance of a swap is then 2 P(h_i > h_{i+1}) = 2 T_i / (T_i + T_{i+1}): it depends on the ratio alone, so even
ladders are geometric, and the barrier up to T tends to log(T) / 2.
"""

import numpy as np
import pytest

from mintmc.ladder.barrier import barrier, even_temperatures
from mistakes import each_refused


def rejections(temperatures):
    t = np.asarray(temperatures)
    return (t[1:] - t[:-1]) / (t[1:] + t[:-1])


def test_the_barrier_of_a_gaussian():
    t = np.geomspace(1, 30, 400)
    # Each rejection is tanh(log ratio / 2): an error of order ratio^2 in all.
    np.testing.assert_allclose(barrier(rejections(t)), np.log(t) / 2, rtol=1e-4)


def test_the_barrier_hardly_depends_on_the_rungs():
    uneven = np.exp(np.linspace(0, 1, 30) ** 2 * np.log(30))
    assert barrier(rejections(uneven))[-1] == pytest.approx(np.log(30) / 2, rel=0.01)


@pytest.mark.parametrize("rungs", [5, 8, 20])
def test_even_temperatures_of_a_gaussian_are_geometric(rungs):
    t = 1 + 29 * np.linspace(0, 1, 20) ** 3
    for _ in range(3):
        t = even_temperatures(t, rejections(t), rungs)
    np.testing.assert_allclose(np.log(t), np.linspace(0, np.log(30), rungs), atol=0.01)


def test_even_temperatures_make_rejections_even():
    t = np.linspace(1, 30, 12)
    before, after = rejections(t), rejections(even_temperatures(t, rejections(t), 12))
    assert np.ptp(after) < 0.1 * np.ptp(before)


@pytest.mark.parametrize(
    "rates", [[0.9, 0.0, 0.0, 0.1], [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 1.0], [0.1, 0.9, 0.2, 0.3]]
)
def test_temperatures_stay_increasing_between_the_same_ends(rates):
    t = even_temperatures([1, 2, 3, 5, 70], rates, 9)
    assert (np.diff(t) > 0).all()
    assert (t[0], t[-1]) == (1.0, 70.0)


MISTAKES = {
    "above one": (lambda: barrier([0.5, 1.5]), r"rejections must be rates in \[0, 1\].*1.5"),
    "negative": (lambda: barrier([-0.1]), r"rejections must be rates in \[0, 1\].*-0.1"),
    "nan": (lambda: barrier([np.nan]), r"rejections must be rates in \[0, 1\].*nan"),
    "none": (lambda: barrier([]), r"rejections must be rates in \[0, 1\]"),
    "length": (lambda: even_temperatures([1, 2], [0.5, 0.5], 3), "one more than 2 rejections, got 2"),
    "rungs": (lambda: even_temperatures([1, 2], [0.5], 1), "rungs must be at least 2, got 1"),
}


test_mistakes_are_refused = each_refused(MISTAKES)
