"""A ladder at a glance: whether neighbouring rungs overlap and exchange states, and whether the rings are filled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc import check
from mintmc.result.ladder_diagnosis import MIN_RATE
from mintmc.result.plots import INK
from mintmc.result.rungs import summary

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

_DRAWS_SHOWN = 300
_BANDS = ((0.005, 0.995, 0.2), (0.05, 0.95, 0.35), (0.25, 0.75, 0.6))


def plot_ladder(tree: xarray.DataTree) -> Figure:
    """Energies, exchange rates, ring occupancy (round trips of parallel tempering), acceptance and noise by rung.

    Examples
    --------
    >>> import mintmc
    >>> from mintmc.result.ladder_plots import plot_ladder
    >>> density = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
    >>> sampler = mintmc.EquiEnergy(mintmc.Ladder([1, 3, 9]))
    >>> tree = mintmc.sample(density, sampler, init=0.0, draws=1000, warmup=200, chains=2, progress=False)
    >>> figure = plot_ladder(tree)
    >>> len(figure.axes) >= 4
    True
    """
    import matplotlib.pyplot as plt

    check.tree(tree, "ladder")
    figure, axes = plt.subplots(2, 2, figsize=(10, 7.5), layout="constrained")
    ladder: Any = tree["ladder"]
    rungs = summary(tree)
    at = np.arange(len(rungs.temperature))
    _energies(axes[0, 0], ladder, at)
    _exchange(axes[0, 1], ladder, at)
    if "ring_occupancy" in ladder:
        _occupancy(figure, axes[1, 0], ladder)
    else:
        _replicas(axes[1, 0], ladder)
    _moves(axes[1, 1], ladder, at)
    for axis in (axes[0, 0], axes[0, 1], axes[1, 1]):
        axis.set_xticks(at, [f"{k}\n{value:.3g}" for k, value in enumerate(rungs.temperature)])
        axis.set_xlabel("rung, and its temperature")
    return figure


def _energies(axis: Any, ladder: Any, at: np.ndarray) -> None:
    """Bands that hold 50, 90 and 99% of each rung's energies."""
    energy = ladder["energy"].values.reshape(len(at), -1)
    above = energy - energy[0].min()
    for low, high, alpha in _BANDS:
        ends = np.quantile(above, (low, high), axis=1)
        axis.bar(at, ends[1] - ends[0], bottom=ends[0], width=0.7, color=INK["mint"], alpha=alpha, lw=0)
    axis.plot(at, np.median(above, axis=1), "_", ms=18, color=INK["truth"])
    # Energies rise with T, and those that are estimated on batches may lie below the lowest.
    axis.set_yscale("symlog", linthresh=max(float(np.quantile(above[0], 0.95)), 1e-3))
    axis.set(ylabel="energy above rung 0's lowest", title="Energies: 50, 90 and 99%, and the median")


def _exchange(axis: Any, ladder: Any, at: np.ndarray) -> None:
    """A line for all pairs, a dot for each chain."""
    name = "jump" if "jump_rate" in ladder else "swap"
    rates = np.nan_to_num(ladder[f"{name}_rate"].values[:-1])
    axis.plot(at[:-1], rates, ".", color=INK["mint"], alpha=0.4)
    axis.plot(at[:-1], rates.mean(axis=1), "-", color=INK["mint"])
    axis.axhline(MIN_RATE, color=INK["paper"], ls="--", lw=1)
    title = f"{name.capitalize()} rate: with the next hotter rung, by chain"
    axis.set(ylim=(0, 1.02), xlim=(-0.5, at[-1] + 0.5), ylabel=f"{name}s accepted", title=title)


def _occupancy(figure: Any, axis: Any, ladder: Any) -> None:
    """Share of the hotter rungs' states in each ring."""
    share = ladder["ring_occupancy"].values[1:].mean(axis=1)
    image = axis.imshow(
        np.ma.masked_equal(share, 0),
        cmap="Blues",
        vmin=0,
        aspect="auto",
        origin="lower",
        extent=(-0.5, share.shape[1] - 0.5, 0.5, len(share) + 0.5),
    )
    axis.set_facecolor(INK["paper"])
    figure.colorbar(image, ax=axis, label="share of the rung's states")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_yticks(np.arange(1, len(share) + 1))
    axis.set(xlabel="ring, from low to high energies", ylabel="rung", title="Ring occupancy (red: never filled)")


def _replicas(axis: Any, ladder: Any) -> None:
    """The way of two replicas of the first chain."""
    replica = ladder["replica"].values[:, 0, :_DRAWS_SHOWN]
    for name, colour in ((0, INK["mint"]), (len(replica) - 1, INK["paper"])):
        axis.plot(np.argmax(replica == name, axis=0), color=colour, lw=1, label=f"replica {name}")
    trips = ladder["round_trips"].values
    axis.set_yticks(np.arange(len(replica)))
    axis.set(
        xlabel="draw", ylabel="rung", title=f"Replicas; {trips.min():.0f} to {trips.max():.0f} round trips a chain"
    )
    axis.set_ylim(-0.2, len(replica))
    axis.legend(loc="upper center", ncols=2, frameon=False)


def _moves(axis: Any, ladder: Any, at: np.ndarray) -> None:
    """Acceptance of local moves, and their noise where rungs read batches."""
    acceptance, noise = ladder["acceptance_rate"].values, ladder["log_ratio_noise"].values
    axis.plot(at, acceptance, ".", color=INK["mint"], alpha=0.4)
    axis.plot(at, acceptance.mean(axis=1), "-", color=INK["mint"])
    axis.set(ylim=(0, 1.02), title="Local moves, by chain")
    axis.set_ylabel("accepted", color=INK["mint"])
    if (noise > 0).any():
        right = axis.twinx()
        right.plot(at, noise, ".", color=INK["paper"], alpha=0.4)
        right.plot(at, noise.mean(axis=1), "--", color=INK["paper"])
        right.set_ylabel("log-ratio noise", color=INK["paper"])
        right.set_ylim(0, max(4.2, 1.1 * noise.max()))
