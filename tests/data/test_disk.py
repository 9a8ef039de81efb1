"""Rows come back as they were written, whatever the format, and a file that shrinks is noticed."""

import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zarr

from files import (
    ARRAYS,
    TABLES,
    N,
    X,
    Y,
    columns_of,
    save,
    save_arrow,
    save_group,
    save_memmap,
    save_parquet,
    save_zarr,
)
from mintmc.data import identity
from mintmc.data import open as disk
from mintmc.data.prepare import prepare


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
        disk.open_data(save(tmp_path, X)),
        disk.open_data(str(save_group(tmp_path)), columns=["x"]),
        disk.open_data(save_parquet(tmp_path), columns=["x"]),
        disk.open_data(save_arrow(tmp_path), columns=["x"]),
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
        name: disk.open_data(save(tmp_path, array, f"{name}.npy")).fingerprint()
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


def test_a_fingerprint_sees_changes_between_the_rows_it_looks_at_one_by_one(tmp_path):
    changed = X.copy()
    changed[1, 1] += 1
    prints = {disk.open_data(save(tmp_path, array)).fingerprint() for array in (X, changed)}
    assert len(prints) == 2


@pytest.mark.parametrize("verify", ["quick", "full"])
def test_a_large_file_is_looked_at_in_blocks_unless_all_is_asked_for(verify, tmp_path, monkeypatch):
    monkeypatch.setattr(identity, "_QUICK", 40 * 512)
    monkeypatch.setattr(identity, "_BLOCK", 512)
    x = np.zeros(100_000, np.float32)

    def fingerprint(**changes):
        changed = x.copy()
        for first, last in changes.values():
            changed[first:last] = 1
        return disk.open_data(save(tmp_path, changed), verify=verify).fingerprint()

    before = fingerprint()
    assert before.startswith(verify)
    assert before == fingerprint()
    assert before != fingerprint(most=(150, 100_000 - 150))
    # Between two blocks, 10,000 bytes apart, only the full hash sees it.
    assert (before == fingerprint(one=(1500, 1501))) == (verify == "quick")


@pytest.mark.parametrize("form", ["zarr", "zarr in memory", "parquet", "arrow", "memmap"])
def test_every_format_has_a_fingerprint(form, tmp_path):
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    one, other = (disk.open_data((ARRAYS | TABLES)[form](folder)).fingerprint() for folder in folders)
    assert one == other
    assert one.startswith("full")


def test_prepared_data_know_their_hash_until_they_are_touched(tmp_path, monkeypatch):
    data = prepare(save(tmp_path, X), tmp_path / "p")
    before = data.fingerprint()
    with monkeypatch.context() as patch:
        patch.setattr(identity, "content", None)  # nothing is read again
        assert disk.open_data(tmp_path / "p").fingerprint() == before
    shutil.copytree(tmp_path / "p", tmp_path / "copy")
    os.utime(tmp_path / "copy" / "0.npy")
    assert disk.open_data(tmp_path / "copy").fingerprint() == before  # another time, the same content
    changed = np.lib.format.open_memmap(tmp_path / "copy" / "0.npy", "r+")
    changed[50] += 1
    changed.flush()
    assert disk.open_data(tmp_path / "copy").fingerprint() != before


@pytest.mark.parametrize("form", ["npy", "zarr", "parquet", "arrow", "prepared"])
def test_a_file_that_changes_while_it_is_open_is_noticed(form, tmp_path):
    path = prepare(save(tmp_path, X), tmp_path / "p").name if form == "prepared" else (ARRAYS | TABLES)[form](tmp_path)
    data = disk.open_data(path)
    file = next(file for file in [Path(path), *Path(path).rglob("*")] if file.is_file() and file.suffix != ".json")
    with file.open("r+b") as opened:
        opened.seek(-8, os.SEEK_END)
        last = opened.read(8)
        opened.seek(-8, os.SEEK_END)
        opened.write(last)
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 1))  # clocks of file systems are coarse
    with pytest.raises(OSError, match=rf"{re.escape(str(path))} must not change while it is open"):
        data.read(0, N)


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
    data, rng = disk.open_data(source), np.random.default_rng(0)
    shrink(source)
    for read in (lambda: data.read(0, N), lambda: data.take([N - 1]), lambda: data.batches(rng, 50, 2)):
        with pytest.raises(OSError, match=r"must not shrink while it is open, got \d+ bytes where \d+ were"):
            read()


def test_a_missing_pyarrow_says_how_to_install_it(tmp_path, monkeypatch):
    path = save_parquet(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"pip install 'mintmc\[parquet\]'"):
        disk.open_data(path)
