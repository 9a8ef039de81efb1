import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from mintmc.acceptance import design
from mintmc.acceptance.design import Design


def simulate(mu_std, n, batch_size, epsilon, paths, seed):
    """The test on simulated batch means: partial sums of a population of known mean are a Brownian bridge.

    Shares nothing with the recursion under test. Estimates and standard errors of (error, looks, fraction).
    """
    rng = np.random.default_rng(seed)
    read = np.minimum(np.arange(1, -(-n // batch_size) + 1) * batch_size / n, 1.0)
    sums = np.cumsum(rng.normal(size=(paths, len(read))) * np.sqrt(np.diff(read, prepend=0.0)), axis=1)
    bridge = (sums - read * sums[:, -1:])[:, :-1]
    inner = read[:-1]
    z = mu_std * np.sqrt(inner / (1 - inner)) + bridge / np.sqrt(inner * (1 - inner))

    stops = np.abs(z) > ndtri(1 - epsilon)
    stopped = stops.any(axis=1)
    first = np.where(stopped, stops.argmax(axis=1), len(inner))
    at_stop = np.take_along_axis(z, np.minimum(first, len(inner) - 1)[:, None], axis=1)[:, 0]
    wrong = stopped & (at_stop < 0 if mu_std >= 0 else at_stop > 0)
    draws = np.stack([wrong, first + 1, read[first]]).astype(float)
    return draws.mean(axis=1), draws.std(axis=1) / math.sqrt(paths)


def recursion(mu_std, n, batch_size, epsilon, bins=100, remembers=True):
    """The dynamic programme as printed, one mu_std at a time; a broken twin without b_j."""
    limit, last = ndtri(1 - epsilon), -(-n // batch_size)
    centres = (np.arange(bins) + 0.5) * (2 * limit / bins) - limit
    cells, mass, before = np.zeros(1), np.ones(1), 0.0
    going, error, looks, fraction = 1.0, 0.0, 0.0, 0.0
    for look in range(1, last):
        read = look * batch_size / n
        a = (read - before) / ((1 - before) * math.sqrt(read * (1 - read)))
        b = math.sqrt(before * (1 - read) / (read * (1 - before))) if remembers else 1.0
        s = math.sqrt((read - before) / (read * (1 - before)))
        mean = a * mu_std + b * cells
        low, high = mass @ ndtr((-limit - mean) / s), mass @ ndtr((mean - limit) / s)
        error += low if mu_std >= 0 else high
        looks += look * (low + high)
        fraction += read * (low + high)
        going -= low + high
        if going < 1e-13:  # of no weight, and the density may underflow
            return np.array([error, looks, fraction])
        mass = np.exp(-(((centres[:, None] - mean) / s) ** 2) / 2) @ mass
        cells, mass, before = centres, mass * going / mass.sum(), read
    return np.array([error, looks + last * going, fraction + going])


# The authors' printed table (n = 13000, 100 bins), with all its digits.
PRINTED = [
    (0.0, 50, 0.001, "0.03126", "251.346", "0.96671"),
    (0.0, 100, 0.005, "0.09559", "116.185", "0.89373"),
    (0.0, 450, 0.01, "0.09967", "25.7839", "0.88944"),
    (0.0, 500, 0.05, "0.30469", "16.0449", "0.61711"),
    (0.0, 500, 0.2, "0.49604", "4.1158", "0.15830"),
    (2.0, 450, 0.01, "0.006887", "13.8834", "0.480578"),
]


@pytest.mark.parametrize(("mu_std", "batch_size", "epsilon", "error", "looks", "fraction"), PRINTED)
def test_printed_figures(mu_std, batch_size, epsilon, error, looks, fraction):
    found = design.performance(mu_std, 13000, batch_size, epsilon)
    for value, text in zip(found, (error, looks, fraction), strict=True):
        assert f"{value:.{len(text.partition('.')[2])}f}" == text


# n not a multiple of the batch size gives a short last batch and a look very close to the end.
@pytest.mark.parametrize(
    ("n", "batch_size", "epsilon", "bins"),
    [(13000, 450, 0.01, 100), (1001, 50, 0.001, 100), (700, 33, 0.3, 51)],
)
def test_one_pass_for_all_drifts_is_the_printed_recursion(n, batch_size, epsilon, bins):
    drifts = np.array([[-6.0, -0.3, 0.0], [0.01, 1.0, 9.0]])
    found = design.performance(drifts, n, batch_size, epsilon, bins)
    assert found.error.shape == drifts.shape
    for index, drift in np.ndenumerate(drifts):
        figures = [values[index] for values in found]
        np.testing.assert_allclose(figures, recursion(drift, n, batch_size, epsilon, bins), rtol=1e-9)


# 100 000 walks; 400 bins, so that the discretisation (below 1e-4) is well inside the standard errors (1e-3).
CASES = [(0.0, 13000, 450, 0.01), (-1.0, 13000, 450, 0.01), (2.0, 13000, 500, 0.05), (0.5, 1010, 100, 0.02)]


@pytest.mark.parametrize("case", CASES)
def test_simulated_walks_agree(case):
    estimate, standard_error = simulate(*case, paths=100_000, seed=2014)
    assert (np.abs(np.array(design.performance(*case, bins=400)) - estimate) < 4 * standard_error).all()


@pytest.mark.parametrize("case", CASES)
def test_simulated_walks_catch_a_recursion_without_memory_factor(case):
    estimate, standard_error = simulate(*case, paths=100_000, seed=2014)
    assert (np.abs(recursion(*case, bins=400) - estimate) < 4 * standard_error).all()
    assert (np.abs(recursion(*case, bins=400, remembers=False) - estimate) > 8 * standard_error).any()


def test_simulated_walks_catch_a_missing_finite_population_correction(monkeypatch):
    monkeypatch.setattr(design, "_clock", lambda read: read)
    estimate, standard_error = simulate(*CASES[0], paths=100_000, seed=2014)
    assert abs(design.performance(*CASES[0]).error - estimate[0]) > 8 * standard_error[0]


def test_a_real_population_read_without_replacement():
    # The whole claim, from numbers: data in random order, the sample's own sd, the finite-population factor.
    rng = np.random.default_rng(7)
    n, batch_size, epsilon, mu_std, paths = 600, 100, 0.05, 1.0, 20_000
    population = rng.normal(size=n)
    population = (population - population.mean()) / population.std() + mu_std / math.sqrt(n - 1)
    order = rng.permuted(np.broadcast_to(population, (paths, n)), axis=1)
    undecided, wrong, looks = np.ones(paths, bool), 0, 0
    for seen in range(batch_size, n, batch_size):
        looks += undecided.sum()
        part = order[:, :seen]
        sd = part.std(axis=1, ddof=1) / math.sqrt(seen) * math.sqrt(1 - (seen - 1) / (n - 1))
        z = part.mean(axis=1) / sd
        wrong += (undecided & (z < -ndtri(1 - epsilon))).sum()
        undecided &= np.abs(z) <= ndtri(1 - epsilon)
    looks += undecided.sum()
    found = design.performance(mu_std, n, batch_size, epsilon)
    # 4 standard errors (0.0013 and 0.013), plus 0.003 and 0.03 for the estimated sd on 100 observations.
    assert wrong / paths == pytest.approx(found.error, abs=0.0083)
    assert looks / paths == pytest.approx(found.looks, abs=0.08)


def test_error_at_zero_is_half_the_chance_of_an_early_stop():
    n, batch_size, epsilon = 1000, 100, 0.05
    error, looks, fraction = design.performance(0.0, n, batch_size, epsilon)
    assert 0 < error < 0.5
    assert fraction == pytest.approx(looks * batch_size / n)  # every batch is a whole one
    # Looking once more cannot lower the chance of an early stop below that of the first look.
    assert error > epsilon


def test_edges():
    # All data in one batch: always right.
    assert design.performance(0.3, 100, 100, 0.1) == (0.0, 1.0, 1.0)
    # Level 1/2 always stops at the first look, and is wrong with the normal tail of that look.
    error, looks, fraction = design.performance(1.5, 100, 20, 0.5)
    assert error == pytest.approx(ndtr(-1.5 * math.sqrt(0.2 / 0.8)))
    assert (looks, fraction) == pytest.approx((1.0, 0.2))
    # Far from the threshold, and with a clock that runs far: no overflow, no error.
    assert design.performance(1e4, 100_001, 500, 0.001) == pytest.approx((0.0, 1.0, 500 / 100_001))
    assert design.performance(np.zeros(0), 100, 10, 0.1).error.shape == (0,)


def test_published_conservative_design_13000():
    assert design.conservative(13000, 0.1) == Design(450, 0.01)


# Around the published choice; the full grid is the slow test below.
def test_published_conservative_design_100000():
    near = {"batch_sizes": (250, 300, 350), "epsilons": (0.005, 0.01, 0.05)}
    assert design.conservative(100_000, 0.2, **near) == Design(300, 0.01)
    # With the authors' 100 bins its error reads 0.20026 (converged: 0.19971), so the bins decide.
    assert design.conservative(100_000, 0.2, **near, bins=100) == Design(350, 0.01)


@pytest.mark.slow
def test_published_conservative_design_100000_on_the_full_grid():
    assert design.conservative(100_000, 0.2) == Design(300, 0.01)


def test_table_holds_the_cheapest_feasible_test():
    n, max_error, sizes, levels = 2003, 0.05, (50, 100, 200), (0.001, 0.01, 0.1)
    found = design.table(n, max_error, sizes, levels)
    np.testing.assert_array_equal(found.mu_std, -found.mu_std[::-1])
    np.testing.assert_allclose(found.mu_std, np.linspace(-10, 10, 4001), atol=1e-12)
    np.testing.assert_array_equal(found.epsilon, found.epsilon[::-1])
    np.testing.assert_array_equal(found.batch_size, found.batch_size[::-1])
    for index in range(2000, 4001, 97):
        drift = found.mu_std[index]
        figures = {(m, level): design.performance(drift, n, m, level) for m in sizes for level in levels}
        chosen = found.batch_size[index], found.epsilon[index]
        # The table is interpolated between 101 drifts: 1e-4 in the error, and in the data read relative to n.
        assert figures[chosen].error < max_error + 1e-4
        cost = {key: value.looks * key[0] for key, value in figures.items() if value.error < max_error - 1e-4}
        assert cost.keys()
        assert figures[chosen].looks * chosen[0] < min(cost.values()) + 1e-4 * n
    assert len(set(zip(found.batch_size, found.epsilon, strict=True))) > 3


# 13001 = 1 mod 50: the last look but one is at clock n - 1, and the error bends within 1 / sqrt(n) of 0.
@pytest.mark.parametrize(("n", "batch_size", "epsilon"), [(13000, 250, 0.001), (13001, 250, 0.01), (13001, 500, 0.05)])
def test_interpolation_of_the_table(n, batch_size, epsilon):
    drifts = np.linspace(0, 10, 2001)
    nodes = design._nodes(drifts)
    assert len(nodes) < 150
    there = design.performance(nodes, n, batch_size, epsilon)
    exact = design.performance(drifts[::7], n, batch_size, epsilon)
    share = batch_size / n  # the data read are looks * batch_size, out of n
    for coarse, fine in ((there.error, exact.error), (there.looks * share, exact.looks * share)):
        np.testing.assert_allclose(design._interpolate(drifts[::7], nodes, coarse), fine, rtol=0, atol=1e-4)


def test_far_from_the_threshold_the_table_is_cheaper_than_the_conservative_test():
    found = design.table(2000, 0.1, (50, 100), (0.01, 0.1), half_points=20)
    assert Design(found.batch_size[20], found.epsilon[20]) == design.conservative(2000, 0.1, (50, 100), (0.01, 0.1))
    assert found.epsilon[-1] > found.epsilon[20]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.7}, r"epsilon must be in \(0, 0\.5\], got 0\.7"),
        ({"epsilon": 0.0}, r"epsilon must be in \(0, 0\.5\], got 0"),
        ({"batch_size": 0}, r"batch_size must be in \[1, n=1000\], got 0"),
        ({"batch_size": 1001}, r"batch_size must be in \[1, n=1000\], got 1001"),
        ({"n": 1}, r"n must be at least 2, got 1"),
        ({"bins": 0}, r"bins must be at least 1, got 0"),
        ({"mu_std": math.nan}, r"mu_std must be finite, got nan"),
        ({"mu_std": [0.0, math.inf]}, r"mu_std must be finite, got \[ 0\. inf\]"),
    ],
)
def test_bad_test(change, message):
    good = {"mu_std": 0.0, "n": 1000, "batch_size": 100, "epsilon": 0.05}
    with pytest.raises(ValueError, match=message):
        design.performance(**(good | change))


