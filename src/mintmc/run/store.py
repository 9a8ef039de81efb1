"""A run on disk: draws in a Zarr store that ArviZ opens, and a checkpoint to go on from.

Everything that a reader sees hangs on one file, the root's ``zarr.json``: it holds the metadata of all arrays (their
lengths) and the name of the checkpoint. Draws are written behind the end that it knows, the checkpoint under a new
name, and only then is it replaced, in one rename. So the store is valid at every moment, and what it shows belongs
together.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from mintmc.durable import sync

if TYPE_CHECKING:
    import xarray

_BYTES_PER_CHUNK = 2**20
_BEGUN = {"inference_library": "mintmc"}
"""Attributes of a store before its first commit."""


class RunStore:
    """A store that is being written to.

    Parameters
    ----------
    path
        Of the Zarr store, a directory. It must not exist, or hold a run.
    writes
        False if another process writes to it, and this one only needs to know where the run stands.
    """

    def __init__(self, path: str | Path, writes: bool = True):
        import zarr

        from mintmc.run.chunks import Chunks

        self.path = Path(path)
        self.done = None if is_new(self.path) else read_record(self.path)  # what was committed last
        if not writes:
            return
        self.chunks = Chunks(self.path)
        if self.done is None:
            # Threads that failed with a store may still be tidying up in it.
            shutil.rmtree(self.path, ignore_errors=True)
            self.root = zarr.create_group(self.chunks, zarr_format=3, overwrite=True, attributes=_BEGUN)
        else:
            self.root = zarr.open_group(self.chunks, mode="r+", use_consolidated=True)
        self.nodes: dict[str, Any] = {}  # groups and arrays that were written to, by path
        # What readers know of every group and array. Zarr's own files may be ahead of it after a crash.
        self.members = _document(self.path).get("consolidated_metadata", {"metadata": {}})["metadata"]

    def append(self, tree: xarray.DataTree) -> None:
        """Write draws behind those that are there, and everything that is not a draw anew; not yet seen by a reader."""
        for group in tree.children:
            dataset = tree[group].to_dataset()
            node = self._group(str(group))
            node.attrs.put(_plain(dataset.attrs))
            self.members[group] = node.metadata.to_dict()
            for name, variable in dataset.variables.items():
                array = self._write(node, str(name), variable)
                self.members[f"{group}/{name}"] = array.metadata.to_dict()

    def commit(self, attributes: dict[Any, Any], record: dict[str, Any], checkpoint: list[np.ndarray]) -> None:
        """Save the checkpoint, then show what was appended, in one rename."""
        self.chunks.make_safe()
        number = 0 if self.done is None else self.done["number"] + 1
        name = f"checkpoint-{number}.npz"
        self._replace(name, lambda file: np.savez(file, *checkpoint))
        record = {**record, "number": number, "checkpoint": name}
        document = {
            "zarr_format": 3,
            "node_type": "group",
            "attributes": {**_plain(attributes), "mintmc_run": json.dumps(record)},
            "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": self.members},
        }
        self._replace("zarr.json", lambda file: file.write(json.dumps(document).encode()))
        self.done = record
        for old in self.path.glob("checkpoint-*.npz*"):
            if old.name != name:
                old.unlink(missing_ok=True)

    def checkpoint(self) -> list[np.ndarray]:
        """The arrays of the last checkpoint."""
        assert self.done is not None
        try:
            with open(self.path / self.done["checkpoint"], "rb") as file, np.load(file) as arrays:
                return [arrays[f"arr_{i}"] for i in range(len(arrays.files))]
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise ValueError(f"{self.path} is damaged: its checkpoint cannot be read ({error})") from error

    def _group(self, name: str) -> Any:
        """The group of that name; what a crash left of one that no reader knows is overwritten."""
        if name not in self.nodes:
            is_known = name in self.members
            self.nodes[name] = self.root[name] if is_known else self.root.create_group(name, overwrite=True)
        return self.nodes[name]

    def _array(self, node: Any, name: str, variable: Any) -> Any:
        """The same for an array like ``variable``, without draws at first."""
        path, dims, values = f"{node.path}/{name}", variable.dims, variable.values
        if path not in self.nodes:
            shape = tuple(0 if dim == "draw" else size for dim, size in zip(dims, values.shape, strict=True))
            self.nodes[path] = (
                node[name]
                if path in self.members
                else node.create_array(
                    name,
                    shape=shape,
                    chunks=_chunks(values, dims),
                    dtype=values.dtype,
                    dimension_names=dims,
                    attributes=_plain(variable.attrs),
                    overwrite=True,
                )
            )
        return self.nodes[path]

    def _write(self, node: Any, name: str, variable: Any) -> Any:
        dims, values = variable.dims, variable.values
        along = dims.index("draw") if "draw" in dims else None
        array = self._array(node, name, variable)
        if along is None:
            array[...] = values
            return array
        # What lies behind the committed end was never seen: it is overwritten.
        first = 0 if self.done is None else self.done["drawn"]
        last = first + values.shape[along]
        array.resize(tuple(last if axis == along else size for axis, size in enumerate(array.shape)))
        array[tuple(slice(first, last) if axis == along else slice(None) for axis in range(values.ndim))] = values
        return array

    def _replace(self, name: str, write: Any) -> None:
        temporary = self.path / f"{name}.partial"
        try:
            with open(temporary, "wb") as file:
                write(file)
            sync(temporary)
            os.replace(temporary, self.path / name)
            sync(self.path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def is_new(path: Path) -> bool:
    """Whether nothing is there, or only what a run left that was stopped before its first commit."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return True
    return (path / "zarr.json").is_file() and _document(path).get("attributes") == _BEGUN


def read_record(path: str | Path) -> dict[str, Any]:
    """What a store says of the run that made it."""
    path = Path(path)
    document = _document(path) if path.is_dir() and (path / "zarr.json").exists() else {}
    text = document.get("attributes", {}).get("mintmc_run")
    if text is None:
        raise ValueError(f"out must be a new path or a run of mintmc, got {path}")
    return json.loads(text)


def open_run(path: str | Path) -> xarray.DataTree:
    """The tree of a store, loaded as it is used."""
    from xarray import open_datatree

    return open_datatree(path, engine="zarr")


def _document(path: Path) -> dict[str, Any]:
    try:
        return json.loads((path / "zarr.json").read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged: its zarr.json cannot be read ({error})") from error


def _chunks(values: np.ndarray, dims: tuple) -> tuple[int, ...]:
    """One chain a chunk, so that processes never share a file; as many draws as make a megabyte."""
    sizes = [1 if dim in ("chain", "rung") else max(size, 1) for dim, size in zip(dims, values.shape, strict=True)]
    if "draw" in dims:
        along = dims.index("draw")
        sizes[along] = 1
        per_draw = int(np.prod(sizes)) * values.dtype.itemsize
        sizes[along] = int(np.clip(_BYTES_PER_CHUNK // per_draw, 1, 2**16))
    return tuple(sizes)


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes as JSON can hold them."""
    return json.loads(json.dumps(attributes, default=lambda value: np.asarray(value).tolist()))
