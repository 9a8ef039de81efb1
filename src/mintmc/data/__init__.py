"""Where observations live, and how a batch is drawn from them."""

from mintmc.data.array import ArrayData, named_leaves, row_count
from mintmc.data.batch import (
    BATCHINGS,
    Batch,
    Batching,
    Shuffled,
    Stream,
    Supplied,
    Uniform,
    open_batches,
)
from mintmc.data.columns import Rows, as_rows, cut_out, gathered
from mintmc.data.disk import DiskData, distinct
from mintmc.data.disk_batch import Fresh, FromDisk, Runs
from mintmc.data.open import open_data
from mintmc.data.reader import PASSES_PER_SHUFFLE, RowReader

__all__ = [
    "BATCHINGS",
    "PASSES_PER_SHUFFLE",
    "ArrayData",
    "Batch",
    "Batching",
    "DiskData",
    "Fresh",
    "FromDisk",
    "RowReader",
    "Rows",
    "Runs",
    "Shuffled",
    "Stream",
    "Supplied",
    "Uniform",
    "as_rows",
    "cut_out",
    "distinct",
    "gathered",
    "named_leaves",
    "open_batches",
    "open_data",
    "row_count",
]
