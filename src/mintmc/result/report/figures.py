"""Small figures, each as wide as a phone: what is wrong with a chain should be seen at a glance."""

from __future__ import annotations

from typing import Any

import numpy as np

from mintmc.result.plots import INK
from mintmc.result.report.svg import OTHERS, SERIES, new_figure

POINTS = 1600
"""Of one trace, at most: more would not be seen, and a page should be small."""
PAIRS = 1000
"""Of two parameters against each other."""
CHAINS = len(SERIES)
"""That are drawn; more could not be told apart."""
_BINS = 20
_STRETCHES = 40
_TICKS = 5
"""More, and long numbers below an axis would touch."""


def some_chains(count: int) -> np.ndarray:
    """The chains that are drawn."""
    return np.unique(np.linspace(0, count - 1, min(count, CHAINS)).round().astype(int))


def trace(values: np.ndarray, every: int) -> Any:
    """Draws (chain, draw) one after the other."""
    figure, axes = new_figure()
    chains = some_chains(len(values))
    step = -(-values.shape[1] * len(chains) // POINTS)
    at = np.arange(0, values.shape[1], step)
    for colour, chain in zip(SERIES, chains, strict=False):
        axes.plot(at * every, values[chain, at], color=colour, lw=0.6, alpha=0.85)
    axes.margins(x=0.01)
    axes.set(xlabel="draw", ylabel="value")
    return figure


def ranks(values: np.ndarray) -> Any:
    """How the ranks of each chain's draws among all are spread: evenly, if chains agree."""
    from scipy.stats import rankdata

    figure, axes = new_figure()
    known = np.where(np.isfinite(values), values, -np.inf)
    share = (rankdata(known).reshape(values.shape) - 0.5) / values.size
    edges = np.linspace(0, 1, _BINS + 1)
    axes.axhline(1.0, color=OTHERS, lw=1)
    for colour, chain in zip(SERIES, some_chains(len(values)), strict=False):
        count = np.histogram(share[chain], edges)[0] * _BINS / values.shape[1]
        axes.stairs(count, edges, color=colour, lw=1.1)
    axes.set(xlabel="rank among all draws", ylabel="share / expected", xlim=(0, 1))
    axes.set_ylim(0, max(2.0, axes.get_ylim()[1]))
    axes.set_xticks([0, 0.5, 1], ["lowest", "middle", "highest"])
    return figure


def distribution(values: np.ndarray) -> Any:
    """Histograms of the draws of each chain, and of all."""
    figure, axes = new_figure()
    edges = _edges(values)
    axes.stairs(
        np.histogram(values[np.isfinite(values)], edges, density=True)[0], edges, fill=True, color=OTHERS, alpha=0.3
    )
    for colour, chain in zip(SERIES, some_chains(len(values)), strict=False):
        own = values[chain][np.isfinite(values[chain])]
        axes.stairs(
            np.histogram(own, edges, density=True)[0] if own.size else np.zeros(len(edges) - 1),
            edges,
            color=colour,
            lw=1,
        )
    axes.set(xlabel="value", ylabel="density", yticks=[])
    axes.locator_params(axis="x", nbins=_TICKS)
    return figure


def _edges(values: np.ndarray) -> np.ndarray:
    """Of a histogram; of what never changed, around it."""
    known = values[np.isfinite(values)]
    if not known.size:
        return np.linspace(-1, 1, _BINS + 1)
    low, high = np.quantile(known, (0.001, 0.999))
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        low, high = low - max(abs(low), 1.0) / 2, low + max(abs(low), 1.0) / 2
    return np.linspace(low, high, 2 * _BINS + 1)


def pair(x: np.ndarray, y: np.ndarray, names: tuple[str, str], colours: np.ndarray) -> Any:
    """Draws (number,) of two parameters against each other, each dot in its colour."""
    figure, axes = new_figure(height=3.4)
    for colour in np.unique(colours):
        own = colours == colour
        axes.plot(x[own], y[own], ".", ms=4, color=str(colour), alpha=0.55, mew=0)
    for axis, name in zip((axes.xaxis, axes.yaxis), names, strict=True):
        axis.set_label_text(name, parse_math=False)
    axes.locator_params(nbins=_TICKS)
    return figure


def along(values: np.ndarray, draws: int, label: str, limit: float | None = None, top: float | None = None) -> Any:
    """Means of stretches of draws (chain, draw) along a run, with a line where it becomes too much."""
    figure, axes = new_figure()
    stretches = min(_STRETCHES, values.shape[1])
    parts = np.array_split(np.arange(values.shape[1]), stretches)
    at = (np.arange(stretches) + 0.5) * draws / stretches
    for colour, chain in zip(SERIES, some_chains(len(values)), strict=False):
        axes.plot(at, [_mean(values[chain, part]) for part in parts], color=colour, lw=1.1)
    if limit is not None:
        axes.axhline(limit, color=INK["paper"], ls="--", lw=1)
    axes.set(xlabel="draw", ylabel=label)
    axes.set_ylim(0, top)
    return figure


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else np.nan


def weights(weight: np.ndarray, error: np.ndarray, by_chain: np.ndarray, colours: list[str]) -> Any:
    """Weights of modes (mode,) with their errors, and those of each chain (chain, mode) beside them."""
    figure, axes = new_figure(height=2.6)
    at = np.arange(len(weight))
    axes.bar(at, weight, width=0.7, color=colours, alpha=0.45)
    axes.errorbar(at, weight, np.nan_to_num(error), fmt="none", ecolor=INK["truth"], elinewidth=1)
    for own in by_chain:
        axes.plot(at, own, "_", ms=6, color=INK["truth"], alpha=0.6)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="mode", ylabel="weight")
    axes.set_ylim(bottom=0)
    return figure
