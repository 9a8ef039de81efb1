"""Where observations live, and how a batch is drawn from them."""

from mintmc.data.array import ArrayData, Rows, named_leaves, row_count
from mintmc.data.batch import BATCHINGS, Batch, Batching, Shuffled, Stream, Supplied, Uniform, open_batches

__all__ = [
    "BATCHINGS",
    "ArrayData",
    "Batch",
    "Batching",
    "Rows",
    "Shuffled",
    "Stream",
    "Supplied",
    "Uniform",
    "named_leaves",
    "open_batches",
    "row_count",
]
