"""Which colour stands for which mode, and the key to it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mintmc.markup import Html, element, joined
from mintmc.result.report.chosen import Told
from mintmc.result.report.svg import OTHERS, SERIES, VARIABLES


def legend(entries: Iterable[tuple[str, str]]) -> Html:
    """Words beside their colours."""
    items = [
        element("li", element("span", class_="key", style=f"background: {VARIABLES[colour]}"), word)
        for word, colour in entries
    ]
    return element("ul", *items, class_="legend")


def mode_colours(weight: np.ndarray) -> list[str]:
    """One for each mode; the lightest of many share one."""
    colours = [OTHERS] * len(weight)
    most = len(SERIES) if len(weight) <= len(SERIES) else len(SERIES) - 1
    for colour, mode in zip(SERIES, sorted(np.argsort(-weight, kind="stable")[:most]), strict=False):
        colours[int(mode)] = colour
    return colours


def colours_of(told: Told) -> tuple[np.ndarray | None, Html]:
    """The colour of each draw (chain, draw) by its mode, and the key; None where no modes are known."""
    tree = told.tree
    if "modes" not in tree.children or "mode" not in tree["sample_stats"] or tree["modes"].sizes["mode"] == 1:
        return None, joined([])
    weight = tree["modes"]["weight"].values
    colours = mode_colours(weight)
    own = [(f"mode {mode}", colour) for mode, colour in enumerate(colours) if colour != OTHERS]
    others = [(f"{colours.count(OTHERS)} others", OTHERS)] if OTHERS in colours else []
    modes = tree["sample_stats"]["mode"].transpose("chain", "draw").values[:, :: told.draws.every]
    return np.asarray(colours)[modes], legend([*own, *others])
