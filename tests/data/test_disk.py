"""Rows come back as they were written, windows are uniform random subsets, and mistakes are refused by name."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr

from mintmc.data import disk, formats
from mintmc.data.prepare import prepare

N = 103
X = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
Y = np.arange(N)


def save(folder, array, name="x.npy"):
    np.save(folder / name, array)
    return folder / name


def save_memmap(folder):
    return np.load(save(folder, X), mmap_mode="r")


def save_zarr(folder):
    zarr.create_array(folder / "x.zarr", data=X, chunks=(10, 2))
    return folder / "x.zarr"


def save_group(folder):
    group = zarr.open_group(folder / "t.zarr", mode="w")
    group.create_array("x", data=X, chunks=(10, 3))
    group.create_array("y", data=Y, chunks=(7,))
    return folder / "t.zarr"


def lists(array, fixed=True):
    kind = pa.list_(pa.float32(), array.shape[1]) if fixed else pa.list_(pa.float32())
    return pa.array(array.tolist(), kind)


def save_parquet(folder, fixed=True, **columns):
    table = pa.table(columns or {"x": lists(X, fixed), "y": Y})
    pa.parquet.write_table(table, folder / "t.parquet", row_group_size=10)
    return folder / "t.parquet"


def save_arrow(folder, name="t.arrow"):
    pa.feather.write_feather(pa.table({"x": lists(X), "y": Y}), folder / name, chunksize=10)
    return folder / name


ARRAYS = {
    "npy": lambda folder: save(folder, X),
    "npy in Fortran order": lambda folder: save(folder, np.asfortranarray(X)),
    "npy with swapped bytes": lambda folder: save(folder, X.astype(">f4")),
    "npy in float64": lambda folder: save(folder, X.astype(np.float64)),
    "memmap": save_memmap,
    "view of a memmap": lambda folder: np.load(save(folder, np.tile(X, (2, 2))), mmap_mode="r")[N:, :3],
    "zarr": save_zarr,
    "zarr array": lambda folder: zarr.open_array(save_zarr(folder), mode="r"),
    "zarr in memory": lambda folder: zarr.create_array(zarr.storage.MemoryStore(), data=X),
}
TABLES = {
    "zarr group": save_group,
    "parquet": save_parquet,
    "parquet with lists": lambda folder: save_parquet(folder, fixed=False),
    "arrow": save_arrow,
    "feather": lambda folder: save_arrow(folder, "t.feather"),
}


def columns_of(rows):
    return rows if isinstance(rows, dict) else {"x": rows}


@pytest.mark.parametrize("form", [*ARRAYS, *TABLES])
def test_rows_come_back_as_they_were_written(form, tmp_path):
    data = disk.open_data((ARRAYS | TABLES)[form](tmp_path))
    assert (data.n, data.numbers_per_row, data.prepared) == (N, 3 if form in ARRAYS else 4, False)
    some = [50, 3, 3, 102, 0, 51]
    for rows, expected in (
        (data.example, slice(0, 1)),
        (data.read(0, N), slice(None)),
        (data.read(8, 31), slice(8, 31)),
        (data.take(some), some),
    ):
        columns = columns_of(rows)
        np.testing.assert_array_equal(columns["x"], X[expected])
        assert columns["x"].dtype == np.float32
        assert columns["x"].flags.c_contiguous
        if form in TABLES:
            np.testing.assert_array_equal(columns["y"], Y[expected])
            assert columns["y"].dtype == np.int32
    blocks = [columns_of(rows)["x"] for rows in data.blocks(20)]
    assert [len(block) for block in blocks] == [20, 20, 20, 20, 20, 3]
    np.testing.assert_array_equal(np.concatenate(blocks), X)


@pytest.mark.parametrize("form", TABLES)
def test_columns_are_selected_by_name(form, tmp_path):
    data = disk.open_data(TABLES[form](tmp_path), columns=["y"])
    assert list(data.example) == ["y"]
    np.testing.assert_array_equal(data.read(0, N)["y"], Y)


def test_each_constructor_opens_its_format(tmp_path):
    for opened in (
        disk.from_npy(save(tmp_path, X)),
        disk.from_zarr(str(save_group(tmp_path)), columns=["x"]),
        disk.from_parquet(save_parquet(tmp_path), columns=["x"]),
        disk.from_arrow(save_arrow(tmp_path), columns=["x"]),
    ):
        np.testing.assert_array_equal(columns_of(opened.read(5, 9))["x"], X[5:9])


def test_lists_of_lists_are_arrays(tmp_path):
    cubes = np.arange(24.0).reshape(4, 3, 2)
    data = disk.open_data(save_parquet(tmp_path, x=pa.array(cubes.tolist())))
    np.testing.assert_array_equal(data.take([3, 1])["x"], cubes[[3, 1]])


def test_a_transform_makes_the_observations(tmp_path):
    data = disk.open_data(
        save_parquet(tmp_path), transform=lambda t: (np.c_[t["x"], t["x"][:, :1] ** 2], {"label": t["y"] % 2 == 1})
    )
    assert data.numbers_per_row == 5
    features, labels = data.take([7, 2])
    np.testing.assert_allclose(features[:, 3], X[[7, 2], 0] ** 2, rtol=1e-6)
    assert labels["label"].tolist() == [True, False]


def test_a_fingerprint_knows_the_data_and_not_the_path(tmp_path):
    changed, sorted_by_type = X.copy(), X.astype(np.float64)
    changed[-1, -1] += 1
    prints = {
        name: disk.from_npy(save(tmp_path, array, f"{name}.npy")).fingerprint()
        for name, array in {
            "x": X,
            "copy": X,
            "changed": changed,
            "longer": np.r_[X, X],
            "wider": sorted_by_type,
        }.items()
    }
    assert prints["x"] == prints["copy"]
    assert len(set(prints.values())) == 4


# -- windows ---------------------------------------------------------------------------------------------------------


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


# -- memory ----------------------------------------------------------------------------------------------------------

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


# -- mistakes --------------------------------------------------------------------------------------------------------


def save_text(folder, name, text=""):
    (folder / name).write_text(text)
    return folder / name


def save_ragged_group(folder):
    group = zarr.open_group(folder / "t.zarr", mode="w")
    group["x"], group["y"] = np.zeros(5), np.zeros(4)
    return folder / "t.zarr"


def save_version(folder, version):
    prepare(save(folder, X), folder / "p")
    described = json.loads((folder / "p" / formats.DESCRIPTION).read_text())
    save_text(folder / "p", formats.DESCRIPTION, json.dumps(described | {"version": version}))
    return folder / "p"


def with_bad(value, row=77):
    x = np.zeros((N, 2))
    x[row, 1] = value
    return x


def everything(data):
    return list(data.blocks(10))


opened = disk.open_data
MISTAKES = {
    # name: (what to do in a folder, error, what the message says)
    "no such file": (lambda f: opened(f / "x.npy"), FileNotFoundError, "source must be an existing file.*x.npy"),
    "no such parquet": (lambda f: disk.from_parquet(f / "x"), FileNotFoundError, "source must be an existing file"),
    "unknown suffix": (lambda f: opened(save_text(f, "x.csv")), ValueError, "source must end in .npy, .zarr.*x.csv"),
    "not a source": (lambda f: opened(X), TypeError, "source must be a path, a numpy.memmap or a Zarr array, got"),
    "empty npy file": (lambda f: opened(save_text(f, "x.npy")), ValueError, "x.npy must be a .npy file of numbers"),
    "npy without rows": (lambda f: opened(save(f, X[:0])), ValueError, "at least one row, got none in .*x.npy"),
    "npy scalar": (lambda f: opened(save(f, 3.0)), ValueError, "data must have a leading axis of observations"),
    "npy of words": (lambda f: opened(save(f, np.array(["a"]))), TypeError, "data must be an array of numbers.*<U1"),
    "npy of objects": (
        lambda f: opened(save(f, np.array([None]))),
        ValueError,
        "x.npy must be a .npy file of numbers",
    ),
    "columns of an array": (
        lambda f: opened(save(f, X), columns=["x"]),
        ValueError,
        r"columns must be None for data without named columns, got \['x'\]",
    ),
    "not a zarr": (lambda f: disk.from_zarr(f), ValueError, "must be a Zarr array or group"),
    "zarr of unequal length": (
        lambda f: opened(save_ragged_group(f)),
        ValueError,
        r"the same number of rows in all leaves.*\"data\['x'\]\": 5.*4",
    ),
    "empty parquet file": (lambda f: opened(save_text(f, "t.parquet")), ValueError, "t.parquet must be a Parquet file"),
    "parquet of text": (
        lambda f: opened(save_text(f, "t.parquet", "a,b\n" * 9)),
        ValueError,
        "t.parquet must be a Parquet file",
    ),
    "parquet without rows": (
        lambda f: opened(save_parquet(f, x=pa.array([], pa.float32()))),
        ValueError,
        "at least one row, got none in .*t.parquet",
    ),
    "arrow of text": (lambda f: opened(save_text(f, "t.arrow", "a" * 99)), ValueError, "must be an Arrow IPC file"),
    "missing column": (
        lambda f: opened(save_parquet(f), columns=["x", "z"]),
        ValueError,
        r"columns must be among \['x', 'y'\], the columns of .*t.parquet, got 'z'",
    ),
    "missing column of a group": (
        lambda f: opened(save_group(f), columns=["z"]),
        ValueError,
        "columns must be among .*got 'z'",
    ),
    "columns a string": (lambda f: opened(save_parquet(f), columns="x"), TypeError, "columns must be a list of names"),
    "no columns": (lambda f: opened(save_parquet(f), columns=[]), ValueError, "columns must name at least one of"),
    "words": (
        lambda f: opened(save_parquet(f, x=Y, name=["a"] * N)),
        TypeError,
        r"data\['name'\] must be a column of numbers, got string in .*t.parquet",
    ),
    "dates": (
        lambda f: opened(save_parquet(f, day=pa.array(Y, pa.timestamp("s")))),
        TypeError,
        r"data\['day'\] must be a column of numbers, got timestamp",
    ),
    "null": (
        lambda f: everything(opened(save_parquet(f, x=[1.0] * 37 + [None] + [1.0] * 20))),
        ValueError,
        r"data\['x'\] must not have nulls, got one in row 37 of .*t.parquet",
    ),
    "null in the first row": (
        lambda f: opened(save_parquet(f, x=[None, 1.0])),
        ValueError,
        r"data\['x'\] must not have nulls, got one in row 0",
    ),
    "null in a list": (
        lambda f: everything(opened(save_parquet(f, x=[[1.0, 2.0]] * 37 + [[1.0, None]]))),
        ValueError,
        r"data\['x'\] must not have nulls, got one in row 37",
    ),
    "lists of differing length": (
        lambda f: everything(opened(save_parquet(f, x=[[1.0, 2.0]] * 37 + [[1.0]] * 9))),
        ValueError,
        r"data\['x'\] must have rows of the same length, got 2 in row 0 and another in row 37",
    ),
    "nan": (
        lambda f: everything(opened(save(f, with_bad(np.nan)))),
        ValueError,
        "data must be finite, got nan in row 77 of .*x.npy",
    ),
    "inf among rows taken": (
        lambda f: opened(save(f, with_bad(np.inf))).take([80, 77, 3]),
        ValueError,
        "data must be finite, got inf in row 77",
    ),
    "too large for float32": (
        lambda f: everything(opened(save(f, with_bad(1e300)))),
        ValueError,
        r"data must fit float32, got 1e\+300 in row 77",
    ),
    "too large for int32": (
        lambda f: everything(opened(save(f, with_bad(2**40).astype(np.int64)))),
        ValueError,
        "data must fit int32, got 1099511627776 in row 77",
    ),
    "transform no function": (lambda f: opened(save(f, X), transform=3), TypeError, "transform must be a function"),
    "transform to a summary": (
        lambda f: opened(save(f, X), transform=lambda x: x.mean(axis=0, keepdims=True)),
        ValueError,
        r"transform must keep the leading axis: 2 rows in data, got shape \(1, 3\)",
    ),
    "transform across rows": (
        lambda f: opened(save(f, X), transform=lambda x: x - x.mean(axis=0)),
        ValueError,
        "transform must treat each row on its own",
    ),
    "transform to words": (
        lambda f: opened(save(f, X), transform=lambda x: x.astype(str)),
        TypeError,
        "data must be an array of numbers",
    ),
    "transform to nothing": (
        lambda f: opened(save(f, X), transform=lambda x: {}),
        ValueError,
        "transform must return at least one array",
    ),
    "transform that changes its mind": (
        lambda f: everything(opened(save(f, X), transform=lambda x: x if len(x) < 3 else x[:, :1])),
        ValueError,
        r"transform must return \[\('', 'float32', \(3,\)\)\] for all rows",
    ),
    "rows beyond the end": (lambda f: opened(save(f, X)).read(100, 104), ValueError, r"last must be in \[101, n=103\]"),
    "negative index": (lambda f: opened(save(f, X)).take([-1]), ValueError, r"indices must be in \[0, n=103\), got -1"),
    "float indices": (lambda f: opened(save(f, X)).take([0.5]), ValueError, "indices must be a list of row numbers"),
    "window too large": (
        lambda f: opened(save(f, X)).window(0, 0, 104, 1),
        ValueError,
        r"size must be in \[1, n=103\]",
    ),
    "wrap too large": (lambda f: opened(save(f, X)).window(0, 0, 4, 5), ValueError, r"wrap must be in \[0, size=4\]"),
    "future version": (lambda f: opened(save_version(f, 99)), ValueError, "must be prepared data of version 1, got 99"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused(mistake, tmp_path):
    make, error, message = MISTAKES[mistake]
    with pytest.raises(error, match=message):
        make(tmp_path)


def truncate(path):
    os.truncate(path, path.stat().st_size - 8)


SHRINK = {
    "npy": (lambda f: save(f, X), truncate),
    "memmap": (save_memmap, lambda source: truncate(Path(source.filename))),
    "parquet": (save_parquet, truncate),
    "arrow": (save_arrow, truncate),
    "zarr": (save_zarr, lambda path: (path / "c" / "5" / "0").unlink()),
    "resized zarr": (save_zarr, lambda path: zarr.open_array(path).resize((50, 3))),
    "prepared": (lambda f: prepare(save(f, X), f / "p") and f / "p", lambda path: truncate(path / "0.npy")),
}


@pytest.mark.parametrize("form", SHRINK)
def test_a_file_that_shrinks_is_noticed(form, tmp_path):
    make, shrink = SHRINK[form]
    source = make(tmp_path)
    data = disk.open_data(source)
    shrink(source)
    for read in (lambda: data.read(0, N), lambda: data.take([N - 1]), lambda: data.window(0, 0, 50, 5)):
        with pytest.raises(OSError, match=r"must not shrink while it is open, got \d+ bytes where \d+ were"):
            read()


def test_a_missing_pyarrow_says_how_to_install_it(tmp_path, monkeypatch):
    path = save_parquet(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"pip install 'mintmc\[disk\]'"):
        disk.open_data(path)
