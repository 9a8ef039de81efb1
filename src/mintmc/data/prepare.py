"""Shuffle a data set on disk, in bounded memory, so that a contiguous slice is a uniform random subset.

Pass 1 appends every row to one of K buckets, drawn uniformly at random; pass 2 loads the buckets one by one, shuffles
each in memory and appends it to the result. Given how many rows fell into each bucket, every way of dealing them out is
equally likely, and so is every order within a bucket: the concatenation is an exactly uniform permutation (Rao 1961).
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mintmc import check
from mintmc.data import identity
from mintmc.data.array import named_leaves, row_count
from mintmc.data.columns import Rows
from mintmc.data.disk import DiskData
from mintmc.data.formats import DESCRIPTION, VERSION
from mintmc.data.open import open_data
from mintmc.store.durable import sync
from mintmc.store.lock import locked

_BUCKETS = "buckets"


def prepare(
    source: Any,
    out: str | Path,
    *,
    columns: Sequence[str] | None = None,
    transform: Callable[[Rows], Rows] | None = None,
    seed: int = 0,
    memory: int = 256 * 2**20,
    progress: Callable[[int, int], object] | None = None,
) -> DiskData:
    """Copy observations into a new folder, in an exactly uniform random order.

    An interrupted or failed run leaves nothing behind, and an existing ``out`` is never touched. It works in the
    folder ``out`` + ".partial", which takes little more disk than the result, and holds a lock, ``out`` + ".lock".

    Parameters
    ----------
    source, columns, transform
        What to read, as in ``open_data``. The transform is applied once, here.
    out
        The folder to make.
    seed
        The same seed, source and memory give the same order.
    memory
        Bytes to work in, beyond what reading the source takes (a row group of Parquet, a few chunks of Zarr).
    progress
        Called with (rows done, rows in all) after every piece of work; a row that is in its bucket is half done.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from mintmc.data.prepare import prepare
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.save(folder.name + "/x.npy", np.arange(1000.0))
    >>> data = prepare(folder.name + "/x.npy", folder.name + "/x.prepared")
    >>> data.n, data.prepared
    (1000, True)
    >>> bool(np.all(np.sort(data.read(0, 1000)) == np.arange(1000)))
    True
    >>> folder.cleanup()
    """
    seed = check.integer("seed", seed, 0)
    memory = check.integer("memory", memory, 2**20)
    if progress is not None:
        check.function("progress", progress)
    report = (lambda done, total: None) if progress is None else functools.partial(check.called, "progress", progress)
    out = check.path("out", out)
    if out.exists() or out.is_symlink():
        raise FileExistsError(f"out must not exist yet, got {check.shown(str(out))}")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"out must be in an existing folder, got {out}")
    partial = out.with_name(out.name + ".partial")
    data = open_data(source, columns, transform)
    for name, leaf in named_leaves(data.example):
        if leaf.size == 0:
            raise ValueError(f"data{name} must have numbers in its rows, got shape {leaf.shape[1:]} in {data.name}")
    description = _description(data, seed)
    with locked(out):
        if out.exists():  # made by another process since we looked
            raise FileExistsError(f"out must not exist yet, got {out}")
        _remove_stale(partial)
        try:
            (partial / _BUCKETS).mkdir(parents=True)
            digests = _shuffle(data, partial, np.random.default_rng(seed), memory, report)
            # So that to know the data again later costs nothing, unless a file was touched.
            leaves = [leaf | {"sha256": digest} for leaf, digest in zip(description["leaves"], digests, strict=True)]
            stamp = identity.stamp([partial / leaf["file"] for leaf in leaves])
            (partial / DESCRIPTION).write_text(json.dumps(description | {"leaves": leaves, "stamp": stamp}, indent=1))
            shutil.rmtree(partial / _BUCKETS)
            for path in [*partial.iterdir(), partial]:
                sync(path)
            partial.rename(out)
        except BaseException:  # Ctrl-C too: half of a prepared folder is of use to nobody
            shutil.rmtree(partial, ignore_errors=True)
            raise
        sync(out.parent)
    return open_data(out)


def _shuffle(
    data: DiskData, folder: Path, rng: np.random.Generator, memory: int, report: Callable[[int, int], object]
) -> list[str]:
    """Write the rows of every leaf to a file of its own; returns the hashes of the files."""
    leaves = jax.tree.leaves(data.example)
    # One record holds all leaves of a row, so that a bucket is one file and a row moves as one piece.
    record = np.dtype([(str(i), leaf.dtype, leaf.shape[1:]) for i, leaf in enumerate(leaves)])
    # Four copies at once (as read, converted, as records, reordered) and the random numbers that go with a row.
    size = max(1, memory // (4 * data.bytes_per_row + 40))
    # Bucket sizes scatter by a square root, so they are aimed below what fits.
    count = -(-data.n // max(1, size * 3 // 4))
    buckets = [folder / _BUCKETS / str(i) for i in range(count)]
    done = 0
    for block in data.blocks(size):
        rows = np.empty(row_count(block), record)
        for i, leaf in enumerate(jax.tree.leaves(block)):
            rows[str(i)] = leaf
        destiny = rng.integers(count, size=len(rows), dtype=np.min_scalar_type(count))
        rows = rows[np.argsort(destiny, kind="stable")]
        parts = np.split(rows, np.cumsum(np.bincount(destiny, minlength=count))[:-1])
        for bucket, part in zip(buckets, parts, strict=True):
            _append(bucket, part)
        done += len(rows)
        report(done // 2, data.n)
    for i, leaf in enumerate(leaves):
        with (folder / f"{i}.npy").open("wb") as file:
            header = {"descr": leaf.dtype.str, "fortran_order": False, "shape": (data.n, *leaf.shape[1:])}
            np.lib.format.write_array_header_1_0(file, header)
    digests = [hashlib.sha256((folder / f"{i}.npy").read_bytes()) for i in range(len(leaves))]
    for bucket in buckets:
        rows = np.fromfile(bucket, record)
        bucket.unlink()
        rng.shuffle(rows)
        for i in range(len(leaves)):
            column = np.ascontiguousarray(rows[str(i)])
            _append(folder / f"{i}.npy", column)
            digests[i].update(column.view(np.uint8).data)
        done += len(rows)
        report(done // 2, data.n)
    return [digest.hexdigest() for digest in digests]


def _append(path: Path, rows: np.ndarray) -> None:
    try:
        with path.open("ab") as file:
            file.write(rows.view(np.uint8).data)
    except OSError as error:
        raise OSError(
            error.errno, f"out must be on a disk with room for the data, got {error.strerror}", str(path)
        ) from error


def _description(data: DiskData, seed: int) -> dict[str, Any]:
    """What is known of prepared rows before they are written."""
    found: dict[str, Any] = {
        "version": VERSION,
        "n": data.n,
        "leaves": [
            {"name": f"data{name}", "file": f"{i}.npy", "shape": leaf.shape[1:], "dtype": str(leaf.dtype)}
            for i, (name, leaf) in enumerate(named_leaves(data.example))
        ],
        "tree": _described(data.example, iter(range(len(jax.tree.leaves(data.example))))),
        "seed": seed,
        "source": data.name,
    }
    return found | ({"categories": data.categories} if data.categories else {})


def _described(tree: Rows, places: Any) -> Any:
    """The structure of a pytree in words of JSON; a leaf is its place among the leaves."""
    kind = type(tree)
    if kind is dict and all(isinstance(key, str) for key in tree):
        # JAX orders the leaves of a dict by key.
        return {"dict": {key: _described(tree[key], places) for key in sorted(tree)}}
    if kind in (list, tuple):
        return {kind.__name__: [_described(part, places) for part in tree]}
    if kind is not np.ndarray:
        raise TypeError(
            f"transform must return arrays in dicts (with string keys), lists and tuples, got {kind.__name__}"
        )
    return next(places)


def _remove_stale(partial: Path) -> None:
    if partial.is_symlink():
        raise FileExistsError(f"{partial} must not exist, got a link")
    if not partial.exists():
        return
    ours = partial.is_dir() and any((partial / name).exists() for name in (_BUCKETS, DESCRIPTION))
    if not ours and not (partial.is_dir() and not any(partial.iterdir())):
        raise FileExistsError(f"{partial} must not exist, got something that prepare did not make")
    shutil.rmtree(partial)
