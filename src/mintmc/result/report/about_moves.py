"""Of the moves: how many were accepted, how noisy their ratios were, and how they compare with all data."""

from __future__ import annotations

from typing import Any

import numpy as np

from mintmc.markup import Html, element, joined
from mintmc.result.diagnosis import MAX_NOISE
from mintmc.result.law import MAX_BIAS, MAX_SPREAD, audits
from mintmc.result.reading import thinned
from mintmc.result.report import figures
from mintmc.result.report.chosen import Told
from mintmc.result.report.svg import picture
from mintmc.result.report.tables import scrolled

_AUDITED = {
    "rung": "rung",
    "temperature": "T",
    "pairs": "moves",
    "bias": "shift of a mean, sd",
    "spread": "error of the spread",
    "log_ratio_noise": "noise",
    "skewness": "skewness",
    "excess_kurtosis": "excess kurtosis",
    "without_variance": "batches without variance",
    "step_size": "step size",
}
"""What is told of an audit, by what it is called in a table."""


def moves(told: Told) -> Html:
    """Acceptance and noise along the run."""
    stats = thinned(told.tree["sample_stats"], "acceptance_rate", "log_ratio_noise")
    drawn = told.tree["sample_stats"].sizes["draw"]
    rate, noise = (stats[name].transpose("chain", "draw").values for name in ("acceptance_rate", "log_ratio_noise"))
    words = f"Chains accept {rate.mean():.1%} of their moves; the lowest of them {rate.mean(axis=1).min():.1%}."
    shown = [
        picture(figures.along(rate, drawn, "accepted", top=1.05), f"Acceptance along the run. {words}", "Acceptance")
    ]
    known = np.isfinite(noise)
    if not known.any():
        words += " The noise of their log ratios is not known."
    elif not (noise[known] > 0).any():
        words += " Their log ratios have no noise: they are exact, or the sampler makes none."
    else:
        mean = told.diagnosis.numbers["noise_mean"]
        limit = MAX_NOISE if np.nanmax(noise) > MAX_NOISE / 4 else None
        words += f" The variance of their log ratios over batches is {mean:.3g} on average (too much: {MAX_NOISE:g})."
        figure = figures.along(noise, drawn, "log-ratio noise", limit)
        shown.append(picture(figure, f"Log-ratio noise along the run, {mean:.3g} on average", "Log-ratio noise"))
    return joined([element("p", words), element("div", *shown, class_="row")])


def audit(told: Told) -> Html:
    """Moves that were decided again, against all data."""
    entries = audits(told.tree)
    if not entries:
        made = told.tree.attrs.get("audit", "") == "null"
        why = "It was not made (audit=False, or the run is not finished)." if made else "There was nothing to audit."
        return element("p", f"{why} An audit compares moves on batches with all data.")
    has_moves = any("bias" in entry for entry in entries)
    what = (
        "Some moves were decided again, against all data. What batches do to the law of the draws is a shift of means, "
        f"in standard deviations (said above {MAX_BIAS:g}), and an error of the spread (said above {MAX_SPREAD:.0%})."
        if has_moves
        else "Steps and gradient noise were judged by curvature and gradients on all data: what they do to the spread "
        f"of the draws (said above {MAX_SPREAD:.0%})."
    )
    named = {name: word for name, word in _AUDITED.items() if any(name in entry for entry in entries)}
    if len(entries) == 1:
        named.pop("rung", None)
    rows = [[_cell(name, entry) for name in named] for entry in entries]
    shown = scrolled(list(named.values()), rows)
    return joined([element("p", what), shown])


def _cell(name: str, entry: dict[str, Any]) -> str:
    value = entry.get(name)
    if value is None:
        return ""
    error = entry.get(f"{name}_error")
    if name == "spread":
        return f"{value:+.1%}" + (f" ± {error:.1%}" if error else "")
    if name == "bias":
        return f"{value:+.3f} ± {error:.3f}"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
