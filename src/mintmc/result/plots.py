"""Pictures of results. Every function draws into given axes, or into new ones, and returns them."""

from __future__ import annotations

from typing import Any

import numpy as np

INK = {"mint": "#1b6ca8", "paper": "#c8553d", "truth": "#222222", "full": "#3a7d44"}
"""One colour for each part, in all figures."""


def new_axes(axes: Any = None) -> Any:
    """The given axes, or those of a new figure."""
    if axes is not None:
        return axes
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(5, 4), layout="constrained")[1]


def new_figure(rows: int = 1, columns: int = 1, **settings: Any) -> tuple[Any, Any]:
    """A figure and its axes. Where notebooks draw inline it is shown by being returned, and by that only."""
    import matplotlib
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(rows, columns, layout="constrained", **settings)
    if "inline" in matplotlib.get_backend():
        plt.close(figure)  # a cell shows all that is open, beside what it returns
    return figure, axes


def contours_plot(
    axes: Any,
    grid_x: np.ndarray,
    grid_y: np.ndarray,
    density: np.ndarray,
    draws: np.ndarray | None = None,
    colour: str = INK["mint"],
    title: str = "",
) -> Any:
    """Draws as dots over the contours that hold 50, 80, 95 and 99% of a density on a grid."""
    if draws is not None:
        axes.plot(draws[:, 0], draws[:, 1], ".", ms=1.5, alpha=0.3, color=colour, rasterized=True)
    ordered = np.sort(density.ravel())[::-1]
    held = np.cumsum(ordered) / ordered.sum()
    levels = sorted(ordered[np.searchsorted(held, p)] for p in (0.5, 0.8, 0.95, 0.99))
    axes.contour(grid_x, grid_y, density.T, levels=levels, colors=INK["truth"], linewidths=0.8)
    axes.set(xlabel=r"$\theta_1$", ylabel=r"$\theta_2$", title=title)
    return axes
