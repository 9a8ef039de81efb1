"""A run as one page of HTML, to show to a colleague: verdict first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mintmc import check
from mintmc.result.report.page import html_page
from mintmc.run.places import record_of_run
from mintmc.store.durable import write
from mintmc.store.provenance import summary
from mintmc.store.run_store import open_run, verify

_MARK = b'<meta name="generator" content="mintmc report">'
"""What every page has, and no file of another kind."""
_HEAD = 2**10
_STORED = ("data", "model", "versions")
"""What a store knows of its run and a tree does not."""


def report(run: Any, out: str | Path = "report.html") -> Path:
    """Write a run as one page of HTML: verdict, summary, traces, ranks, pairs, moves, ladder, modes, audit, settings.

    The page needs nothing but itself: no network, no other file. It reads on a phone, in the dark and on paper. Of many
    parameters the worst by R-hat and ESS are drawn; of long runs every so many draws.

    Parameters
    ----------
    run
        What ``sample`` returned, or the path of a run store, which is then verified as a whole.
    out
        The file to write. An older report is replaced; any other file is left alone.

    Returns
    -------
    pathlib.Path
        Where it is.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(size=1000)
    >>> posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    >>> tree = mintmc.sample(posterior, mintmc.MetropolisHastings(), init=0.0, progress=False)
    >>> import tempfile
    >>> path = mintmc.report(tree, f"{tempfile.mkdtemp()}/report.html")
    >>> "This run" in path.read_text() or "this run" in path.read_text()
    True
    """
    place = _place(out)
    tree, title, record = _read(run)
    page = html_page(tree, title, record)
    write(place, lambda file: file.write(page.encode()))
    return place


def _read(run: Any) -> tuple[Any, str, dict[str, str]]:
    """The tree, how it is called, and what its store knows of it."""
    from xarray import DataTree

    if isinstance(run, DataTree):
        return check.tree(run, "sample_stats", attributes=("sampler",)), f"A run of {run.attrs['sampler']}", {}
    if not isinstance(run, str | os.PathLike):
        wanted = "what mintmc.sample returned, or the path of a run store"
        raise TypeError(f"run must be {wanted}, got {check.shown(run)}")
    path = check.path("run", run)
    record = record_of_run(path)
    verify(path)
    # A density has no data.
    known = summary({name: record[name] for name in _STORED if record.get(name) is not None})
    return open_run(path), path.name, {**known, "machines": "; ".join(record.get("machines", []))}


def _place(out: Any) -> Path:
    """Where to write; refuses what is not ours to replace."""
    place = check.path("out", out)
    if place.is_dir():
        raise ValueError(f"out must be a file, got {check.shown(out)}, a folder")
    if not place.parent.is_dir():
        raise ValueError(f"out must be in a folder that exists, got {check.shown(out)}")
    if os.path.lexists(place):
        if not place.is_file():
            raise ValueError(f"out must be an ordinary file, got {check.shown(out)}")
        with place.open("rb") as file:
            if _MARK not in file.read(_HEAD):
                raise ValueError(f"out must be a new file or a report of mintmc, got {check.shown(out)}: another file")
    return place
