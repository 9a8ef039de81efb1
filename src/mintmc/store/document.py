"""The root's ``zarr.json``: signed with a checksum of itself, and checked before anything that it says is believed.

A store may come from elsewhere. What it says is never executed, names of files in it are bare names, and what it claims
to hold is compared with itself and with limits before memory is set aside for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mintmc.store.durable import read

if TYPE_CHECKING:
    from mintmc.store.chunks import Grid

MOST_BYTES = 2**28
"""Of a ``zarr.json``: params and arrays of settings are written down in it."""
_DIGEST = "mintmc_digest"
_COUNTS = ("drawn", "number", "warmed", "draws", "warmup", "thin", "seed", "chains", "processes")
_MOST_COUNTED = 2**32


def signed(document: dict[str, Any]) -> bytes:
    """A document as it is written, with its own checksum among its attributes."""
    attributes = {**document["attributes"], _DIGEST: _digest(document)}
    return json.dumps({**document, "attributes": attributes}).encode()


def load_document(path: Path) -> dict[str, Any]:
    """The ``zarr.json`` of a store; refuses one that is not what was written."""
    try:
        document = json.loads(read(path / "zarr.json", MOST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path / "zarr.json", f"it cannot be read ({error})") from error
    attributes = document.get("attributes") if isinstance(document, dict) else None
    if not isinstance(attributes, dict) or not any(str(name).startswith("mintmc_") for name in attributes):
        return {}  # somebody else's
    found = attributes.pop(_DIGEST, None)
    if found != _digest(document):
        raise _damaged(path / "zarr.json", "its checksum does not match")
    if "mintmc_run" in attributes:
        _check_record(path / "zarr.json", attributes["mintmc_run"])
    result: dict[str, Any] = document
    return result


def check_members(path: Path, members: dict[str, Any], record: dict[str, Any] | None) -> dict[str, Grid]:
    """How each array is cut into chunks; refuses names that lead elsewhere and lengths that are not the record's."""
    from mintmc.store.chunks import Grid

    grids = {}
    for name, metadata in members.items():
        parts = name.split("/")
        if len(parts) > 2 or any(part in ("", ".", "..", "zarr.json") or "\0" in part for part in parts):
            raise _damaged(path / "zarr.json", f"it names {name!r}, which no run writes")
        if not (path / name / "zarr.json").is_file():
            raise _damaged(path / name / "zarr.json", "it is missing")
        try:
            if metadata["node_type"] == "group":
                continue
            grids[name] = Grid.of(metadata)
            sizes = dict(zip(metadata.get("dimension_names") or (), metadata["shape"], strict=True))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _damaged(path / "zarr.json", f"{name} cannot be read ({error})") from error
        drawn, chains = (record or {}).get("drawn", 0), (record or {}).get("chains", _MOST_COUNTED)
        if sizes.get("draw", drawn) != drawn or sizes.get("chain", 0) > chains:
            raise _damaged(path / "zarr.json", f"{name} has the sizes {sizes}, but there are {drawn} draws")
    return grids


def check_only_files(path: Path) -> None:
    """Refuse a store with anything in it but files and folders: what is written to it must stay in it."""
    for folder, folders, files in os.walk(path, followlinks=False):
        for name in (*folders, *files):
            kind = os.lstat(os.path.join(folder, name)).st_mode
            if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                raise ValueError(f"out must hold files and folders only, got {Path(folder) / name}, a link or device")


def _check_record(path: Path, text: Any) -> None:
    try:
        record = json.loads(text)
        counts = {name: record[name] for name in _COUNTS if name in record}
        is_whole = isinstance(record["drawn"], int) and isinstance(record["number"], int)
    except (TypeError, ValueError, KeyError, RecursionError) as error:
        raise _damaged(path, f"what it says of the run cannot be read ({error})") from error
    if not is_whole or not all(type(count) is int and 0 <= count < _MOST_COUNTED for count in counts.values()):
        raise _damaged(path, f"it counts {counts}")


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _damaged(path: Path, why: str) -> ValueError:
    return ValueError(f"{path} is damaged: {why}")
