"""Where observations live, and how a batch is drawn from them."""

from mintmc.data.array import ArrayData, Rows, named_leaves, row_count
from mintmc.data.batch import BATCHINGS, Batching, Shuffled, Uniform

__all__ = ["BATCHINGS", "ArrayData", "Batching", "Rows", "Shuffled", "Uniform", "named_leaves", "row_count"]
