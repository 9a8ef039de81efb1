"""A run on disk: draws in a Zarr store that ArviZ opens, and a checkpoint to go on from.

Everything that a reader sees hangs on one file, the root's ``zarr.json``: it holds the metadata of all arrays (their
lengths) and the name of the checkpoint. Draws are written behind the end that it knows, the checkpoint under a new
name, and only then is it replaced, in one rename. So the store is valid at every moment, and what it shows belongs
together. It also holds the SHA-256 of the checkpoint and of itself, and every chunk a checksum of its own: what is not
what was written is refused (``store/document.py``, ``store/chunks.py``).
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import uuid
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc.store.arrays import created, plain, put, reopened
from mintmc.store.checkpoint import load_arrays
from mintmc.store.document import MOST_BYTES, check_members, check_only_files, load_document, signed
from mintmc.store.durable import digest, read, sync, write

if TYPE_CHECKING:
    import xarray

_BEGUN = "mintmc_begun"
"""The attribute of a store before its first commit."""
_LEFT = re.compile(r"zarr\.(json|[0-9a-f]{32})\.partial")
"""What a run leaves that is killed before it has a ``zarr.json``."""


@dataclass(frozen=True)
class Committed:
    """What a store shows of a run: the record of its last commit, and the checkpoint that belongs to it."""

    path: Path
    record: dict[str, Any] | None  # None if there is nothing

    @classmethod
    def at(cls, path: Path) -> Committed:
        """What is there now."""
        return cls(path, None if is_new(path) else read_record(path))

    @property
    def checkpoint_path(self) -> Path:
        """Of the file that holds the checkpoint."""
        assert self.record is not None
        result: Path = self.path / self.record["checkpoint"]
        return result

    def checkpoint(self) -> list[np.ndarray]:
        """The arrays of the checkpoint."""
        assert self.record is not None
        return load_arrays(self.path, self.record)


class RunStore:
    """A store that is being written to.

    Parameters
    ----------
    path
        Of the Zarr store, a directory. It must not exist, or hold a run.
    """

    def __init__(self, path: str | Path):
        import zarr

        from mintmc.store.chunks import Chunks

        self.path = Path(path)
        self.done = Committed.at(self.path).record  # what was committed last
        if self.done is None:
            _begin(self.path)
        else:
            check_only_files(self.path)
        document = load_document(self.path)
        # What readers know of every group and array. Zarr's own files may be ahead of it after a crash.
        self.members = document.get("consolidated_metadata", {"metadata": {}})["metadata"]
        self.chunks = Chunks(self.path, grids=check_members(self.path, self.members, self.done))
        self.chunks.verify()
        self.seen = self._on_disk()
        self.root = zarr.open_group(self.chunks, mode="r+", use_consolidated=self.done is not None)
        self.nodes: dict[str, Any] = {}  # groups and arrays that were written to, by path

    def append(self, tree: xarray.DataTree) -> None:
        """Write draws behind those that are there, and everything that is not a draw anew; not yet seen by a reader."""
        self._check_is_ours()
        with warnings.catch_warnings():
            # Words, such as names along an axis, are not in Zarr's specification yet; they are labels, and no draws.
            warnings.filterwarnings("ignore", "The data type .* does not have a Zarr V3 spec", FutureWarning)
            for group in tree.children:
                dataset = tree[group].to_dataset()
                node = self._group(str(group))
                node.attrs.put(plain(dataset.attrs))
                self.members[group] = node.metadata.to_dict()
                for name, variable in dataset.variables.items():
                    array = self._array(node, str(name), variable)
                    # What lies behind the committed end was never seen: it is overwritten.
                    put(array, variable, 0 if self.done is None else self.done["drawn"])
                    self.members[f"{group}/{name}"] = array.metadata.to_dict()

    def commit(self, attributes: dict[Any, Any], record: dict[str, Any], checkpoint: list[np.ndarray]) -> None:
        """Save the checkpoint, then show what was appended, in one rename."""
        self._check_is_ours()
        self.chunks.make_safe()
        number = 0 if self.done is None else self.done["number"] + 1
        name = f"checkpoint-{number}.npz"
        write(self.path / name, lambda file: np.savez(file, *checkpoint))
        record = {**record, "number": number, "checkpoint": name, "checkpoint_digest": digest(self.path / name)}
        document = {
            "zarr_format": 3,
            "node_type": "group",
            "attributes": {**plain(attributes), "mintmc_run": json.dumps(record)},
            "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": self.members},
        }
        text = signed(document)
        self._check_is_ours()
        write(self.path / "zarr.json", lambda file: file.write(text))
        sync(self.path)
        self.done, self.seen = record, hashlib.sha256(text).hexdigest()
        self.chunks.grids = check_members(self.path, self.members, record)
        for old in self.path.glob("checkpoint-*.npz*"):
            if old.name != name:
                old.unlink(missing_ok=True)

    def _on_disk(self) -> str:
        return hashlib.sha256(read(self.path / "zarr.json", MOST_BYTES)).hexdigest()

    def _check_is_ours(self) -> None:
        """Refuse to write to a folder that is no longer the one that this run has opened."""
        try:
            is_ours = self._on_disk() == self.seen
        except OSError:
            is_ours = False
        if not is_ours:
            raise ValueError(
                f"{self.path} was removed or replaced while the run was writing to it: the run stops, and has written "
                f"nothing to what is there now"
            )

    def _group(self, name: str) -> Any:
        """The group of that name; what a crash left of one that no reader knows is overwritten."""
        if name not in self.nodes:
            is_known = name in self.members
            self.nodes[name] = self.root[name] if is_known else self.root.create_group(name, overwrite=True)
        return self.nodes[name]

    def _array(self, node: Any, name: str, variable: Any) -> Any:
        """The same for an array like ``variable``, without draws at first."""
        path = f"{node.path}/{name}"
        if path not in self.nodes:
            self.nodes[path] = reopened(node, name) if path in self.members else created(node, name, variable)
        return self.nodes[path]


def is_new(path: Path) -> bool:
    """Whether nothing is there, or only what a run left that was stopped before its first commit."""
    if not path.exists():
        return True
    if not path.is_dir():
        return False
    if not (path / "zarr.json").is_file():
        return all(_LEFT.fullmatch(left.name) and not left.is_dir() for left in path.iterdir())
    return _BEGUN in load_document(path).get("attributes", {})


def read_record(path: str | Path) -> dict[str, Any]:
    """What a store says of the run that made it."""
    return _record_and_document(Path(path))[0]


def _record_and_document(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both from one reading: a run that writes to the store may replace its document at any moment."""
    document = load_document(path) if path.is_dir() and (path / "zarr.json").exists() else {}
    text = document.get("attributes", {}).get("mintmc_run")
    if text is None:
        raise ValueError(f"out must be a new path or a run of mintmc, got {path}: no {path / 'zarr.json'} of one")
    return json.loads(text), document


