"""Windows of a file are uniform random subsets, read in bounded memory."""

import os
import subprocess
import sys

import numpy as np
import pytest

from files import N, Y, save
from mintmc.data import disk
from mintmc.data.prepare import prepare


def test_a_window_repeats_its_first_rows_and_depends_on_seed_and_epoch(tmp_path):
    data = disk.from_npy(save(tmp_path, Y.astype(np.float32)))
    for data.prepared in (False, True):
        window = data.window(1, 2, 40, 7)
        assert len(set(window[:40])) == 40
        np.testing.assert_array_equal(window[40:], window[:7])
        np.testing.assert_array_equal(window, data.window(1, 2, 40, 7))
        assert not np.array_equal(window, data.window(1, 3, 40, 7))
        assert not np.array_equal(window, data.window(2, 2, 40, 7))
        assert sorted(data.window(0, 0, N, 0)) == list(range(N))


def test_a_window_of_prepared_rows_is_contiguous_and_wraps(tmp_path):
    data = disk.from_npy(save(tmp_path, Y.astype(np.float32)))
    data.prepared = True
    starts = set()
    for epoch in range(2000):
        window = data.window(0, epoch, 40, 5).astype(int)
        starts.add(window[0])
        np.testing.assert_array_equal(window[:40], (window[0] + np.arange(40)) % N)
    # Each of 103 starts is missed by 2000 windows with probability 3e-9.
    assert len(starts) == N


def pair_scores(slices, n):
    """z-scores of how often rows and pairs of rows are in a slice, against subsets drawn uniformly."""
    count, m = slices.shape
    inside = np.zeros((count, n))
    np.put_along_axis(inside, slices, 1, axis=1)
    expected = np.where(np.eye(n, dtype=bool), m / n, m * (m - 1) / (n * (n - 1)))
    scores = (inside.T @ inside / count - expected) / np.sqrt(expected * (1 - expected) / count)
    return scores[np.triu_indices(n)]


@pytest.mark.parametrize("offset", [0, 2, 3])
@pytest.mark.parametrize("size", [4, 8])
def test_slices_of_a_window_are_uniform_subsets(size, offset, tmp_path):
    # Windows of 4 of 9 rows take the path of few draws, of 8 that of a permutation; offset 3 + 3 rows wraps around 4.
    n = 9
    data = disk.from_npy(save(tmp_path, np.arange(n)))
    slices = np.stack([data.window(3, epoch, size, 3)[offset : offset + 3] for epoch in range(4000)])
    # 45 scores: the largest of that many standard normals is below 4 with probability 0.997.
    assert np.abs(pair_scores(slices, n)).max() < 4
    # The broken twin: sorted rows that claim to be shuffled. Some pairs never meet: 9.5 standard errors too few.
    data.prepared = True
    slices = np.stack([data.window(3, epoch, size, 3)[offset : offset + 3] for epoch in range(1000)])
    assert np.abs(pair_scores(slices, n)).max() > 8


def test_windows_of_prepared_data_are_uniform_subsets(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # nothing here must survive a power cut
    n, shuffles = 6, 600
    source = save(tmp_path, np.arange(n))
    slices = [prepare(source, tmp_path / str(seed), seed=seed).window(seed, 0, 4, 2)[3:5] for seed in range(shuffles)]
    # 21 scores below 4 with probability 0.9987.
    assert np.abs(pair_scores(np.stack(slices), n)).max() < 4


MEASURE = """
import re, sys
from mintmc.data import disk, formats

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

data = disk.from_npy(sys.argv[1])
for stripe in sys.argv[2:]:
    formats._STRIPE = int(stripe)
    open("/proc/self/clear_refs", "w").write("5")  # the peak begins here
    before = peak()
    data.window(0, 1, 200_000, 10)
    for block in data.blocks(500_000):
        pass
    print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is measured through /proc, which only Linux has")
def test_reading_a_file_does_not_keep_it_in_memory(tmp_path):
    # 160 MB: a window of 200,000 rows touches every page of it.
    path = save(tmp_path, np.zeros(40_000_000, np.float32))
    command = [sys.executable, "-c", MEASURE, str(path), str(2**22), str(2**40)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    by_stripes, at_once = map(float, done.stdout.split())
    # The window and its indices take 10 to 20 MB, a block and its checks 5 MB, a stripe 4 MB.
    assert by_stripes < 40
    # The broken twin: all pages at once.
    assert at_once > 100
