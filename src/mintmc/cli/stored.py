"""The tree of a store, checked: what commands read that look at a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mintmc.cli.mistakes import nearest

if TYPE_CHECKING:
    from xarray import DataTree


def tree_of(run: Path, names: list[str] | None = None, option: str = "--variables") -> DataTree:
    """Refuses what is no run, is damaged, has no draws yet, or does not have the parameters that are asked for."""
    from mintmc.result.reading import draws_group
    from mintmc.run.places import record_of_run
    from mintmc.store.run_store import open_run, verify

    record = record_of_run(run)
    if record["drawn"] == 0:
        raise ValueError(f"RUN must have draws, got {run}, which has none yet")
    verify(run)
    tree = open_run(run)
    known = sorted(map(str, tree[draws_group(tree)].data_vars))
    if missing := [name for name in names or () if name not in known]:
        hint = nearest(missing[0], known)
        raise ValueError(f"{option} must be among {', '.join(known)}, got {missing[0]}{hint}")
    return tree
