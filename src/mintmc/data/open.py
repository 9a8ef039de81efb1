"""Opening observations on disk: by a path, a memory map, a Zarr array or group, or a source of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mintmc import check
from mintmc.data.columns import Rows
from mintmc.data.disk import DiskData
from mintmc.data.formats import find


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
        read as codes, whole numbers from 0; ``categories`` of what is returned says what they stand for, sorted unless
        they have an order of their own. A column of lists of one length is an array. Parquet, Arrow and CSV need
        pyarrow; of Parquet one row group is held in memory at a time, of CSV all (``mintmc.prepare`` makes a copy that
        need not be).
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

    A table is a dict of its columns:

    >>> import pathlib
    >>> lines = "x,country", "0.5,peru", "1.5,chad"
    >>> _ = pathlib.Path(folder.name, "t.csv").write_text(chr(10).join(lines))
    >>> data = disk.open_data(folder.name + "/t.csv")
    >>> data.read(0, 2), data.categories
    ({'country': array([1, 0], dtype=int32), 'x': array([0.5, 1.5], dtype=float32)}, {'country': ['chad', 'peru']})
    >>> folder.cleanup()
    """
    if transform is not None:
        transform = partial(check.called, "transform", check.function("transform", transform))
    return DiskData(find(source, columns), transform, verify)
