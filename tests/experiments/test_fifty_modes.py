import json
import sys
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.experiments.fifty_modes import experiment as fifty_modes
from mintmc.experiments.fifty_modes import numbers as fifty_modes_numbers
from mintmc.experiments.fifty_modes import page as fifty_modes_page
from mintmc.experiments.fifty_modes.scale import SCALES, Scale, mixed_ladder
from mintmc.result.modes import relative_variance

TINY = Scale(
    d=4,
    n=2000,
    # One batch size and few kinds of rungs, because nearly all of the time is the compiler's.
    ladder=mintmc.Ladder([1.0, 3.0, 9.0, 27.0], [None, 500, 500, 500]),
    draws=600,
    warmup=200,
    feed=1200,
    published_draws=200,
    published_warmup=100,
    plain_draws=300,
    leap_draws=200,
    leap_warmup=60,
    reference_scans=600,
    reference_warmup=200,
    sweeps_compared=50,
    large_sweeps=0,
    shown=150,
    round_length=100,
    rings=8,  # temperatures so far apart need narrower rings
    published={"smallest_batch": 50, "rungs": 2},
)


@pytest.fixture(scope="module")
def trees():
    return fifty_modes.run_all(TINY, progress=False)


@pytest.fixture(scope="module")
def measured(trees):
    return fifty_modes.numbers(TINY, trees)


def reproduce(trees, out, monkeypatch):
    """All that follows the runs."""
    monkeypatch.setitem(SCALES, "quick", TINY)
    monkeypatch.setattr(fifty_modes, "run_all", lambda sizes, progress: trees)
    figure = fifty_modes.reproduce("quick", out, progress=False)
    return figure, json.loads((out / "fifty-modes.json").read_text()), (out / "fifty-modes.md").read_text()


@pytest.mark.slow
def test_reproduce_writes_figure_numbers_and_page(trees, tmp_path, monkeypatch):
    figure, numbers, page = reproduce(trees, tmp_path, monkeypatch)
    assert figure.stat().st_size > 30_000
    assert {claim["what"] for claim in numbers["claims"]} >= {"modes visited", "elbow of k-means"}
    assert set(numbers["parts"]) >= {"modes", "energy", "rungs", "published", "plain", "rings", "costs"}
    for part in ("**The paper says**", "fifty-modes.png", "Table 2", "## Rungs", "## Cost"):
        assert part in page


@pytest.mark.slow
def test_without_scikit_learn_the_rest_is_still_drawn(trees, tmp_path, monkeypatch):
    for name in ("sklearn", "sklearn.cluster", "sklearn.manifold"):
        monkeypatch.setitem(sys.modules, name, None)
    figure, numbers, _ = reproduce(trees, tmp_path, monkeypatch)
    assert figure.stat().st_size > 30_000
    assert "elbow of k-means" not in {claim["what"] for claim in numbers["claims"]}


@pytest.mark.slow
def test_on_our_ladder_all_modes_are_visited_and_on_the_papers_nothing_reaches_the_target(measured):
    assert measured["modes"]["modes_visited"] == TINY.d
    assert all(rung["jump_acceptance"] > 0.3 for rung in measured["rungs"][:-1])
    cold, warm = measured["published"]["rungs"][:2]
    assert warm["temperature"] > 20
    # In four dimensions, energies of so hot a rung are now and then as low as those at T = 1; in fifty they never are.
    assert cold["jump_acceptance"] < 0.02
    assert measured["plain"]["modes_visited_by_each_chain"] == [1, 1]


@pytest.mark.slow
def test_energies_of_every_rung_agree_with_parallel_tempering(measured):
    for rung in measured["rungs"]:
        assert abs(rung["z"]) < 4, rung


@pytest.mark.slow
def test_the_count_of_data_is_what_a_run_reads(measured):
    costs = measured["costs"]
    # Jumps are tossed: on three rungs a sweep reads a move more or less, of n, or of batches (0.4 n).
    for name, deviation in (("mintee", 0.4 * 0.5 * 3**0.5), ("full", 0.5 * 3**0.5)):
        error = deviation / costs[name]["sweeps"] ** 0.5
        assert abs(costs[name]["data_per_sweep"] - costs[f"{name}_counted"]) < 4 * error


@pytest.mark.slow
def test_every_part_can_be_written_as_json(measured):
    assert json.loads(json.dumps(measured)) == measured


def test_occupancy_counts_each_rung_by_itself():
    energy = np.array([[[0.0, 5.0, 9.9, 10.0]], [[10.0, 29.0, 30.0, 1e4]]])
    shares = fifty_modes_numbers.occupancy(energy, [10.0, 30.0])
    # An edge belongs to the ring above it.
    np.testing.assert_array_equal(shares, [[0.75, 0.25, 0.0], [0.0, 0.5, 0.5]])


