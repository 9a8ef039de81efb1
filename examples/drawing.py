"""Pictures that several examples share."""

import numpy as np
from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#2b6cb0", "#dd6b20", "#718096"


def intervals(draws, truth, title):
    """The interval of 90% of every entry of a vector, its median, and what the data were made with."""
    axis = draws.dims[-1]
    low, middle, high = draws.quantile([0.05, 0.5, 0.95], ("chain", "draw")).transpose("quantile", axis).values
    places = range(len(middle))
    figure = Figure(figsize=(6.4, 0.8 + 0.42 * len(middle)), layout="constrained")
    axes = figure.subplots()
    axes.hlines(places, low, high, color=BLUE, linewidth=3, label="90% of the draws")
    axes.plot(middle, places, "o", color=BLUE, label="median")
    axes.plot(list(truth), places, "x", color=ORANGE, markersize=9, markeredgewidth=2, label="truth")
    axes.set_yticks(places, [str(name) for name in draws[axis].values])
    axes.invert_yaxis()
    axes.set_xlabel(title)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def band(axes, x, curves, color, label):
    """The mean of curves, an array (chain, draw, x), and the interval of 90% around it."""
    low, high = np.quantile(curves, [0.05, 0.95], axis=(0, 1))
    axes.fill_between(x, low, high, color=color, alpha=0.3, linewidth=0)
    axes.plot(x, curves.mean(axis=(0, 1)), color=color, label=label)
