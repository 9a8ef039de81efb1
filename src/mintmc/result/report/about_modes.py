"""Of runs with many modes: the rungs of a ladder, and the modes with their weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mintmc.markup import Html, element, joined
from mintmc.result.ladder_plots import panels
from mintmc.result.modes import mode_weights
from mintmc.result.reading import draws_group, thinned
from mintmc.result.report import figures
from mintmc.result.report.chosen import Told
from mintmc.result.report.colours import mode_colours
from mintmc.result.report.svg import new_figure, picture
from mintmc.result.report.tables import scrolled
from mintmc.result.rungs import columns, exchange_of, summary

ROWS = 20
"""Modes whose numbers are shown at once."""
_HEAD = (
    "mode",
    "weight",
    "± standard error",
    "by energy and width",
    "energy above the lowest",
    "descents that ended there",
)


def ladder(told: Told) -> Html:
    """Rungs, their temperatures and batches, jumps or swaps between them, and round trips."""
    tree = told.tree
    if "ladder" not in tree.children:
        return joined([])
    rungs, exchange = summary(tree), exchange_of(tree)
    cells = columns(tree, rungs)
    ends = f"from T = {_degrees(rungs.temperature[0])} to {_degrees(rungs.temperature[-1])}"
    words = f"{len(rungs.temperature)} rungs, {ends}, coupled by {exchange}s."
    if "round_trips" in tree["ladder"]:
        trips = tree["ladder"]["round_trips"].values
        words += f" Round trips of each chain: {', '.join(f'{int(trip):,}' for trip in trips)}."
    shown = scrolled(list(cells), zip(*cells.values(), strict=True))
    drawn = [_panel(draw, tree["ladder"]) for draw in panels(tree["ladder"])]
    return joined([element("p", words), shown, element("div", *drawn, class_="row wide")])


def _panel(draw: Callable[[Any, Any], str], ladder: Any) -> Html:
    figure, axes = new_figure(height=3.0)
    caption = draw(axes, ladder)
    return picture(figure, f"{caption}, of {ladder.sizes['rung']} rungs", caption)


def _degrees(temperature: float) -> str:
    return f"{temperature:,.0f}" if temperature >= 1000 else f"{temperature:.4g}"


def modes(told: Told) -> Html:
    """Modes that leaps know, with the weights that the draws give them."""
    tree = told.tree
    if "modes" not in tree.children:
        return joined([])
    count, unseen = tree["modes"].sizes["mode"], float(tree.attrs.get("modes_unseen", np.nan))
    words = f"{count} mode{'s' if count > 1 else ''} known."
    more = "No other is" if unseen < 0.05 else f"About {unseen:.1f} more are"
    words += "" if np.isnan(unseen) else f" {more} estimated to be missing."
    weighed = _weights(tree)
    weight = weighed["weight"].values
    rows = _rows(tree["modes"], weight, weighed["error"].values)
    parts: list[Any] = [element("p", words), scrolled(_HEAD, rows[:ROWS])]
    if count > ROWS:
        opening = element("summary", f"The other {count - ROWS} modes, which weigh less")
        parts.append(element("details", opening, scrolled(_HEAD, rows[ROWS:])))
    figure = figures.weights(weight, weighed["error"].values, weighed["chain_weight"].values, mode_colours(weight))
    caption = "Weights: of all draws (bars, with standard errors), and of each chain (dashes)"
    drawn = picture(figure, f"Weights of {count} modes, the heaviest {weight.max():.3f}", caption)
    return joined([*parts, element("div", drawn, class_="row wide")])


def _rows(found: Any, weight: np.ndarray, error: np.ndarray) -> list[tuple[str, ...]]:
    """A row for each mode, the heaviest first."""
    energy, fitted, starts = (found[name].values for name in ("energy", "fitted_weight", "starts"))
    return [
        (
            f"mode {k}",
            f"{weight[k]:.4f}",
            "" if np.isnan(error[k]) else f"{error[k]:.4f}",
            f"{fitted[k]:.4f}",
            f"{energy[k] - energy.min():,.2f}",
            f"{int(starts[k]):,}",
        )
        for k in map(int, np.argsort(-weight, kind="stable"))
    ]


def _weights(tree: Any) -> Any:
    """Of modes, from every so many draws of a long run."""
    from xarray import DataTree

    labels = thinned(tree["sample_stats"], "mode")
    return mode_weights(
        DataTree.from_dict({draws_group(tree): labels, "sample_stats": labels, "modes": tree["modes"].to_dataset()})
    )
