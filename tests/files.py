"""The same rows in every format that can be read."""

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import zarr

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
