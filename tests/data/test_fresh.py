"""Batches of a file are uniform random subsets, read fresh and in bounded memory."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from files import N, Y, save
from mintmc.data import disk, fresh
from mintmc.data.prepare import prepare


def prepared(folder, array, seed=0):
    return prepare(save(folder, array), folder / f"prepared-{seed}", seed=seed)


def pair_scores(batches, n):
    """z-scores of how often rows and pairs of rows are in a batch, against subsets drawn uniformly."""
    count, m = batches.shape
    inside = np.zeros((count, n))
    np.put_along_axis(inside, batches.astype(int), 1, axis=1)
    expected = np.where(np.eye(n, dtype=bool), m / n, m * (m - 1) / (n * (n - 1)))
    scores = (inside.T @ inside / count - expected) / np.sqrt(expected * (1 - expected) / count)
    return scores[np.triu_indices(n)]


@pytest.mark.parametrize("form", ["npy", "prepared"])
def test_a_batch_has_different_rows_and_depends_on_its_generator_alone(form, tmp_path):
    y = Y.astype(np.float32)
    data = prepared(tmp_path, y) if form == "prepared" else disk.from_npy(save(tmp_path, y))
    batches = data.batches(np.random.default_rng(1), 40, 50)
    assert batches.shape == (50, 40)
    assert all(len(set(batch)) == 40 for batch in batches)
    np.testing.assert_array_equal(batches, data.batches(np.random.default_rng(1), 40, 50))
    assert not np.array_equal(batches, data.batches(np.random.default_rng(2), 40, 50))
    assert sorted(data.batches(np.random.default_rng(0), N, 1)[0]) == list(range(N))


@pytest.mark.parametrize("size", [3, 6])
def test_batches_of_unprepared_rows_are_uniform_subsets(size, tmp_path):
    # 3 of 9 rows are drawn one by one, 6 as part of a permutation.
    n = 9
    data = disk.from_npy(save(tmp_path, np.arange(n)))
    # 45 scores: the largest of that many standard normals is below 4 with probability 0.997.
    assert np.abs(pair_scores(data.batches(np.random.default_rng(3), size, 4000), n)).max() < 4
    # The broken twin: slices of sorted rows. Some pairs never meet.
    slices = (np.random.default_rng(3).integers(n, size=(4000, 1)) + np.arange(size)) % n
    assert np.abs(pair_scores(slices, n)).max() > 8


def test_batches_of_prepared_rows_are_uniform_subsets_over_shuffles(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # nothing here must survive a power cut
    monkeypatch.setattr(fresh, "run_length", lambda n, size: 2)
    monkeypatch.setattr(disk, "run_length", lambda n, size: 2)
    n, shuffles, rng = 7, 800, np.random.default_rng(0)
    batches = np.concatenate([prepared(tmp_path, np.arange(n), seed).batches(rng, 4, 1) for seed in range(shuffles)])
    # 28 scores below 4 with probability 0.998.
    assert np.abs(pair_scores(batches, n)).max() < 4


def starts_of(count=200_000, n=23, size=6, length=2):
    return fresh.run_starts(np.random.default_rng(0), n, size, length, count)


def test_runs_do_not_overlap_and_every_row_is_read_equally_often():
    n, length, starts = 23, 2, starts_of()
    rows = ((starts[..., None] + np.arange(length)) % n).reshape(len(starts), -1)
    assert np.all(np.diff(np.sort(rows, axis=1), axis=1) > 0)
    share = rows.shape[1] / n

    def scores(rows):
        return (np.bincount(rows.ravel(), minlength=n) / len(rows) - share) / np.sqrt(share * (1 - share) / len(rows))

    assert np.abs(scores(rows)).max() < 4  # of 23
    # The broken twin: cells that do not turn round leave out the last rows.
    fixed = (rows - starts[:, :1]) % n
    assert np.abs(scores(fixed)).max() > 100


def test_a_single_shuffle_gives_batches_of_the_right_variance():
    n, m, count = 20_000, 500, 20_000
    x = np.random.default_rng(5).permutation(np.random.default_rng(4).gamma(1.0, size=n))
    expected = x.var(ddof=1) / m * (1 - m / n)

    def error(length):
        starts = fresh.run_starts(np.random.default_rng(1), n, m, length, count)
        sums = np.cumsum(np.concatenate([[0], x, x]))
        means = (sums[starts + length] - sums[starts]).sum(axis=1) / m
        return means.var() / expected - 1

    assert fresh.run_length(n, m) == 1
    # The variance of 20,000 means is known to 1%; the shuffle may add 1%.
    assert abs(error(fresh.run_length(n, m))) < 4 * np.hypot(0.01, 0.01)
    # The broken twin: slices as long as the batch, in a shuffle that never changes. Off by sqrt(4 m / 3 n) = 18%.
    assert abs(error(m)) > 0.08


@pytest.mark.parametrize(("n", "size"), [(10, 10), (10, 7), (65_536, 1000), (10**6, 997), (10**9, 1000)])
def test_runs_are_as_long_as_the_error_allows(n, size):
    length = fresh.run_length(n, size)
    assert size % length == 0
    assert length == 1 or np.sqrt(4 * length / (3 * n)) <= 0.01
    assert fresh.run_length(10**9, 1000) == 1000  # one read is enough


def test_a_run_goes_on_at_the_front_and_an_error_knows_its_row(tmp_path):
    data = prepared(tmp_path, Y.astype(np.float32))
    order = data.read(0, N)
    runs = data._source.runs(np.array([5, N - 3, N - 1, 0]), 4)
    expected = [(start + np.arange(4)) % N for start in (5, N - 3, N - 1, 0)]
    np.testing.assert_array_equal(runs, order[np.concatenate(expected)])
    spoilt = np.lib.format.open_memmap(tmp_path / "prepared-0" / "0.npy", "r+")
    spoilt[17] = np.nan
    spoilt.flush()
    again = disk.open_data(tmp_path / "prepared-0")
    with pytest.raises(ValueError, match=r"data must be finite, got nan in row 17 of .*prepared-0"):
        again.batches(np.random.default_rng(0), N, 1)


def test_the_next_block_is_read_ahead_and_the_current_one_is_kept():
    read, done = [], threading.Event()

    def slowly(key, number):
        read.append((key, number))
        if number == 1:
            done.set()
        return key, number

    ahead = fresh.ReadAhead(slowly, bytes_per_block=1)
    assert ahead("a", 0) == ("a", 0)
    assert done.wait(10)  # read by itself
    assert ahead("a", 0) == ("a", 0)
    assert ahead("a", 1) == ("a", 1)
    assert ahead("b", 7) == ("b", 7)
    assert read.count(("a", 0)) == read.count(("a", 1)) == 1


def test_few_blocks_are_kept():
    ahead = fresh.ReadAhead(lambda key, number: number, bytes_per_block=fresh._BYTES_KEPT // 8)
    for key in range(50):
        assert ahead(key, 3) == 3
    assert len(ahead._jobs) == 4  # two blocks each


MEASURE = """
import re, sys
import numpy as np
from mintmc.data import disk, formats

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

data = disk.open_data(sys.argv[1])
for stripe in sys.argv[2:]:
    formats._STRIPE = formats._RESIDENT = int(stripe)
    open("/proc/self/clear_refs", "w").write("5")  # the peak begins here
    before = peak()
    rng = np.random.default_rng(0)
    data.take(rng.integers(data.n, size=100_000))
    for _ in range(20):
        data.batches(rng, 10_000, 10)
    for block in data.blocks(500_000):
        pass
    print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is measured through /proc, which only Linux has")
def test_reading_a_file_does_not_keep_it_in_memory(tmp_path):
    # 160 MB, of which rows and runs all over it touch every page.
    data = prepared(tmp_path, np.zeros(40_000_000, np.float32))
    command = [sys.executable, "-c", MEASURE, data.name, str(2**23), str(2**40)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    by_stripes, at_once = map(float, done.stdout.split())
    # The rows that are asked for and their indices take 10 MB, a block 2 MB, a stripe 8 MB and what is around it.
    assert by_stripes < 50
    # The broken twin: all pages at once.
    assert at_once > 100
