"""The smallest comfortable batch, from moments of the residuals."""

import numpy as np
import pytest

from mintmc.control.choose import COMFORTABLE, FEWEST, NEGLIGIBLE, Residuals

N = 1_000_000


def residuals(values):
    centred = values - values.mean()
    return Residuals(*(np.abs((centred**power).mean()) for power in (2, 3, 4)), len(values))


def test_quiet_rows_take_the_fewest():
    quiet = residuals(1e-9 * np.random.default_rng(0).normal(size=10_000))
    assert quiet.smallest_batch(N, N) == FEWEST
    assert quiet.smallest_batch(50, 50) == 50


@pytest.mark.parametrize("spread", [1e-5, 5e-5])
def test_normal_rows_are_decided_by_their_variance(spread):
    noisy = residuals(spread * np.random.default_rng(0).normal(size=100_000))
    chosen = noisy.smallest_batch(N, N)
    assert noisy.noise(N, N, chosen) <= COMFORTABLE * 1.001
    # Round numbers: at most 25% more than needed.
    assert noisy.noise(N, N, int(chosen / 1.3)) > COMFORTABLE


def test_heavy_tails_ask_for_more_than_the_variance_does():
    rng = np.random.default_rng(0)
    values = 1e-6 * rng.normal(size=100_000)
    values[0] = 1e-3
    heavy = residuals(values)
    chosen = heavy.smallest_batch(N, N)
    by_variance = residuals(np.sqrt(heavy.variance) * rng.normal(size=100_000)).smallest_batch(N, N)
    assert chosen > 2 * by_variance
    assert N**4 * heavy.fourth / chosen**3 / 24 <= NEGLIGIBLE * 1.01


def test_where_most_rows_are_needed_all_are():
    assert residuals(np.random.default_rng(0).normal(size=1000)).smallest_batch(N, N) == N
    assert Residuals(np.inf, np.inf, np.inf, 10).smallest_batch(N, N) == N
