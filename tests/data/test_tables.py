import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import zarr

import mintmc


@pytest.mark.parametrize("counts", [(3, 0, 2), (0, 5), (5, 0), (0, 0, 4, 0, 0, 1, 0)])
def test_groups_of_rows_may_be_empty(counts, tmp_path):
    schema = pyarrow.schema([("x", pyarrow.float32())])
    x = np.arange(5, dtype=np.float32)
    parts = np.split(x, np.cumsum(counts)[:-1])
    batches = [pyarrow.record_batch([pyarrow.array(part)], schema=schema) for part in parts]
    with pyarrow.parquet.ParquetWriter(tmp_path / "x.parquet", schema) as file:
        for part in batches:
            file.write_table(pyarrow.Table.from_batches([part]))
    with pyarrow.ipc.new_file(tmp_path / "x.arrow", schema) as file:
        for part in batches:
            file.write_batch(part)
    for name in ("x.parquet", "x.arrow"):
        data = mintmc.open_data(tmp_path / name)
        np.testing.assert_array_equal(data.read(0, 5)["x"], x)
        np.testing.assert_array_equal(data.take([4, 0, 2, 3])["x"], x[[4, 0, 2, 3]])


def test_rows_without_numbers_are_refused(tmp_path):
    zarr.save_array(tmp_path / "x.zarr", np.zeros((5, 0)))
    with pytest.raises(ValueError, match=r"data must have numbers in its rows, got shape \(5, 0\) in .*x\.zarr"):
        mintmc.prepare(tmp_path / "x.zarr", tmp_path / "out")
    np.save(tmp_path / "x.npy", np.zeros((5, 2)))
    with pytest.raises(ValueError, match=r"data must have numbers in its rows, got shape \(0,\) in .*x\.npy"):
        mintmc.prepare(tmp_path / "x.npy", tmp_path / "out", transform=lambda rows: rows[:, :0])
    zarr.open_group(tmp_path / "g.zarr", mode="w")["x"] = np.zeros(5)
    with pytest.raises(ValueError, match=r"columns must name at least one of .*'x'.*, got none"):
        mintmc.prepare(tmp_path / "g.zarr", tmp_path / "out", columns=[])


def test_a_transform_that_fails_is_named(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((5, 2)))
    with pytest.raises(ValueError, match=r"transform must work for .*got KeyError: 'x'"):
        mintmc.open_data(tmp_path / "x.npy", transform=lambda rows: {}["x"])
