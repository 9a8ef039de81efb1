"""The trace of a run: what every chain did, parameter by parameter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from mintmc.result.reading import draws_group
from mintmc.result.tempered import is_tempered, said
from mintmc.result.worst import labels, stacked

_MOST_ROWS = 12
_MOST_DRAWS = 2000


def plot_trace(tree: Any, var_names: Sequence[str] | None = None) -> Any:
    """Draws of each chain one after the other, beside their distribution; the first twelve parameters. A figure."""
    from matplotlib.figure import Figure

    dataset = tree[draws_group(tree)].to_dataset()
    dataset = dataset[list(var_names)] if var_names else dataset
    step = -(-dataset.sizes["draw"] // _MOST_DRAWS)
    dataset = dataset.isel(draw=slice(None, None, step))
    draws, names = stacked(dataset), list(islice(labels(dataset), _MOST_ROWS))
    figure = Figure(figsize=(9, 0.6 + 1.5 * len(names)), layout="constrained")
    rows = figure.subplots(len(names), 2, squeeze=False, width_ratios=[3, 1])
    numbers = np.arange(draws.shape[1]) * step
    for row, (name, values) in enumerate(zip(names, np.moveaxis(draws, 2, 0), strict=False)):
        trace, beside = rows[row]
        for chain in values:
            trace.plot(numbers, chain, linewidth=0.5, alpha=0.8)
            beside.hist(chain, bins=40, histtype="step", orientation="horizontal", density=True)
        trace.set_ylabel(name)
        beside.sharey(trace)
        beside.tick_params(labelleft=False)
        beside.set_xticks([])
    rows[-1][0].set_xlabel("draw")
    left_out = draws.shape[2] - len(names)
    notes = [said(tree)] * is_tempered(tree) + [f"{left_out:,} more parameters are not shown"] * (left_out > 0)
    if notes:
        figure.suptitle("; ".join(notes), fontsize=9)
    return figure
