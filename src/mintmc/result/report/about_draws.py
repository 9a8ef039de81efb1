"""Of the draws: the table of parameters, chains one by one, parameters against each other."""

from __future__ import annotations

import math
import re
from itertools import combinations
from typing import Any

import numpy as np

from mintmc.markup import Html, element, joined
from mintmc.result.diagnosis import MAX_RHAT, MIN_ESS_PER_CHAIN
from mintmc.result.report import figures
from mintmc.result.report.chosen import Draws, Told
from mintmc.result.report.colours import chain_colours, colours_of, knows_modes, legend
from mintmc.result.report.svg import SERIES, picture
from mintmc.result.report.tables import scrolled
from mintmc.result.summary import decimals
from mintmc.result.tempered import is_tempered, said
from mintmc.result.worst import shortened

ROWS = 12
"""Parameters whose rows are shown at once."""
DRAWN = 6
"""Parameters whose chains are drawn."""
PAIRED = 4


def parameters(told: Told) -> Html:
    """Means, spreads, ESS and R-hat."""
    draws = told.draws
    count = len(draws.names)
    what = said(told.tree) if is_tempered(told.tree) else "draws of the posterior"
    every = "" if draws.every == 1 else f" Numbers are of every {_th(draws.every)} draw, so ESS is at least that."
    parts: list[Any] = [element("p", f"{_plural(count, 'parameter')}; {what}.{every}")]
    if count <= ROWS:
        return joined([*parts, _table(draws, np.arange(count))])
    parts.append(element("p", f"The {ROWS} worst of {count:,} by R-hat and ESS, the worst first:"))
    parts.append(_table(draws, draws.worst[:ROWS]))
    opening = element("summary", f"All {count:,} parameters (open to see them; they are not printed while closed)")
    parts.append(element("details", opening, _table(draws, np.arange(count))))
    return joined(parts)


def _table(draws: Draws, chosen: np.ndarray) -> Html:
    places = decimals(draws.table)
    columns = [str(name) for name in draws.table.columns]
    chains = len(draws.values)

    def cell(name: str, row: int) -> Any:
        value = draws.number(name, row)
        shown = "" if np.isnan(value) else _written(value, places[name][row])
        limit = MIN_ESS_PER_CHAIN * chains
        is_bad = (name == "r_hat" and value > MAX_RHAT) or (name in ("ess_bulk", "ess_tail") and not value >= limit)
        return element("strong", shown or "none", class_="bad") if is_bad else shown

    rows = [(draws.names[row], *(cell(name, row) for name in columns)) for row in map(int, chosen)]
    return scrolled(("parameter", *map(_heading, columns)), rows)


def _written(value: float, places: int) -> str:
    """With so many decimals; what would begin with more than four zeros, by its power of ten, as precisely.

    Examples
    --------
    >>> _written(-3.19412, 4), _written(2.3172e-7, 9), _written(0.0, 9)
    ('-3.1941', '2.32e-07', '0.000000000')
    """
    if not 0 < abs(value) < 1e-4:
        return f"{value:,.{places}f}"
    return f"{value:.{max(places + math.floor(math.log10(abs(value))), 0)}e}"


def _heading(column: str) -> str:
    """A column of ArviZ in words."""
    interval = re.fullmatch(r"(?:eti|hdi|ci)_?(\d+)_(lb|ub)", column)
    if interval:
        return f"{interval[1]}% {'from' if interval[2] == 'lb' else 'to'}"
    words = {"r_hat": "R-hat", "ess_bulk": "ESS bulk", "ess_tail": "ESS tail", "mcse_mean": "error of mean"}
    return {**words, "mcse_sd": "error of sd"}.get(column, column)


