"""Files that cannot be data are refused by name, and the row that is wrong is told."""

import json

import numpy as np
import pyarrow as pa
import pytest
import zarr

from files import N, X, Y, save, save_group, save_parquet, save_zarr
from mintmc.data import formats
from mintmc.data import open as disk
from mintmc.data.prepare import prepare


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


def without_a_chunk(folder, make=save_zarr, chunk="c/5/0"):
    path = make(folder)
    (path / chunk).unlink()
    return path


def claim(folder, shape, chunks):
    zarr.create_array(folder / "claim.zarr", shape=shape, chunks=chunks, dtype="float32")
    return folder / "claim.zarr"


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
    "no such parquet": (lambda f: opened(f / "x.parquet"), FileNotFoundError, "source must be an existing file"),
    "unknown suffix": (lambda f: opened(save_text(f, "x.txt")), ValueError, "source must end in .npy, .zarr.*x.txt"),
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
    "not a zarr": (lambda f: opened(save_text(f, "x.zarr")), ValueError, "must be a Zarr array or group"),
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
    "lists of words": (
        lambda f: opened(save_parquet(f, x=Y, names=[["a"]] * N)),
        TypeError,
        r"data\['names'\] must be a column of numbers or of words, got list<.*string> in .*t.parquet",
    ),
    "a word missing": (
        lambda f: opened(save_parquet(f, name=["a"] * (N - 1) + [None])).read(0, N),
        ValueError,
        rf"data\['name'\] must not have nulls, got one in row {N - 1} of .*t.parquet",
    ),
    "dates": (
        lambda f: opened(save_parquet(f, day=pa.array(Y, pa.timestamp("s")))),
        TypeError,
        r"data\['day'\] must be a column of numbers or of words, got timestamp",
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
    "batch too large": (
        lambda f: opened(save(f, X)).batches(np.random.default_rng(0), 104, 1),
        ValueError,
        r"size must be in \[1, n=103\]",
    ),
    "unknown verify": (lambda f: opened(save(f, X), verify="no"), ValueError, "verify must be one of 'quick', 'full'"),
    "transform to masked values": (
        lambda f: opened(save(f, X), transform=lambda x: np.ma.masked_greater(x, -9)),
        ValueError,
        "data must not have masked values, got 3, the first in row 0",
    ),
    "zarr without a chunk": (
        lambda f: opened(without_a_chunk(f)),
        ValueError,
        r"data must have all its 22 chunks .*write_empty_chunks.*, got 21 in .*x.zarr",
    ),
    "zarr group without a chunk": (
        lambda f: opened(without_a_chunk(f, save_group, "y/c/3")),
        ValueError,
        r"data\['y'\] must have all its 15 chunks .*, got 14 in .*t.zarr/y",
    ),
    "zarr of many rows and no data": (
        lambda f: opened(claim(f, (10**12,), (10**6,))),
        ValueError,
        "data must have all its 1000000 chunks .*, got 0 in .*claim.zarr",
    ),
    "zarr of too many chunks": (
        lambda f: opened(claim(f, (10**12,), (1,))),
        ValueError,
        "data must have at most 16,777,216 chunks, got 1,000,000,000,000 in .*claim.zarr",
    ),
    "zarr of one huge chunk": (
        lambda f: opened(claim(f, (10**12,), (10**12,))),
        ValueError,
        "data must have chunks of at most 536,870,912 bytes, got 4,000,000,000,000 in .*claim.zarr",
    ),
    "future version": (lambda f: opened(save_version(f, 99)), ValueError, "must be prepared data of version 1, got 99"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused(mistake, tmp_path):
    make, error, message = MISTAKES[mistake]
    with pytest.raises(error, match=message):
        make(tmp_path)
