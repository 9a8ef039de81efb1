"""Opening observations on disk: by a path, a memory map, a Zarr array or group, or a source of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mintmc import check
from mintmc.data.array import Rows
from mintmc.data.disk import DiskData
from mintmc.data.formats import find, npy_source, zarr_source
from mintmc.data.tables import arrow_source, csv_source, parquet_source


def from_npy(path: str | Path) -> DiskData:
    """Rows of a ``.npy`` file.

    Examples
    --------
    >>> import numpy as np, tempfile, mintmc.data.open as disk
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.save(folder.name + "/x.npy", np.arange(6.0).reshape(3, 2))
    >>> disk.from_npy(folder.name + "/x.npy").read(1, 3)
    array([[2., 3.],
           [4., 5.]], dtype=float32)
    >>> folder.cleanup()
    """
    return DiskData(npy_source(Path(path), None))


def from_zarr(path: str | Path, columns: Sequence[str] | None = None) -> DiskData:
    """Rows of a Zarr array, or of the arrays of a Zarr group as a dict; ``columns`` names those to read.

    Examples
    --------
    >>> import numpy as np, tempfile, zarr, mintmc.data.open as disk
    >>> folder = tempfile.TemporaryDirectory()
    >>> group = zarr.open_group(folder.name + "/table.zarr", mode="w")
    >>> group["x"], group["y"] = np.arange(3.0), np.ones(3)
    >>> disk.from_zarr(folder.name + "/table.zarr", columns=["x"]).read(1, 3)
    {'x': array([1., 2.], dtype=float32)}
    >>> folder.cleanup()
    """
    return DiskData(zarr_source(Path(path), columns))


def from_parquet(path: str | Path, columns: Sequence[str] | None = None) -> DiskData:
    """Rows of a Parquet file as a dict of columns; ``columns`` names those to read. Needs pyarrow.

    A column of lists of one length is an array with that many columns. A column of words or of categories is one of
    codes, and ``categories`` of what is returned says what they stand for: sorted, unless they have an order of their
    own. One row group is held in memory at a time.

    Examples
    --------
    >>> import pyarrow, pyarrow.parquet, tempfile, mintmc.data.open as disk
    >>> folder = tempfile.TemporaryDirectory()
    >>> pyarrow.parquet.write_table(pyarrow.table({"x": [0.0, 1.0, 2.0], "y": [1, 0, 1]}), folder.name + "/t.parquet")
    >>> disk.from_parquet(folder.name + "/t.parquet", columns=["x"]).read(1, 3)
    {'x': array([1., 2.], dtype=float32)}
    >>> folder.cleanup()
    """
    return DiskData(parquet_source(Path(path), columns))


def from_arrow(path: str | Path, columns: Sequence[str] | None = None) -> DiskData:
    """Rows of an Arrow IPC (Feather) file as a dict of columns; ``columns`` names those to read. Needs pyarrow.

    Examples
    --------
    >>> import pyarrow, pyarrow.feather, tempfile, mintmc.data.open as disk
    >>> folder = tempfile.TemporaryDirectory()
    >>> pyarrow.feather.write_feather(pyarrow.table({"x": [0.0, 1.0, 2.0]}), folder.name + "/t.arrow")
    >>> disk.from_arrow(folder.name + "/t.arrow").read(1, 3)
    {'x': array([1., 2.], dtype=float32)}
    >>> folder.cleanup()
    """
    return DiskData(arrow_source(Path(path), columns))


def from_csv(path: str | Path, columns: Sequence[str] | None = None) -> DiskData:
    """Rows of a CSV file, the first line of which names the columns, as a dict; ``columns`` names those to read.

    The whole file is held in memory; ``mintmc.prepare`` makes a copy that need not be. Needs pyarrow.

    Examples
    --------
    >>> import pathlib, tempfile, mintmc.data.open as disk
    >>> folder = tempfile.TemporaryDirectory()
    >>> lines = "x,country", "0.5,peru", "1.5,chad"
    >>> _ = pathlib.Path(folder.name, "t.csv").write_text(chr(10).join(lines))
    >>> data = disk.from_csv(folder.name + "/t.csv")
    >>> data.read(0, 2), data.categories
    ({'country': array([1, 0], dtype=int32), 'x': array([0.5, 1.5], dtype=float32)}, {'country': ['chad', 'peru']})
    >>> folder.cleanup()
    """
    return DiskData(csv_source(Path(path), columns))


def open_data(
    source: Any,
    columns: Sequence[str] | None = None,
    transform: Callable[[Rows], Rows] | None = None,
    verify: str = "quick",
) -> DiskData:
    """Open observations on disk.

    Parameters
    ----------
    source
        A path (``.npy``, ``.zarr``, ``.parquet``, ``.arrow``, ``.feather``, ``.csv``, or a folder made by
        ``prepare``), a ``numpy.memmap``, or a Zarr array or group. Of tables, columns of words or of categories are
        read as codes, whole numbers from 0; ``categories`` of what is returned says what they stand for.
    columns
        Which columns of a table to read; None reads all.
    transform
        Rows to observations: given an array with a leading axis of any length, or a dict of them for a table, it
        returns a pytree of arrays with the same leading axis. Each row is treated on its own.
    verify
        How a stored run that goes on makes sure that the data are the same: "quick" compares every byte of up to 1 GiB
        and of prepared data, and blocks spread over all of a larger file; "full" compares every byte.

    Examples
    --------
    >>> import numpy as np, tempfile, mintmc.data.open as disk
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.save(folder.name + "/x.npy", np.arange(6.0).reshape(3, 2))
    >>> data = disk.open_data(folder.name + "/x.npy", transform=lambda rows: {"x": rows[:, 0], "y": rows[:, 1] > 2})
    >>> data.n, data.prepared
    (3, False)
    >>> data.take([2, 0])
    {'x': array([4., 0.], dtype=float32), 'y': array([ True, False])}
    >>> folder.cleanup()
    """
    if transform is not None:
        transform = partial(check.called, "transform", check.function("transform", transform))
    return DiskData(find(source, columns), transform, verify)
