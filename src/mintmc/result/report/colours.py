"""Which colour stands for which mode or chain, and the key to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mintmc.markup import Html, element, joined
from mintmc.result.diagnosis import MAX_RHAT
from mintmc.result.report.chosen import Told
from mintmc.result.report.figures import some_chains
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


def chain_colours(count: int) -> list[tuple[str, str]]:
    """The chains that are told apart, and their colours."""
    return [(f"chain {chain}", colour) for chain, colour in zip(some_chains(count), SERIES, strict=False)]


def knows_modes(tree: Any) -> bool:
    """Whether a run knows in which of several modes each of its draws is."""
    return "modes" in tree.children and "mode" in tree["sample_stats"] and tree["modes"].sizes["mode"] > 1


def colours_of(told: Told) -> tuple[np.ndarray | None, Html]:
    """The colour of each draw (chain, draw) and the key: by mode, or by chain where they disagree, or None for one."""
    if knows_modes(told.tree):
        return _by_mode(told)
    chains, draws = told.draws.values.shape[:2]
    if not told.diagnosis.numbers.get("rhat", 1.0) > MAX_RHAT:
        return None, joined([])
    colours = np.full(chains, OTHERS)
    colours[some_chains(chains)] = [colour for _, colour in chain_colours(chains)]
    return np.repeat(colours[:, None], draws, axis=1), legend(chain_colours(chains))


def _by_mode(told: Told) -> tuple[np.ndarray, Html]:
    colours = mode_colours(told.tree["modes"]["weight"].values)
    own = [(f"mode {mode}", colour) for mode, colour in enumerate(colours) if colour != OTHERS]
    others = [(f"{colours.count(OTHERS)} others", OTHERS)] if OTHERS in colours else []
    modes = told.tree["sample_stats"]["mode"].transpose("chain", "draw").values[:, :: told.draws.every]
    return np.asarray(colours)[modes], legend([*own, *others])
