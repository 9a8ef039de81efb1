"""The trace of a run: what every chain did, parameter by parameter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc import check
from mintmc.result.plots import new_figure
from mintmc.result.reading import draws_group
from mintmc.result.tempered import is_tempered, said
from mintmc.result.worst import known_names, labels, shortened, stacked

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

_MOST_ROWS = 12
_MOST_DRAWS = 2000


def plot_trace(tree: xarray.DataTree, var_names: Sequence[str] | None = None) -> Figure:
    """Draws of each chain one after the other, beside their distribution; the first twelve parameters.

    Parameters
    ----------
    tree
        What ``sample`` returned.
    var_names
        Parameters, or quantities computed from them, that are drawn; None draws the first of all.

    Examples
    --------
    >>> import mintmc
    >>> density = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
    >>> tree = mintmc.sample(density, mintmc.MetropolisHastings(), init=0.0, draws=100, progress=False)
    >>> len(mintmc.plot_trace(tree).axes)
    2
    """
    dataset = tree[draws_group(check.tree(tree))].to_dataset()
    dataset = dataset if var_names is None else dataset[known_names(tree, var_names)]
    step = -(-dataset.sizes["draw"] // _MOST_DRAWS)
    dataset = dataset.isel(draw=slice(None, None, step))
    draws, names = stacked(dataset), list(islice(labels(dataset), _MOST_ROWS))
    figure, rows = new_figure(len(names), 2, squeeze=False, width_ratios=[3, 1], figsize=(9, 0.8 + 1.5 * len(names)))
    numbers = np.arange(draws.shape[1]) * step
    for row, (name, values) in enumerate(zip(names, np.moveaxis(draws, 2, 0), strict=False)):
        _draw(rows[row], numbers, values)
        rows[row][0].yaxis.set_label_text(shortened(name), parse_math=False)
    rows[-1][0].set_xlabel("draw")
    rows[-1][1].set_xlabel("density, by chain")
    left_out = draws.shape[2] - len(names)
    notes = [said(tree)] * is_tempered(tree) + [f"{left_out:,} more parameters are not shown"] * (left_out > 0)
    if notes:
        figure.suptitle("; ".join(notes), fontsize=9)
    result: Figure = figure
    return result


def _draw(axes: Any, numbers: np.ndarray, values: np.ndarray) -> None:
    """One parameter (chain, draw) into two axes, what is no number left out."""
    trace, beside = axes
    known = values[np.isfinite(values)]
    ends = (known.min(), known.max()) if known.size else (0.0, 1.0)
    for chain in values:
        trace.plot(numbers, chain, linewidth=0.5, alpha=0.8)
        own = chain[np.isfinite(chain)]
        if own.size:
            beside.hist(own, bins=40, range=ends, histtype="step", orientation="horizontal", density=True)
    beside.sharey(trace)
    beside.tick_params(labelleft=False)
    beside.set_xticks([])
