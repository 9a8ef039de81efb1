"""Zarr's store on the local disk, with a promise: what was written is on the disk, not on its way there."""

from __future__ import annotations

from pathlib import Path

from zarr.abc.buffer import Buffer
from zarr.storage import LocalStore

from mintmc.durable import sync


class Chunks(LocalStore):
    """A local store that knows which chunks were written since they were last made safe.

    Parameters
    ----------
    root
        Of the store, a directory.
    read_only
        As in Zarr.
    """

    def __init__(self, root: Path | str, *, read_only: bool = False):
        super().__init__(root, read_only=read_only)
        self.unsafe: set[str] = set()

    async def set(self, key: str, value: Buffer) -> None:
        """Write a chunk, or the metadata of an array."""
        await super().set(key, value)
        self.unsafe.add(key)

    def make_safe(self) -> None:
        """Wait until all that was written has reached the disk, and the folders that list it."""
        paths = {self.root / key for key in self.unsafe}
        for path in sorted(paths) + sorted({path.parent for path in paths}):
            sync(path)
        self.unsafe.clear()