def chains(told: Told) -> Html:
    """Traces, ranks and histograms, chain by chain."""
    draws = told.draws
    count, drawn = len(draws.names), min(len(draws.names), DRAWN)
    which = "" if drawn == count else f"The {drawn} worst of {count:,} parameters by R-hat and ESS. "
    some = figures.some_chains(len(draws.values))
    more = "" if len(some) == len(draws.values) else f" {len(some)} of {len(draws.values)} chains are drawn."
    words = (
        f"{which}Traces have the draws in their order: chains should look alike and wander over the same range. Ranks "
        f"are those of each chain's draws among all draws: lines near 1 are right.{more}"
    )
    keys = legend(chain_colours(len(draws.values)))
    chosen = draws.worst[:drawn] if drawn < count else np.arange(count)
    return joined([element("p", words), keys, *(_parameter(draws, int(k)) for k in chosen)])


def _parameter(draws: Draws, k: int) -> Html:
    name, values = draws.names[k], draws.values[..., k]
    numbers = {"R-hat {:.3f}": draws.number("r_hat", k), "ESS {:,.0f}": draws.number("ess_bulk", k)}
    low, high = (np.nanmin(values), np.nanmax(values)) if np.isfinite(values).any() else (np.nan, np.nan)
    facts = ", ".join(form.format(value) for form, value in numbers.items() if np.isfinite(value))
    facts = facts if high > low else "it never changed"
    about = f"{name}, {len(values)} chains, from {low:.4g} to {high:.4g}; {facts}"
    return element(
        "div",
        element("h3", name, element("small", facts)),
        element(
            "div",
            picture(figures.trace(values, draws.every), f"Trace of {about}", "Trace"),
            picture(figures.ranks(values), f"Ranks of {about}", "Ranks"),
            picture(figures.distribution(values), f"Histogram of {about}", "Distribution"),
            class_="row",
        ),
        class_="parameter",
    )


def pairs(told: Told) -> Html:
    """Parameters against each other, coloured by mode where modes are known, by chain where chains disagree."""
    draws = told.draws
    if len(draws.names) == 1:
        return joined([])
    labels, keys = colours_of(told)
    chosen = _spread_out(draws, labels if knows_modes(told.tree) else None)
    flat = draws.values.reshape(-1, len(draws.names))
    step = -(-len(flat) // figures.PAIRS)
    at = np.arange(0, len(flat), step)
    colours = np.full(len(at), SERIES[0]) if labels is None else labels.reshape(-1)[at]
    count = len(draws.names)
    which = "" if len(chosen) == count else f" {len(chosen)} of {count:,} parameters: {_why(told)}."
    parts: list[Any] = [element("p", f"{len(at):,} draws, two parameters at a time.{which}"), keys]
    drawn = []
    for i, j in combinations(chosen, 2):
        x, y, names = flat[at, i], flat[at, j], (draws.names[i], draws.names[j])
        figure = figures.pair(x, y, (shortened(names[0]), shortened(names[1])), colours)
        drawn.append(picture(figure, f"{names[1]} against {names[0]}; {_correlated(x, y)}", f"{names[0]}, {names[1]}"))
    return joined([*parts, element("div", *drawn, class_="row")])


def _spread_out(draws: Draws, labels: np.ndarray | None) -> np.ndarray:
    """The parameters that are set against each other: those that tell modes apart, or the worst."""
    count = len(draws.names)
    if count <= PAIRED:
        return np.arange(count)
    if labels is None:
        return np.sort(draws.worst[:PAIRED])
    flat, by = draws.values.reshape(-1, count), labels.reshape(-1)
    means = np.stack([flat[by == colour].mean(axis=0) for colour in np.unique(by)])
    within = np.stack([flat[by == colour].std(axis=0) for colour in np.unique(by)]).mean(axis=0)
    apart = np.nan_to_num(means.std(axis=0) / np.maximum(within, np.finfo(float).tiny))
    return np.sort(np.argsort(-apart, kind="stable")[:PAIRED])


def _why(told: Told) -> str:
    return "those that tell the modes apart best" if knows_modes(told.tree) else "the worst by R-hat and ESS"


def _correlated(x: np.ndarray, y: np.ndarray) -> str:
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() < 3 or x[known].std() == 0 or y[known].std() == 0:
        return "no correlation to be told"
    return f"correlation {np.corrcoef(x[known], y[known])[0, 1]:+.2f}"


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _th(number: int) -> str:
    return {1: "single", 2: "second", 3: "third"}.get(number, f"{number:,}th")
