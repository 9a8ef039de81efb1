"""The figure of the 50-mode experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mintmc.experiments.fifty_modes.numbers import modes_of
from mintmc.result.plots import INK

COLOURS = {"ours": INK["mint"], "leaps": INK["full"], "plain": INK["paper"]}
MISSING = "needs scikit-learn:\npip install 'mintmc[kmeans]'"


class Clusters(NamedTuple):
    """What scikit-learn makes of some draws."""

    embedding: np.ndarray  # (draw, 2), t-SNE
    modes: np.ndarray  # (draw,) by largest coordinate
    counts: np.ndarray  # numbers of clusters
    inertia: np.ndarray  # objective of k-means for each

    @property
    def elbow(self) -> int:
        """The number of clusters where the objective is farthest below the line between its ends."""
        x = (self.counts - self.counts[0]) / (self.counts[-1] - self.counts[0])
        y = (self.inertia - self.inertia[-1]) / (self.inertia[0] - self.inertia[-1])
        return int(self.counts[np.argmax(1 - x - y)])


def clusters(theta: np.ndarray, shown: int) -> Clusters | None:
    """t-SNE and k-means of about ``shown`` draws; None without scikit-learn."""
    try:
        from sklearn.cluster import KMeans
        from sklearn.manifold import TSNE
    except ImportError:
        return None
    d = theta.shape[-1]
    some = theta.reshape(-1, d)
    some = some[np.linspace(0, len(some) - 1, min(shown, len(some))).astype(int)].astype(float)
    counts = np.unique(np.linspace(d // 2, 3 * d // 2, 21).astype(int))
    inertia = [KMeans(int(c), n_init=5, random_state=0).fit(some).inertia_ for c in counts]
    embedding = TSNE(perplexity=min(30.0, len(some) / 4), random_state=0).fit_transform(some)
    return Clusters(embedding, modes_of(some), counts, np.array(inertia))


def draw(theta: dict[str, np.ndarray], measured: dict[str, Any], some: Clusters | None, title: str, path: Path) -> Path:
    """Six panels."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(14, 8.4), layout="constrained")
    _first_coordinate(axes[0, 0], theta["ours"])
    _embedding(axes[0, 1], some)
    _elbow(axes[0, 2], some, theta["ours"].shape[-1])
    _traces(axes[1, 0], theta)
    _energies(axes[1, 1], measured["rungs"])
    _weights(axes[1, 2], measured, theta["ours"].shape[-1])
    figure.suptitle(title)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


def _first_coordinate(axis: Any, theta: np.ndarray) -> None:
    d = theta.shape[-1]
    first = theta[..., 0].ravel()
    axis.hist(first, bins=80, color=INK["mint"])
    low, high = (first <= 1).mean(), (first > 1).mean()
    ratio = f"{low / high:.0f} : 1" if high else "none above 1"
    axis.axvline(1, color=INK["truth"], lw=0.8, ls=":")
    axis.set(yscale="log", xlabel=r"$\theta_1$", ylabel="draws (log)")
    axis.set_title(f"T = 1: {ratio}, exact {d - 1} : 1")


def _embedding(axis: Any, some: Clusters | None) -> None:
    axis.set(xticks=[], yticks=[])
    if some is None:
        axis.text(0.5, 0.5, MISSING, ha="center", va="center", transform=axis.transAxes)
        axis.set_title("t-SNE")
        return
    axis.scatter(*some.embedding.T, c=some.modes, cmap="nipy_spectral", s=5, alpha=0.6, lw=0, rasterized=True)
    seen = np.unique(some.modes)
    for mode in seen:
        x, y = np.median(some.embedding[some.modes == mode], axis=0)
        axis.text(x, y, str(mode + 1), fontsize=8, ha="center", va="center", weight="bold")
    axis.set_title(f"t-SNE of {len(some.modes):,} draws at T = 1, {len(seen)} modes")


def _elbow(axis: Any, some: Clusters | None, d: int) -> None:
    axis.set(xlabel="clusters C", ylabel="k-means objective")
    if some is None:
        axis.text(0.5, 0.5, MISSING, ha="center", va="center", transform=axis.transAxes)
        axis.set_title("k-means")
        return
    axis.plot(some.counts, some.inertia, "o-", ms=4, color=INK["mint"])
    axis.axvline(d, color=INK["truth"], ls="--", lw=1, label=f"C = {d}")
    axis.set_title(f"elbow at C = {some.elbow}")
    axis.legend(frameon=False)


def _traces(axis: Any, theta: dict[str, np.ndarray]) -> None:
    names = {"ours": "ours", "leaps": "leaps", "plain": "plain MCMC"}
    for name, label in names.items():
        colour = COLOURS[name]
        modes = modes_of(theta[name][0]) + 1
        at = np.linspace(0, len(modes) - 1, min(len(modes), 1500)).astype(int)
        axis.plot(at, modes[at], ".", ms=4 if name == "plain" else 2, color=colour, label=label)
    axis.set(xlabel="draw", ylabel="mode", ylim=(0, 1.12 * theta["ours"].shape[-1] + 1))
    axis.set_title("mode along one chain at T = 1")
    axis.legend(frameon=False, loc="upper right", ncols=3, markerscale=3)


def _energies(axis: Any, rungs: list[dict[str, Any]]) -> None:
    T = [rung["temperature"] for rung in rungs]
    for name, error, label, colour, shift in (
        ("reference", "reference_error", "parallel tempering, all data", INK["full"], 0.97),
        ("ours", "error", "ours", INK["mint"], 1.03),
    ):
        at, values = [t * shift for t in T], [rung[name] for rung in rungs]
        axis.errorbar(at, values, [rung[error] for rung in rungs], fmt="o", ms=4, capsize=2, color=colour, label=label)
    mean = float(np.mean([rung["reference"] for rung in rungs]))
    axis.set(xscale="log", xlabel="T", ylabel="mean energy / T", ylim=(0.75 * mean, 1.25 * mean))
    axis.set_title("every rung, with one standard error")
    axis.legend(frameon=False, loc="lower left")


def _weights(axis: Any, measured: dict[str, Any], d: int) -> None:
    for name, label in (("modes", "ours"), ("leaps", "leaps")):
        curve = measured[name]["curve"]
        axis.plot(curve["draws"], curve["relative_variance"], color=COLOURS[label], label=f"{label}, chains pooled")
    draws = np.asarray(measured["modes"]["curve"]["draws"])
    axis.plot(draws, (d - 1) / draws, "--", color=INK["truth"], lw=1, label="independent draws")
    axis.set(xscale="log", yscale="log", xlabel="draws", ylabel=r"$d\,\sum_j (w_j - 1/d)^2$")
    axis.set_title("relative variance of the mode weights")
    axis.legend(frameon=False)
