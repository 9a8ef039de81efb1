"""Observations held in memory: a pytree of arrays that share one leading axis."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from mintmc import check
from mintmc.data.columns import Rows, by_column


def named_leaves(tree: Any, name: str = "data") -> list[tuple[str, Any]]:
    """The leaves of a pytree with a name that a user recognises, such as ``data['x']``."""
    try:
        leaves = jax.tree_util.tree_leaves_with_path(tree)
    except ValueError as error:  # a dict whose keys have no order
        raise ValueError(f"{name} must be a pytree of arrays, got {check.shown(tree)}") from error
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]


def row_count(rows: Rows) -> int:
    """How many observations a batch holds."""
    result: int = jax.tree.leaves(rows)[0].shape[0]
    return result


def row_form(rows: Rows) -> str:
    """What one row is made of.

    Examples
    --------
    >>> row_form({"x": np.zeros((9, 3)), "y": np.zeros(9, np.int32)})
    "{'x': float64[3], 'y': int32}"
    """
    row = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), rows)
    return check.form(row).replace("[]", "")


class ArrayData:
    """Checked observations, kept in host memory in the precision that JAX will use.

    Parameters
    ----------
    data
        An array or a pytree of arrays with one leading axis of length n >= 1 and finite values.
    categories
        What codes stand for, by column, if the data were a table with columns of words.
    """

    on_disk: ClassVar[bool] = False
    by_host: ClassVar[bool] = False

    def __init__(self, data: Rows, categories: Mapping[str, list[Any]] | None = None):
        leaves = named_leaves(data)
        if not leaves:
            raise ValueError(f"data must hold at least one array, got {check.shown(data)}")
        lengths = {f"data{name}": len(_checked_leaf(f"data{name}", leaf)) for name, leaf in leaves}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise ValueError(f"data must have one leading axis: all leaves the same number of rows, got {listed}")
        self.n = next(iter(lengths.values()))
        self.categories = dict(categories or {})
        self.rows: Rows = jax.tree.map(native, data)
        for (name, leaf), kept in zip(leaves, jax.tree.leaves(self.rows), strict=True):
            check_kept(f"data{name}", np.asarray(leaf), kept)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n:,} rows of {row_form(self.rows)}, in memory)"

    @property
    def numbers_per_row(self) -> int:
        """How many numbers one observation is made of."""
        return sum(int(np.prod(leaf.shape[1:])) for leaf in jax.tree.leaves(self.rows))

    @cached_property
    def resident(self) -> Rows:
        """All rows in their own order, as programs read them."""
        with jax.ensure_compile_time_eval():  # so that a first use under jit caches arrays, not tracers
            return jax.tree.map(jnp.asarray, by_column(self.rows))

    def check_reads(self, surely: bool = False) -> None:
        """Nothing can go wrong in memory."""

    def read(self, first: int, last: int) -> Rows:
        """Some rows, in their own order."""
        return jax.tree.map(lambda leaf: leaf[first:last], self.rows)

    def take(self, indices: np.ndarray) -> Rows:
        """Rows by their numbers."""
        return jax.tree.map(lambda leaf: leaf.take(indices, axis=0), self.rows)

    def fingerprint(self) -> str:
        """A hash of all observations."""
        digest = hashlib.sha256()
        for leaf in jax.tree.leaves(self.rows):
            digest.update(str((leaf.shape, leaf.dtype)).encode())
            digest.update(leaf.data)
        return digest.hexdigest()[:16]

    def shuffled(self, seed: int, epoch: int, wrap: int) -> Rows:
        """A copy in the random order of (seed, epoch), its first ``wrap`` rows repeated at the end.

        Any slice of at most ``wrap`` rows that starts before row n is then a uniform random subset.
        """
        order = np.random.default_rng([seed, epoch]).permutation(self.n)
        return self.take(np.concatenate([order, order[:wrap]]))


def native(leaf: Any) -> np.ndarray:
    """An array in the precision that JAX will use."""
    leaf = np.asarray(leaf)
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(leaf, dtype=jax.dtypes.canonicalize_dtype(leaf.dtype.newbyteorder("=")))


def check_kept(
    name: str, given: np.ndarray, kept: np.ndarray, row: Callable[[int], int] = int, where: str = ""
) -> None:
    """Refuse what is not finite, or not what it was before JAX's precision; ``row`` is the number of the i-th."""
    good = np.isfinite(kept) if kept.dtype.kind in "fc" else kept == given
    if not good.all():
        at = tuple(np.argwhere(~good)[0])
        wanted = f"fit {kept.dtype}" if np.isfinite(given[at]) else "be finite"
        count = int((~good).sum())
        raise ValueError(f"{name} must {wanted}, got {given[at]} in row {row(at[0])}{where} ({count} such values)")


def check_unmasked(name: str, leaf: Any) -> None:
    """Refuse masked values: what lies under a mask is no observation."""
    mask = np.ma.getmaskarray(leaf) if isinstance(leaf, np.ma.MaskedArray) else np.zeros(1, bool)
    if mask.any():
        row = np.argwhere(mask)[0, 0] if mask.ndim else 0
        raise ValueError(f"{name} must not have masked values, got {int(mask.sum())}, the first in row {row}")


def is_numeric(dtype: np.dtype) -> bool:
    """Whether JAX has such numbers: real, complex or boolean, of at most 64 bits a part; no times, no objects."""
    return dtype.kind in "biufc" and dtype.itemsize <= (16 if dtype.kind == "c" else 8)


def _checked_leaf(name: str, given: Any) -> np.ndarray:
    """One leaf of the data as an array; refuses what is no array of numbers with a leading axis."""
    if hasattr(given, "columns"):
        wanted = "an array or a pytree of arrays, such as {'x': table['x'].to_numpy()}"
        raise TypeError(f"{name} must be {wanted}, got a table, {type(given).__name__}")
    check_unmasked(name, given)
    try:
        leaf = np.asarray(given)
    except Exception:  # ragged, or an object with ideas of its own
        raise TypeError(f"{name} must be an array of numbers, got {check.shown(given)}") from None
    if not is_numeric(leaf.dtype):
        got = check.shown(given) if leaf.ndim == 0 else f"dtype {leaf.dtype}"
        raise TypeError(f"{name} must be an array of numbers, got {got}")
    if leaf.ndim == 0:
        wanted = "have a leading axis of observations (a list is a pytree: pass np.array(list))"
        raise ValueError(f"{name} must {wanted}, got a scalar, {leaf}")
    if len(leaf) == 0:
        raise ValueError(f"{name} must have at least one row, got shape {leaf.shape}")
    return leaf
