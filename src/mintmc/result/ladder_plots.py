"""A ladder at a glance: whether neighbouring rungs overlap and exchange states, and whether the rings are filled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc import check
from mintmc.result.ladder_diagnosis import MIN_RATE
from mintmc.result.plots import INK, new_figure

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

_DRAWS_SHOWN = 300
_LABELS = 7
"""Of rungs, along one axis: more would overlap."""
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
    check.tree(tree, "ladder")
    figure, axes = new_figure(2, 2, figsize=(10, 7.5))
    for axis, draw in zip(axes.flat, panels(tree["ladder"]), strict=True):
        axis.set_title(draw(axis, tree["ladder"]), fontsize="medium")
    result: Figure = figure
    return result


def panels(ladder: Any) -> tuple[Callable[[Any, Any], str], ...]:
    """What there is to see of a ladder: each draws into axes, and says in a line what it has drawn."""
    return energies, exchange, occupancy if "ring_occupancy" in ladder else replicas, moves


def energies(axis: Any, ladder: Any) -> str:
    """Bands that hold 50, 90 and 99% of each rung's energies."""
    at = _rungs(axis, ladder)
    energy = ladder["energy"].values.reshape(len(at), -1)
    above = energy - energy[0].min()
    for low, high, alpha in _BANDS:
        ends = np.quantile(above, (low, high), axis=1)
        axis.bar(at, ends[1] - ends[0], bottom=ends[0], width=0.7, color=INK["mint"], alpha=alpha, lw=0)
    axis.plot(at, np.median(above, axis=1), "_", ms=18, color=INK["truth"])
    # Energies rise with T, and those that are estimated on batches may lie below the lowest.
    # Even below a power of ten: a tick within that part would sit on the one of 0.
    axis.set_yscale("symlog", linthresh=10.0 ** np.ceil(np.log10(max(float(np.quantile(above[0], 0.95)), 1e-3))))
    axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))  # a tick at 0: a narrow range may have no other
    axis.set(ylabel="energy above rung 0's lowest")
    return "Energies: 50, 90 and 99%, and the median"


def exchange(axis: Any, ladder: Any) -> str:
    """A line for all pairs, a dot for each chain."""
    at = _rungs(axis, ladder)
    name = "jump" if "jump_rate" in ladder else "swap"
    rates = np.nan_to_num(ladder[f"{name}_rate"].values[:-1])
    axis.plot(at[:-1], rates, ".", color=INK["mint"], alpha=0.4)
    axis.plot(at[:-1], rates.mean(axis=1), "-", color=INK["mint"])
    axis.axhline(MIN_RATE, color=INK["paper"], ls="--", lw=1)
    axis.set(ylim=(0, 1.02), xlim=(-0.5, at[-1] + 0.5), ylabel=f"{name}s accepted")
    return f"{name.capitalize()} rate: with the next hotter rung, by chain"


def occupancy(axis: Any, ladder: Any) -> str:
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
    axis.figure.colorbar(image, ax=axis, label="share of the rung's states")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_yticks(1 + _some(len(share)))
    axis.set(xlabel="ring, from low to high energies", ylabel="rung")
    return "Ring occupancy (red: never filled)"


def replicas(axis: Any, ladder: Any) -> str:
    """The way of two replicas of the first chain."""
    replica = ladder["replica"].values[:, 0, :_DRAWS_SHOWN]
    for name, colour in ((0, INK["mint"]), (len(replica) - 1, INK["paper"])):
        axis.plot(np.argmax(replica == name, axis=0), color=colour, lw=1, label=f"replica {name}")
    trips = ladder["round_trips"].values
    axis.set_yticks(_some(len(replica)))
    axis.set(xlabel="draw", ylabel="rung", ylim=(-0.2, 1.2 * len(replica)))
    axis.legend(loc="upper center", ncols=2, frameon=False)
    return f"Replicas of the first chain; {trips.min():.0f} to {trips.max():.0f} round trips a chain"


def moves(axis: Any, ladder: Any) -> str:
    """Acceptance of local moves, and their noise where rungs read batches."""
    at = _rungs(axis, ladder)
    acceptance, noise = ladder["acceptance_rate"].values, ladder["log_ratio_noise"].values
    axis.plot(at, acceptance, ".", color=INK["mint"], alpha=0.4)
    axis.plot(at, acceptance.mean(axis=1), "-", color=INK["mint"])
    axis.set(ylim=(0, 1.02))
    axis.set_ylabel("accepted", color=INK["mint"])
    if (noise > 0).any():
        right = axis.twinx()
        right.plot(at, noise, ".", color=INK["paper"], alpha=0.4)
        right.plot(at, noise.mean(axis=1), "--", color=INK["paper"])
        right.set_ylabel("log-ratio noise", color=INK["paper"])
        right.set_ylim(0, max(4.2, 1.1 * noise.max()))
    return "Local moves, by chain"


def _rungs(axis: Any, ladder: Any) -> np.ndarray:
    """Name the rungs below axes, as many as there is room for; returns where all of them stand."""
    temperature = ladder["temperature"].values
    some = _some(len(temperature))
    axis.set_xticks(some, [f"{k}\n{_degrees(temperature[k])}" for k in some])
    axis.set_xlabel("rung, and its temperature")
    return np.arange(len(temperature))


def _some(count: int) -> np.ndarray:
    """A few of so many, evenly spread, the first and the last among them."""
    step = max(1, -(-(count - 1) // (_LABELS - 1)))
    some = np.arange(0, count, step)
    some[-1] = count - 1 if count > 1 else 0  # the hottest instead of the one before it
    return some


def _degrees(temperature: float) -> str:
    return f"{temperature:.3g}" if temperature < 1000 else f"{temperature:.0e}".replace("e+0", "e").replace("e+", "e")
