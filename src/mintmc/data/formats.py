"""Files of rows, format by format; arrays (.npy, memory maps, Zarr) are indexed where they lie."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mintmc import check
from mintmc.data import identity, zarrs
from mintmc.data.array import named_leaves
from mintmc.data.columns import Rows
from mintmc.data.identity import Stamp
from mintmc.data.source import Source, check_count, check_numbers, must_be, select
from mintmc.data.tables import arrow_source, csv_source, parquet_source

DESCRIPTION = "mintmc-data.json"
"""The file that makes a folder a prepared one."""
VERSION = 1
_STRIPE = 2**26  # bytes of a memory map that are touched before they are given back
_RESIDENT = 2**28  # bytes of one that may stay in memory where places all over it are read again and again


class _Arrays(Source):
    """Arrays that are indexed where they lie: memory maps or Zarr arrays."""

    def __init__(
        self,
        name: str,
        tree: Rows,
        columns: Sequence[str] | None,
        stamp: Callable[[], Stamp],
        content: Callable[[bool], tuple[str, str]],
        prepared: bool = False,
        checked: bool = False,
        categories: dict[str, list[Any]] | None = None,
    ):
        if isinstance(tree, dict):
            tree = {column: tree[column] for column in select(columns, tree, name)}
        elif columns is not None:
            got = f"{check.shown(columns)} for {name}"
            raise ValueError(f"columns must be None for data without named columns, got {got}")
        for leaf_name, leaf in named_leaves(tree):
            check_numbers(f"data{leaf_name}", leaf.dtype, name)
            if leaf.ndim == 0:
                raise ValueError(f"data{leaf_name} must have a leading axis of observations, got a scalar in {name}")
            if 0 in leaf.shape[1:]:
                raise ValueError(f"data{leaf_name} must have numbers in its rows, got shape {leaf.shape} in {name}")
        lengths = {f"data{leaf_name}": leaf.shape[0] for leaf_name, leaf in named_leaves(tree)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"data must have the same number of rows in all leaves, got {lengths} in {name}")
        self.name, self.tree, self._stamp, self._content = name, tree, stamp, content
        self.prepared, self.checked, self.categories = prepared, checked, categories or {}
        self.n = check_count(next(iter(lengths.values())), name)

    def stamp(self) -> Stamp:
        """What changes when a file does."""
        return self._stamp()

    def content(self, everything: bool) -> tuple[str, str]:
        """A hash of the files, or of parts of them."""
        return self._content(everything)

    def read(self, first: int, last: int) -> Rows:
        return jax.tree.map(lambda array: _copied(array, slice(first, last)), self.tree)

    def take(self, indices: np.ndarray) -> Rows:
        def gather(array: Any) -> np.ndarray:
            if not isinstance(array, np.memmap):
                result: np.ndarray = array.oindex[indices]
                return result
            # Stripe by stripe: all at once, the whole file could end up in memory.
            stripe = max(1, _STRIPE * len(array) // max(array.nbytes, 1))
            cuts = np.flatnonzero(np.diff(indices // stripe)) + 1
            return np.concatenate([_copied(array, part) for part in np.split(indices, cuts)])

        return jax.tree.map(gather, self.tree)

    def mapped(self) -> Rows | None:
        return self.tree if all(isinstance(array, np.memmap) for array in jax.tree.leaves(self.tree)) else None

    def give_back(self) -> None:
        for array in jax.tree.leaves(self.tree):
            if array.nbytes > _RESIDENT:
                _give_back(array)


def find(source: Any, columns: Sequence[str] | None, name: str = "source") -> Source:
    """The source that a user means by the argument of that name."""
    if isinstance(source, Source) and not isinstance(source, type):
        if columns is not None:
            raise ValueError(f"columns must be None for a source of your own, got {check.shown(columns)}")
        return source
    if isinstance(source, np.memmap):
        files = [Path(source.filename)] if source.filename else []
        return _Arrays(str(source.filename or "memmap"), source, columns, *_looks(lambda: files))
    if not isinstance(source, (str, os.PathLike)):
        import zarr

        if not isinstance(source, (zarr.Array, zarr.Group)):
            raise TypeError(f"{name} must be a path, a numpy.memmap or a Zarr array, got {check.shown(source)}")
        return _node_source(source, columns)
    path = check.path(name, source)
    if not path.exists():
        raise FileNotFoundError(f"{name} must be an existing file or folder, got {check.shown(str(path))}")
    if (path / DESCRIPTION).is_file():
        return _prepared(path, columns)
    openers = {
        ".npy": npy_source,
        ".zarr": zarr_source,
        ".parquet": parquet_source,
        ".arrow": arrow_source,
        ".feather": arrow_source,
        ".csv": csv_source,
    }
    if path.suffix.lower() not in openers:
        raise ValueError(f"{name} must end in {', '.join(openers)} or be a folder made by prepare, got {path}")
    return openers[path.suffix.lower()](path, columns)


def npy_source(path: Path, columns: Sequence[str] | None) -> Source:
    """A ``.npy`` file."""
    return _Arrays(str(path), _mapped(path), columns, *_looks(lambda: [path]))


def _looks(files: Callable[[], list[Path]]) -> tuple[Callable[[], Stamp], Callable[[bool], tuple[str, str]]]:
    """How to look at files."""
    return lambda: identity.stamp(files()), lambda everything: identity.content(files(), everything)


def _mapped(path: Path) -> np.memmap:
    with must_be(path, "a .npy file of numbers"):
        return np.lib.format.open_memmap(path, mode="r")


def zarr_source(path: Path, columns: Sequence[str] | None) -> Source:
    """A Zarr array or group."""
    import zarr

    with must_be(path, "a Zarr array or group"):
        node = zarr.open(path, mode="r")
    return _node_source(node, columns)


def _node_source(node: Any, columns: Sequence[str] | None) -> Source:
    tree = dict(node.arrays()) if hasattr(node, "arrays") else node
    if isinstance(tree, dict) and columns is not None:
        tree = {column: tree[column] for column in select(columns, tree, node.store_path)}
    arrays = jax.tree.leaves(tree)
    source = _Arrays(str(node.store_path), tree, columns, partial(zarrs.stamp, arrays), partial(zarrs.content, arrays))
    for name, array in named_leaves(tree):
        zarrs.check_chunks(f"data{name}", array)
    return source


def _prepared(path: Path, columns: Sequence[str] | None) -> Source:
    with must_be(path / DESCRIPTION, "a description of prepared data"):
        described = json.loads((path / DESCRIPTION).read_text())
    if described.get("version") != VERSION:
        raise ValueError(f"{path} must be prepared data of version {VERSION}, got {described.get('version')}")
    files = [path / leaf["file"] for leaf in described["leaves"]]
    arrays = [_mapped(file) for file in files]
    for leaf, array in zip(described["leaves"], arrays, strict=True):
        expected = ((described["n"], *leaf["shape"]), leaf["dtype"])
        if (array.shape, str(array.dtype)) != expected:
            raise ValueError(f"{path / leaf['file']} must hold {expected}, got {(array.shape, str(array.dtype))}")

    def tree(node: Any) -> Rows:
        if isinstance(node, int):
            return arrays[node]
        ((kind, parts),) = node.items()
        if kind == "dict":
            return {key: tree(part) for key, part in parts.items()}
        return {"list": list, "tuple": tuple}[kind](map(tree, parts))

    stamp, content = _looks(lambda: files)
    # What was hashed and checked when it was made need not be again, unless a file was touched since: copied, at least.
    untouched = described.get("stamp") == [*stamp()]

    def known(everything: bool) -> tuple[str, str]:
        return identity.joined([leaf["sha256"] for leaf in described["leaves"]]) if untouched else content(True)

    rows, named = tree(described["tree"]), described.get("categories")
    return _Arrays(str(path), rows, columns, stamp, known, prepared=True, checked=untouched, categories=named)


def _copied(array: Any, rows: slice | np.ndarray) -> np.ndarray:
    copy = np.array(array[rows])
    _give_back(array)
    return copy


def _give_back(array: Any) -> None:
    """Pages that were read stay in the process's memory until they are given back."""
    # A private map would lose changes.
    if isinstance(array, np.memmap) and array.mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
        mapped = array._mmap  # type: ignore[attr-defined]
        if mapped is not None:
            mapped.madvise(mmap.MADV_DONTNEED)
