"""Pictures that several examples share."""

import numpy as np
from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#2b6cb0", "#dd6b20", "#718096"


def histograms(draws, truth):
    """Draws of every entry of a vector, and what the data were made with."""
    axis = draws.dims[-1]
    figure = Figure(figsize=(2.3 * draws.sizes[axis], 2.4), layout="constrained")
    panels = figure.subplots(1, draws.sizes[axis])
    for axes, name, value in zip(panels, draws[axis].values, truth, strict=True):
        axes.hist(draws.sel({axis: name}).values.ravel(), bins=40, color=BLUE)
        axes.axvline(value, color=ORANGE, linewidth=2, label="truth")
        axes.set(xlabel=name if isinstance(name, str) else f"{axis} {name}", yticks=[])
        axes.locator_params(axis="x", nbins=4)
    panels[0].set_ylabel("draws")
    panels[-1].legend(frameon=False)
    return figure


def band(axes, x, curves, color, label):
    """The mean of curves, an array (chain, draw, x), and the interval of 90% around it."""
    low, high = np.quantile(curves, [0.05, 0.95], axis=(0, 1))
    axes.fill_between(x, low, high, color=color, alpha=0.3, linewidth=0)
    axes.plot(x, curves.mean(axis=(0, 1)), color=color, label=label)
