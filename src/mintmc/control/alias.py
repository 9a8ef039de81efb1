"""Rows drawn with probability proportional to their bounds, in a time that does not depend on n.

The alias method (Walker 1977): a table of 2^p >= n cells of equal weight, each shared by at most two rows. A cell is
drawn, then one of its rows: two random words and one look-up, where a search in cumulative sums takes log2(n).

All weights are whole multiples of a small unit and a cell holds 2^32 of them, so that the two words pick every row with
exactly the probability that the formula assumes (cumulative float32 sums would be off by 10% at n = 1e6). Weights are
rounded up: bounds stay bounds. The table is made by sweeping over the cells that lack weight and the rows that have too
much, side by side (Huebschle-Schneider & Sanders 2022), as two sorted searches instead of a loop over rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

_CELL = 2**32
"""Units of weight in a cell: the values of a random word."""


class Weighted(NamedTuple):
    """Rows and their weights c_i, ready to be drawn in proportion to them."""

    cells: Array  # (2^p, 2) uint32: where the second row of a cell begins, and its number; the first is the cell's own
    each: Array  # (n,) c_i, rounded up
    total: float  # the sum of c_i

    def pick(self, words: Array) -> Array:
        """The rows that random ``words``, uint32 of shape (..., 2), stand for."""
        cell = words[..., 0] >> (33 - len(self.cells).bit_length())
        found = self.cells[cell]
        return jnp.where(words[..., 1] < found[..., 0], cell, found[..., 1]).astype(jnp.int32)


def weighted(weights: Any, dtype: Any) -> Weighted:
    """A table for weights that are finite and at least 0."""
    weights = np.asarray(weights, np.float64)
    multiples, unit = _whole(weights)
    begins, other = _table(multiples)
    # Up, so that rounding to float32 does not make a bound smaller.
    each = np.nextafter((multiples * unit).astype(dtype), np.asarray(np.inf, dtype))
    cells = jnp.asarray(np.stack([begins, other], axis=-1).astype(np.uint32))
    return Weighted(cells, jnp.asarray(np.where(multiples > 0, each, 0).astype(dtype)), float(multiples.sum() * unit))


def _whole(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights as whole multiples of a unit whose sum fills all cells, none smaller than it was."""
    n = len(weights)
    units = _CELL << max(1, (n - 1).bit_length())
    if not weights.any():
        return np.zeros(n, np.int64), 0.0
    # Rounding up takes at most a unit a row, float64 a relative 1e-15; what is left goes to the largest.
    unit = weights.sum() / (units * (1 - 1e-12) - 2 * n)
    multiples = np.ceil(weights / unit).astype(np.int64)
    multiples[np.argmax(multiples)] += units - int(multiples.sum())
    return multiples, unit


def _table(multiples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the second row of every cell begins, and its number."""
    count = 1 << max(1, (len(multiples) - 1).bit_length())
    weight = np.zeros(count, np.int64)
    weight[: len(multiples)] = multiples
    begins, other = np.zeros(count, np.int64), np.arange(count)
    if not multiples.any():
        return begins, other
    poor, rich = np.flatnonzero(weight < _CELL), np.flatnonzero(weight >= _CELL)
    lacking, spare = np.cumsum(_CELL - weight[poor]), np.cumsum(weight[rich] - _CELL)
    # Whoever still has something to spare fills the next poor cell, even if that makes it poor itself ...
    begins[poor] = weight[poor]
    other[poor] = rich[np.searchsorted(spare, lacking - (_CELL - weight[poor]), side="left")]
    # ... in which case the next rich one fills it.
    first = np.searchsorted(lacking, spare, side="right")
    short = first < len(lacking)
    begins[rich[short]] = _CELL - (lacking[first[short]] - spare[short])
    other[rich[short]] = rich[1:][np.flatnonzero(short)]
    return begins, other