def test_relative_variance_of_weights():
    assert relative_variance(np.full(50, 0.02)) == pytest.approx(0)
    # All draws in one of d modes: d ((1 - 1/d)^2 + (d - 1)/d^2) = d - 1.
    assert relative_variance(np.eye(50)[3]) == pytest.approx(49)
    rng = np.random.default_rng(0)
    modes = rng.integers(0, 10, (500, 1000))
    mean = np.mean([relative_variance(fifty_modes_numbers.weights(m, 10)) for m in modes])
    # Independent draws: (d - 1)/N = 0.009, here known to 2%.
    assert mean == pytest.approx(9 / 1000, rel=0.1)


def test_the_weights_of_independent_draws_are_judged_fairly():
    rng = np.random.default_rng(1)
    z = []
    for _ in range(200):
        theta = 2.0 * np.eye(20)[rng.integers(0, 20, (2, 500))]
        numbers = fifty_modes_numbers.mode_numbers(theta)
        z.append((numbers["share_above_1"] - 1 / 20) / numbers["share_error"])
    # A t law with 19 degrees of freedom; its standard deviation is 1.06, known to 0.05 from 200.
    assert np.std(z) == pytest.approx(1.06, abs=0.2)


def test_the_papers_table_is_copied_without_a_slip():
    ladder = mintmc.Ladder.mint(100_000, smallest_batch=1000, growth=1.4, alpha=0.995, rungs=7)
    np.testing.assert_allclose(ladder.temperatures, fifty_modes_numbers.PAPER_TEMPERATURES, atol=0.005)
    assert ladder.rows(100_000) == fifty_modes_numbers.PAPER_BATCHES
    sums = np.sum(fifty_modes_numbers.PAPER_OCCUPANCY, axis=1)
    # Seven numbers with two digits.
    np.testing.assert_allclose(sums, 100, atol=7 * 0.005)


def test_the_edges_of_the_published_ladder():
    sampler = fifty_modes.published(SCALES["standard"])
    edges = mintmc.SpacedRings(c=10.0).edges(sampler.ladder)
    np.testing.assert_allclose(edges, [10, 204, 475, 855, 1385, 2125], atol=0.6)


def test_a_mixed_ladder_reads_batches_where_it_is_hot():
    ladder = mixed_ladder(100_000, growth=1.4, rungs=15, full_below=5)
    assert ladder.temperatures == SCALES["standard"].ladder.temperatures
    assert ladder.temperatures[-1] == pytest.approx(111.1, abs=0.1)
    assert ladder.batch_sizes[:5] == (None,) * 5
    assert ladder.batch_sizes[5] == pytest.approx(100_000 / 1.4**5, abs=1)
    shown = fifty_modes_numbers.nearest_rungs(ladder.temperatures, fifty_modes_numbers.PAPER_TEMPERATURES)
    assert shown == [0, 9, 10, 11, 12, 13, 14]


def test_our_settings_meet_the_bars_on_data_by_counting():
    for n, rungs, bar in ((100_000, 15, 0.6), (fifty_modes.LARGE_N, fifty_modes.LARGE_RUNGS, 0.45)):
        ladder = mixed_ladder(n, growth=1.4, rungs=rungs, full_below=12)
        mixed = fifty_modes.ours(replace(SCALES["standard"], n=n, ladder=ladder, steps=None))
        full = fifty_modes.on_all_data(mixed)
        assert mixed.jump_probabilities == full.jump_probabilities
        assert fifty_modes_numbers.counted_data(mixed, n) < bar * fifty_modes_numbers.counted_data(full, n)


def test_the_posterior_is_symmetric_in_its_modes():
    x = fifty_modes.simulate(5000, 6)
    posterior = mintmc.Posterior(fifty_modes.log_likelihood, x)
    energies = [posterior.energy(jnp.asarray(2 * row)) for row in np.eye(6, dtype=np.float32)]
    np.testing.assert_allclose(energies, energies[0], rtol=1e-6)
    assert posterior.energy(jnp.zeros(6)) > energies[0] + 100


@pytest.mark.slow
def test_the_page_has_the_papers_rings_beside_ours(measured):
    tables = fifty_modes_page.ring_tables(measured)
    assert "| 103.51 | 1,000 | 6.08 |" in tables
    assert "51.08" in tables


@pytest.mark.paper
def test_at_standard_scale_all_modes_have_their_weights_and_all_rungs_their_energies(tmp_path):
    fifty_modes.reproduce("standard", tmp_path, progress=False)
    parts = json.loads((tmp_path / "fifty-modes.json").read_text())["parts"]
    assert parts["modes"]["modes_visited"] == 50
    assert parts["modes"]["relative_variance"] < 0.5
    assert max(abs(rung["relative_difference"]) for rung in parts["rungs"]) < fifty_modes_page.BAR
    assert parts["published"]["rungs"][0]["jump_acceptance"] < 1e-6
