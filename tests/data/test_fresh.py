"""Batches of a file are uniform random subsets, read fresh and in bounded memory."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from files import N, Y, save
from mintmc.data import fresh
from mintmc.data import open as disk
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
    data = prepared(tmp_path, y) if form == "prepared" else disk.open_data(save(tmp_path, y))
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
    data = disk.open_data(save(tmp_path, np.arange(n)))
    # 45 scores: the largest of that many standard normals is below 4 with probability 0.997.
    assert np.abs(pair_scores(data.batches(np.random.default_rng(3), size, 4000), n)).max() < 4
    # The broken twin: slices of sorted rows. Some pairs never meet.
    slices = (np.random.default_rng(3).integers(n, size=(4000, 1)) + np.arange(size)) % n
    assert np.abs(pair_scores(slices, n)).max() > 8


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
from mintmc.data import formats
from mintmc.data import open as disk

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

data = disk.open_data(sys.argv[1])
for stripe in sys.argv[2:]:
    formats._STRIPE = int(stripe)
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
    # 160 MB, of which rows all over it touch every page.
    data = prepared(tmp_path, np.zeros(40_000_000, np.float32))
    command = [sys.executable, "-c", MEASURE, data.name, str(2**23), str(2**40)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    by_stripes, at_once = map(float, done.stdout.split())
    # The rows that are asked for and their indices take 10 MB, a block 2 MB, a stripe 8 MB and what is around it.
    assert by_stripes < 50
    # The broken twin: all pages at once.
    assert at_once > 100
