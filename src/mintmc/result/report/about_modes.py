"""Of runs with many modes: the rungs of a ladder, and the modes with their weights."""

from __future__ import annotations

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
    return joined(
        [element("p", words), shown, element("div", *map(_panel(tree["ladder"]), panels(tree["ladder"])), class_="row")]
    )


def _panel(ladder: Any) -> Any:
    def drawn(draw: Any) -> Html:
        figure, axes = new_figure(height=3.0)
        caption = draw(axes, ladder)
        return picture(figure, f"{caption}, of {ladder.sizes['rung']} rungs", caption)

    return drawn


def _degrees(temperature: float) -> str:
    return f"{temperature:,.0f}" if temperature >= 1000 else f"{temperature:.4g}"


def modes(told: Told) -> Html:
    """Modes that leaps know, with the weights that the draws give them."""
    tree = told.tree
    if "modes" not in tree.children:
        return joined([])
    found = tree["modes"]
    count, unseen = found.sizes["mode"], float(tree.attrs.get("modes_unseen", np.nan))
    words = f"{count} mode{'s' if count > 1 else ''} known."
    words += "" if np.isnan(unseen) else f" About {unseen:.1f} more are estimated to be missing."
    weighed = _weights(tree)
    weight, error = weighed["weight"].values, weighed["error"].values
    heavy = np.argsort(-weight, kind="stable")
    lowest = found["energy"].values.min()
    rows = [
        (
            f"mode {k}",
            f"{weight[k]:.4f}",
            "" if np.isnan(error[k]) else f"{error[k]:.4f}",
            f"{found['fitted_weight'].values[k]:.4f}",
            f"{found['energy'].values[k] - lowest:,.2f}",
            f"{int(found['starts'].values[k]):,}",
        )
        for k in map(int, heavy)
    ]
    head = (
        "mode",
        "weight",
        "± standard error",
        "by energy and width",
        "energy above the lowest",
        "descents that ended there",
    )
    parts: list[Any] = [
        element("p", words),
        scrolled(head, rows[:ROWS]),
    ]
    if count > ROWS:
        opening = element("summary", f"The other {count - ROWS} modes, which weigh less")
        rest = scrolled(head, rows[ROWS:])
        parts.append(element("details", opening, rest))
    figure = figures.weights(weight, error, weighed["chain_weight"].values, mode_colours(weight))
    seen = f"Weights of {count} modes, the heaviest {weight[heavy[0]]:.3f}"
    parts.append(
        element(
            "div",
            picture(figure, seen, "Weights: all draws (bars, with standard errors), each chain (dashes)"),
            class_="row",
        )
    )
    return joined(parts)


def _weights(tree: Any) -> Any:
    """Of modes, from every so many draws of a long run."""
    from xarray import DataTree

    labels = thinned(tree["sample_stats"], "mode")
    return mode_weights(
        DataTree.from_dict({draws_group(tree): labels, "sample_stats": labels, "modes": tree["modes"].to_dataset()})
    )
