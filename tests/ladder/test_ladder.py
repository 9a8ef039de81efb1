"""The ladders of the paper, and every ladder that is none."""

import numpy as np
import pytest

import mintmc
from mintmc import Ladder
from mistakes import each_refused


def test_the_paper_ladder():
    ladder = Ladder.mint(100_000, smallest_batch=1000, growth=1.4, alpha=0.995, rungs=7)
    # The paper's table: T = n^(1 - lambda), hottest first.
    np.testing.assert_allclose(
        ladder.temperatures[:0:-1], [103.51, 74.06, 53.02, 37.93, 27.13, 19.41], atol=0.005, rtol=0
    )
    assert ladder.batch_sizes[:0:-1] == (1000, 1400, 1959, 2743, 3841, 5378)
    assert (ladder.temperatures[0], ladder.batch_sizes[0], len(ladder)) == (1.0, None, 7)


def test_the_whole_ladder_has_no_gap():
    n = 100_000
    ladder = Ladder.mint(n, smallest_batch=1000, growth=1.4, alpha=0.9)
    sizes = np.array(ladder.rows(n))
    # 14 sizes from 1000 to 79371 = 1000 * 1.4^13; from T = 3.9 there are three more on all data down to 1.
    assert len(ladder) == 18
    assert (sizes[:4] == n).all()
    # Neighbours differ by the growth factor at most, up to rounding.
    assert (sizes[:-1] / sizes[1:] < 1.4 * 1.001).all()
    # T = n^(1 - alpha tau) with m = n^tau.
    tau = np.log(sizes[4:]) / np.log(n)
    np.testing.assert_allclose(ladder.temperatures[4:], n ** (1 - 0.9 * tau), rtol=1e-12)


@pytest.mark.parametrize(("n", "smallest", "alpha"), [(10_000, 500, 0.4), (100_000, 1000, 0.9), (1_000_000, 50, 0.99)])
def test_temperatures_have_no_gap(n, smallest, alpha):
    """MINTEE(500, alpha=0.4) once had T = 1 and 283.7 side by side at n = 1e4."""
    temperatures = np.array(mintmc.MINTEE(smallest, alpha=alpha).for_data(n).ladder.temperatures)
    assert (temperatures[1:] / temperatures[:-1] < 1.4**1.1).all()
    # With a number of rungs the gap is the user's, as it is the paper's.
    assert mintmc.MINTEE(smallest, alpha=alpha, rungs=3).for_data(n).ladder.temperatures[1] > 1.4**1.1


def test_geometric_temperatures_have_equal_ratios():
    ladder = Ladder.geometric(hottest=50.0, rungs=6)
    ratios = np.divide(ladder.temperatures[1:], ladder.temperatures[:-1])
    np.testing.assert_allclose(ratios, 50 ** (1 / 5), rtol=1e-11)
    assert ladder.temperatures[-1] == 50.0
    assert ladder.batch_sizes == (None,) * 6


def test_batches_of_all_rows_fit():
    ladder = Ladder([1, 2, 4], [None, 100, 20])
    ladder.check_against(100)
    assert ladder.rows(100) == (100, 100, 20)


def test_numbers_of_any_kind_become_plain_ones():
    ladder = Ladder(np.array([1, 2]), np.array([30, 20]))
    assert ladder == Ladder([1.0, 2.0], [30, 20])
    assert all(type(size) is int for size in ladder.batch_sizes)


MISTAKES = {
    # name: (what to call, error, what the message says)
    "one rung": (lambda: Ladder([1]), ValueError, "at least two rungs, got"),
    "no rung": (lambda: Ladder([]), ValueError, "at least two rungs, got"),
    "not from 1": (lambda: Ladder([2, 4]), ValueError, "must increase strictly from 1, got"),
    "falling": (lambda: Ladder([1, 4, 2]), ValueError, "must increase strictly from 1, got"),
    "twice the same": (lambda: Ladder([1, 2, 2]), ValueError, "must increase strictly from 1, got"),
    "zero": (lambda: Ladder([0, 1]), ValueError, r"temperatures must be in \(0, inf\), got 0"),
    "infinite": (lambda: Ladder([1, np.inf]), ValueError, "temperatures must be in .*, got inf"),
    "nan": (lambda: Ladder([1, np.nan]), ValueError, "temperatures must be in .*, got nan"),
    "a word": (lambda: Ladder([1, "hot"]), TypeError, "temperatures must be a number .*, got 'hot'"),
    "a string": (lambda: Ladder("12"), TypeError, "temperatures must be a sequence, got '12'"),
    "a number": (lambda: Ladder(3.0), TypeError, "temperatures must be a sequence, got 3.0"),
    "too few sizes": (lambda: Ladder([1, 2, 4], [None, 9]), ValueError, "one entry for each of 3 rungs, got"),
    "too many sizes": (lambda: Ladder([1, 2], [None, 9, 9]), ValueError, "one entry for each of 2 rungs, got"),
    "growing sizes": (lambda: Ladder([1, 2], [10, 20]), ValueError, "must not increase with temperature, got"),
    "all data above a batch": (lambda: Ladder([1, 2], [10, None]), ValueError, "must not increase with temp.*, got"),
    "size of one": (lambda: Ladder([1, 2], [None, 1]), ValueError, "batch_sizes must be at least 2, got 1"),
    "negative size": (lambda: Ladder([1, 2], [None, -5]), ValueError, "batch_sizes must be at least 2, got -5"),
    "half a row": (lambda: Ladder([1, 2], [None, 2.5]), TypeError, "batch_sizes must be a whole .*, got 2.5"),
    "one size": (lambda: Ladder([1, 2], 10), TypeError, "batch_sizes must be a sequence, got 10"),
    "more than n": (
        lambda: Ladder([1, 2], [None, 200]).check_against(100),
        ValueError,
        r"batch_sizes must be in \[2, n=100\], got 200",
    ),
    "batches of nothing": (
        lambda: Ladder([1, 2], [None, 20]).check_against(0),
        ValueError,
        "must be None for a density without data, got 20",
    ),
    "geometric, cold": (lambda: Ladder.geometric(1.0, 3), ValueError, r"hottest must be in \(1, inf\), got 1"),
    "geometric, one rung": (lambda: Ladder.geometric(5.0, 1), ValueError, "rungs must be at least 2, got 1"),
    "mint, large batch": (
        lambda: Ladder.mint(100, 100, 1.4, 0.9),
        ValueError,
        r"smallest_batch must be in \[2, n - 1=99\], got 100",
    ),
    "mint, no growth": (lambda: Ladder.mint(100, 10, 1.0, 0.9), ValueError, r"growth must be in \(1, inf\), got 1"),
    "mint, alpha": (lambda: Ladder.mint(100, 10, 1.4, 1.0), ValueError, r"alpha must be in \(0, 1\), got 1"),
    "mint, too many rungs": (
        lambda: Ladder.mint(100, 10, 2.0, 0.9, rungs=9),
        ValueError,
        "rungs must be at most 5 .*, got 9",
    ),
}


test_mistakes_are_refused = each_refused(MISTAKES)


def test_a_ladder_shows_what_it_is():
    assert repr(mintmc.Ladder([1, 3], [None, 50])) == "Ladder(temperatures=(1.0, 3.0), batch_sizes=(None, 50))"
