"""Of the run as a whole: whether to trust it, what it was, and what made it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from mintmc.markup import Html, element, joined, listed
from mintmc.result.report.chosen import Told
from mintmc.result.report.tables import scrolled
from mintmc.result.tempered import is_tempered, said

_LONGEST = 400
_ATTRIBUTES = {
    "seed": "seed",
    "tuning_steps": "warm-up steps",
    "thin": "steps from one draw to the next",
    "step_size": "step size of each chain (on a ladder, from rung to rung)",
    "batch_size": "rows a step",
    "warmup_acceptance_rate": "acceptance in warm-up",
    "undefined_moves": "undefined moves",
    "data_touched_setup": "rows read before the draws, by chain",
    "data_touched_audit": "rows read by the audit",
    "inference_library_version": "mintmc",
    "jax_version": "JAX",
}
"""Of a tree, by what they are called on the page."""


def verdict(told: Told) -> Html:
    """Can this run be trusted? In words, first."""
    found, tree = told.diagnosis, told.tree
    parts: list[Any] = [element("h1", found.verdict)]
    if is_tempered(tree):
        words = said(tree)
        words = f"{words[0].upper()}{words[1:]}. Their spread is not that of the posterior."
        parts.append(element("p", words, class_="tempered"))
    if found.warnings:
        parts.append(listed(found.warnings, class_="warnings"))
    if found.notes:
        parts.append(element("div", element("h2", "What it cannot know"), listed(found.notes), class_="notes"))
    tone = "trusted" if found.trusted else "untrusted"
    return element("section", *parts, class_=f"verdict {tone}{' hot' if is_tempered(tree) else ''}")


def facts(told: Told) -> Html:
    """The run in a line of numbers."""
    tree, numbers = told.tree, told.diagnosis.numbers
    stats = tree["sample_stats"]
    shown = {
        "sampler": tree.attrs["sampler"],
        "temperature": f"{numbers['temperature']:.4g}",
        "observations": f"{int(tree.attrs['n']):,}" if tree.attrs["n"] else "none",
        "chains × draws": f"{stats.sizes['chain']} × {stats.sizes['draw']:,}",
        "worst R-hat": _rhat(numbers),
        "lowest ESS": f"{min(numbers['ess_bulk'], numbers['ess_tail']):,.0f}",
        "acceptance": f"{numbers['acceptance']:.1%}",
        "time": _time(sum(float(value) for name, value in tree.attrs.items() if str(name).endswith("_time"))),
    }
    items = (element("div", element("dt", name), element("dd", value)) for name, value in shown.items())
    return element("dl", *items, class_="facts")


def _rhat(numbers: dict[str, float]) -> str:
    if "rhat" not in numbers:
        return "one chain"
    return "none" if np.isnan(numbers["rhat"]) else f"{numbers['rhat']:.3f}"


def numbers(told: Told) -> Html:
    """All numbers that the verdict rests on."""
    return scrolled(("number", "value"), told.diagnosis.words.items())


def settings(told: Told) -> Html:
    """The sampler's settings, and what made the run."""
    tree = told.tree
    chosen = list(_leaves("", json.loads(tree.attrs["sampler_settings"])))
    made = [(word, _word(tree.attrs[name])) for name, word in _ATTRIBUTES.items() if name in tree.attrs]
    times = [
        (f"{name[:-5]}, seconds", f"{float(value):.3g}")
        for name, value in tree.attrs.items()
        if str(name).endswith("_time")
    ]
    parts: list[Any] = [
        element("h3", f"Settings of {tree.attrs['sampler']}"),
        _pairs("setting", chosen),
        element("h3", "Run"),
        _pairs("what", [*made, *times]),
    ]
    if told.record:
        parts += [element("h3", "Store"), _pairs("what", told.record.items())]
    return joined(parts)


def _pairs(head: str, rows: Any) -> Html:
    return scrolled((head, "value"), rows, "words")


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Settings by their dotted names; how they are encoded is nobody's concern."""
    if not isinstance(value, dict) or not value:
        yield name, "None" if value is None else _word(value)
        return
    if name and "kind" in value:
        yield name, str(value["kind"])
    for key, part in value.items():
        if key != "kind":
            yield from _leaves(name if key in ("dict", "tuple") else f"{name}.{key}".lstrip("."), part)


def _word(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        is_nested = any(isinstance(part, list) for part in value)  # by chain, and by rung in each
        return _cut(("; " if is_nested else ", ").join(map(_word, value)))
    return _cut(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
