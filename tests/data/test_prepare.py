"""Prepared rows are the source's rows in a uniformly random order; a run that fails leaves nothing behind."""

import errno
import hashlib
import json
import math
import resource
import subprocess
import sys
from collections import Counter

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import zarr

from mintmc.data import open as disk
from mintmc.data.prepare import _shuffle, prepare

N = 1000
X = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
Y = np.arange(N)


def save(folder, array=X):
    np.save(folder / "x.npy", array)
    return folder / "x.npy"


def save_table(folder):
    table = pa.table({"x": pa.array(X.tolist(), pa.list_(pa.float32(), 3)), "y": Y, "flag": Y % 2 == 0})
    pa.parquet.write_table(table, folder / "t.parquet", row_group_size=100)
    return folder / "t.parquet"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def shuffled(data, folder, seed, memory, rng=None):
    """The order that prepare gives the rows if it may use less memory than it asks for."""
    (folder / "buckets").mkdir(parents=True, exist_ok=True)
    _shuffle(data, folder, rng or np.random.default_rng(seed), memory, lambda done, total: None)
    return np.load(folder / "0.npy")


def test_the_rows_are_those_of_the_source_and_stay_whole(tmp_path):
    data = prepare(save_table(tmp_path), tmp_path / "out", seed=3)
    rows = data.read(0, N)
    assert (data.n, data.prepared, data.numbers_per_row) == (N, True, 5)
    assert sorted(rows["y"]) == list(range(N))
    assert not np.array_equal(rows["y"], Y)
    np.testing.assert_array_equal(rows["x"], X[rows["y"]])
    np.testing.assert_array_equal(rows["flag"], rows["y"] % 2 == 0)


@pytest.mark.parametrize("memory", [1_000, 5_000, 40_000, 10**6])
def test_any_number_of_buckets_gives_a_permutation(memory, tmp_path):
    # From 112 buckets of about nine rows to one of all.
    assert sorted(shuffled(disk.open_data(save(tmp_path, Y)), tmp_path, 0, memory)) == list(range(N))


def test_any_source_can_be_prepared(tmp_path):
    path = save(tmp_path)
    array = zarr.create_array(tmp_path / "x.zarr", data=X)
    first = prepare(path, tmp_path / "a")
    for i, source in enumerate([str(path), np.load(path, mmap_mode="r"), array, tmp_path / "x.zarr"]):
        np.testing.assert_array_equal(prepare(source, tmp_path / str(i)).read(0, N), first.read(0, N))
    again = prepare(tmp_path / "a", tmp_path / "again", seed=1)
    assert sorted(again.read(0, N)[:, 0]) == sorted(X[:, 0])
    assert again.fingerprint() != first.fingerprint()


def test_columns_and_transform_are_applied_once(tmp_path):
    out = tmp_path / "out"
    prepare(
        save_table(tmp_path), out, columns=["x", "y"], transform=lambda t: {"z": (t["x"][:, 0], [t["y"]]), "a": t["y"]}
    )
    rows = disk.open_data(out).read(0, N)
    assert jax.tree.structure(rows) == jax.tree.structure({"z": (0, [0]), "a": 0})
    np.testing.assert_array_equal(rows["z"][1][0], rows["a"])
    np.testing.assert_array_equal(rows["z"][0], X[rows["a"], 0])
    np.testing.assert_array_equal(disk.open_data(out, columns=["a"]).read(0, N)["a"], rows["a"])


def test_the_folder_says_what_it_is(tmp_path):
    prepare(save(tmp_path), tmp_path / "out", seed=5)
    assert names(tmp_path / "out") == ["0.npy", "mintmc-data.json"]
    file = tmp_path / "out" / "0.npy"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert json.loads((tmp_path / "out" / "mintmc-data.json").read_text()) == {
        "version": 1,
        "n": N,
        "leaves": [{"name": "data", "file": "0.npy", "shape": [3], "dtype": "float32", "sha256": digest}],
        "stamp": [file.stat().st_size, file.stat().st_mtime_ns],
        "tree": 0,
        "seed": 5,
        "source": str(tmp_path / "x.npy"),
    }


def test_the_seed_decides_the_order(tmp_path):
    path = save(tmp_path)
    same = [prepare(path, tmp_path / name, seed=7).read(0, N) for name in "ab"]
    np.testing.assert_array_equal(*same)
    assert not np.array_equal(same[0], prepare(path, tmp_path / "c", seed=8).read(0, N))


class Unshuffled(np.random.Generator):
    """Deals rows into buckets and leaves them there in their order."""

    def shuffle(self, x, axis=0):
        pass


def chi_square(orders, n):
    counts = Counter(tuple(order) for order in orders)
    expected = len(orders) / math.factorial(n)
    seen = sum((count - expected) ** 2 / expected for count in counts.values())
    return seen + (math.factorial(n) - len(counts)) * expected


@pytest.mark.parametrize("memory", [2 * 72, 10**6])
def test_every_order_is_equally_likely(memory, tmp_path):
    n, shuffles = 4, 1200
    data = disk.open_data(save(tmp_path, np.arange(n)))  # int64: 72 bytes a row, so 144 make blocks of two rows
    orders = [shuffled(data, tmp_path, seed, memory) for seed in range(shuffles)]
    freedom = math.factorial(n) - 1
    limit = freedom + 4 * math.sqrt(2 * freedom)
    assert chi_square(orders, n) < limit
    # The broken twin: rows keep their order within a bucket.
    broken = [shuffled(data, tmp_path, 0, memory, Unshuffled(np.random.PCG64(seed))) for seed in range(200)]
    assert chi_square(broken, n) > limit