@pytest.mark.parametrize("search", [design.conservative, design.table])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_error": 0.0}, r"max_error must be in \(0, 0\.5\], got 0"),
        ({"max_error": 0.6}, r"max_error must be in \(0, 0\.5\], got 0\.6"),
        (
            {"max_error": 1e-4},
            r"max_error must be above 0\.\d+, the smallest error of these tests, got 0\.0001",
        ),
        ({"batch_sizes": (50, 2000)}, r"batch_sizes must be in \[1, n=1000\], got 2000"),
        ({"batch_sizes": ()}, r"batch_sizes must hold at least one value, got \(\)"),
        ({"epsilons": ()}, r"epsilons must hold at least one value, got \(\)"),
        ({"epsilons": (0.6,)}, r"epsilons must be in \(0, 0\.5\], got 0\.6"),
    ],
)
def test_bad_search(search, change, message):
    with pytest.raises(ValueError, match=message):
        search(**({"n": 1000, "max_error": 0.1, "batch_sizes": (100,), "epsilons": (0.01,)} | change))


def test_bad_table():
    with pytest.raises(ValueError, match=r"half_width must be in \(0, inf\), got -1"):
        design.table(1000, 0.1, half_width=-1.0)
    with pytest.raises(ValueError, match=r"half_points must be at least 1, got 0"):
        design.table(1000, 0.1, half_points=0)