def open_run(path: str | Path) -> xarray.DataTree:
    """The tree of a store, loaded as it is used. What is missing or damaged is an error when it is read."""
    from xarray import open_datatree

    from mintmc.store.chunks import Chunks

    path = Path(path)
    record, document = _record_and_document(path)
    grids = check_members(path, document["consolidated_metadata"]["metadata"], record)
    store = Chunks(path, read_only=True, grids=grids, document=json.dumps(document).encode())
    return open_datatree(store, engine="zarr")  # type: ignore[arg-type]  # xarray's hint forgets Zarr's own stores


def verify(path: str | Path) -> None:
    """Read all of a store, and refuse it if anything of it is missing or damaged."""
    from mintmc.store.chunks import Chunks

    path = Path(path)
    record, document = _record_and_document(path)
    Chunks(path, grids=check_members(path, document["consolidated_metadata"]["metadata"], record)).verify()
    load_arrays(path, record)


def _begin(path: Path) -> None:
    """An empty store; what is there was left by a run that was stopped before its first commit."""
    path.mkdir(parents=True, exist_ok=True)
    for left in path.iterdir():
        if left.is_dir() and not left.is_symlink():
            # Threads that failed with a store may still be tidying up in it.
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)
    attributes = {"inference_library": "mintmc", _BEGUN: uuid.uuid4().hex}
    document = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    write(path / "zarr.json", lambda file: file.write(signed(document)))
    sync(path)
    sync(path.parent)