def test_the_first_row_is_equally_often_each_row(tmp_path):
    n, shuffles = 20, 600
    data = disk.open_data(save(tmp_path, np.arange(n)))
    firsts = [shuffled(data, tmp_path, seed, 72 * 8)[0] for seed in range(shuffles)]
    expected = shuffles / n
    scores = (np.bincount(firsts, minlength=n) - expected) / math.sqrt(expected * (1 - 1 / n))
    # 20 standard normals are below 4 with probability 0.9987.
    assert np.abs(scores).max() < 4


MEASURE = """
import re, sys
from mintmc.data.prepare import prepare

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

small, large, *memories = sys.argv[1:]
prepare(small, small + ".prepared")  # what is loaded once does not count
for memory in memories:
    open("/proc/self/clear_refs", "w").write("5")  # the peak begins here
    before = peak()
    prepare(large, large + memory, memory=int(memory))
    print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is measured through /proc, which only Linux has")
def test_memory_is_bounded(tmp_path):
    # 20 MB, each row of which needs 56 bytes to be worked on, in 8 MiB; the allocator's share comes on top.
    np.save(tmp_path / "small.npy", Y)
    np.save(tmp_path / "large.npy", np.random.default_rng(0).random(5_000_000, dtype=np.float32))
    arguments = [str(tmp_path / "small.npy"), str(tmp_path / "large.npy"), str(8 * 2**20), str(2**40)]
    done = subprocess.run([sys.executable, "-c", MEASURE, *arguments], capture_output=True, text=True, check=True)
    bounded, unbounded = map(float, done.stdout.split())
    assert bounded < 16
    # The broken twin: all rows at once.
    assert unbounded > 40


def test_progress_runs_from_nothing_to_all_rows(tmp_path):
    calls = []
    wide = disk.open_data(save(tmp_path, np.zeros((N, 100), np.float32)))
    assert wide.bytes_per_row == 400
    prepare(tmp_path / "x.npy", tmp_path / "out", memory=2**20, progress=lambda *call: calls.append(call))
    done = [rows for rows, _ in calls]
    assert done == sorted(done)
    assert calls[-1] == (N, N)
    assert {total for _, total in calls} == {N}
    # Each of two passes needs at least two pieces: 400 kB four times over do not fit into 1 MiB.
    assert len(calls) >= 4
    assert done[0] < N / 2 < done[-2] < N


@pytest.mark.parametrize("at", [1, 3])
def test_an_interrupted_run_leaves_nothing(at, tmp_path):
    path = save(tmp_path, np.zeros((N, 100), np.float32))
    calls = []

    def progress(done, total):
        calls.append(done)
        assert names(tmp_path) == ["out.lock", "out.partial", "x.npy"]  # not under its name before it is whole
        if len(calls) == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(path, tmp_path / "out", memory=2**20, progress=progress)
    assert names(tmp_path) == ["x.npy"]


def test_what_a_killed_run_left_is_replaced(tmp_path):
    (tmp_path / "out.partial" / "buckets").mkdir(parents=True)
    (tmp_path / "out.partial" / "buckets" / "0").write_bytes(b"rows of another time")
    (tmp_path / "out.partial" / "1.npy").write_bytes(b"")
    data = prepare(save(tmp_path), tmp_path / "out")
    assert sorted(data.read(0, N)[:, 0]) == sorted(X[:, 0])
    assert names(tmp_path / "out") == ["0.npy", "mintmc-data.json"]
    assert names(tmp_path) == ["out", "x.npy"]


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path):
    path = save(tmp_path, np.zeros((N, 100), np.float32))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # No file may grow beyond 100 kB: the system refuses the write as it does on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match="out must be on a disk with room for the data, got File too large") as raised:
            prepare(path, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert raised.value.errno == errno.EFBIG
    assert names(tmp_path) == ["x.npy"]


def exists(folder, name, is_folder=True):
    path = folder / name
    if is_folder:
        path.mkdir()
        path = path / "precious"
    path.write_text("precious")
    return folder / "out"


def with_nan():
    x = X.copy()
    x[900, 2] = np.nan
    return x


MISTAKES = {
    # name: (what to do in a folder, error, what the message says)
    "out exists": (lambda f: prepare(save(f), exists(f, "out")), FileExistsError, "out must not exist yet, got .*out"),
    "out is a file": (lambda f: prepare(save(f), exists(f, "out", False)), FileExistsError, "out must not exist yet"),
    "somebody's .partial": (
        lambda f: prepare(save(f), exists(f, "out.partial")),
        FileExistsError,
        "out.partial must not exist, got something that prepare did not make",
    ),
    "no parent": (lambda f: prepare(save(f), f / "a" / "b"), FileNotFoundError, "out must be in an existing folder"),
    "no source": (lambda f: prepare(f / "no.npy", f / "out"), FileNotFoundError, "source must be an existing file"),
    "nan in the middle": (
        lambda f: prepare(save(f, with_nan()), f / "out"),
        ValueError,
        "data must be finite, got nan in row 900",
    ),
    "too little memory": (lambda f: prepare(save(f), f / "out", memory=99), ValueError, "memory must be at least"),
    "bad seed": (lambda f: prepare(save(f), f / "out", seed=-1), ValueError, "seed must be at least 0, got -1"),
    "bad progress": (lambda f: prepare(save(f), f / "out", progress=3), TypeError, "progress must be a function"),
    "unknown structure": (
        lambda f: prepare(save(f), f / "out", transform=lambda x: {0: x}),
        TypeError,
        r"transform must return arrays in dicts \(with string keys\), lists and tuples, got dict",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_and_nothing_is_written(mistake, tmp_path):
    make, error, message = MISTAKES[mistake]
    with pytest.raises(error, match=message):
        make(tmp_path)
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "x.npy"]
    assert all(path.read_text() == "precious" for path in left)
