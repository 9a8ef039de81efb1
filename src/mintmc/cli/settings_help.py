"""The settings of a sampler, of its proposal and of its ladder: default and meaning, from the classes themselves."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, fields
from textwrap import wrap
from typing import Any

from mintmc.cli.options import CONTROLS, PROPOSALS, RINGS, sampler_class
from mintmc.ladder.ladder import Ladder

_LADDER = {
    "hottest": "Temperature of the last rung; with --rungs, temperatures grow by one factor.",
    "rungs": "How many there are, the target (T = 1) among them.",
}


def settings_help(word: str) -> str:
    """What ``mintmc sample --sampler WORD --help`` shows."""
    kind = sampler_class(word)
    own = {field.name for field in fields(kind)}
    parts = [f"mintmc sample FILE --sampler {word}\n\n{_first_paragraph(kind)}", _section("Settings", kind)]
    for what, kinds in (("proposal", PROPOSALS), ("control", CONTROLS), ("rings", RINGS)):
        if what in own:
            parts += [_section(f"With --{what} {each}", part, own, what) for each, part in kinds.items()]
    if "ladder" in own:
        parts.append(f"{_section('Ladder', Ladder)}\n{_rows([(f'--{n}', '', t) for n, t in _LADDER.items()])}")
    return "\n\n".join(parts)


def described(kind: Any) -> dict[str, str]:
    """The meaning of every parameter, from a class's numpydoc.

    Examples
    --------
    >>> import mintmc
    >>> described(mintmc.RandomWalk)["target_acceptance"]
    'The mean acceptance rate that adaptation aims at.'
    """
    text = inspect.getdoc(kind) or ""
    found = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", text, re.MULTILINE | re.DOTALL)
    meanings: dict[str, str] = {}
    for names, meaning in re.findall(r"^(\S[^\n]*)\n((?:[ ]+[^\n]*\n?|\n)+)", found[1] if found else "", re.MULTILINE):
        meanings |= {name.strip(): " ".join(meaning.replace("``", "").split()) for name in names.split(",")}
    return meanings


def _section(title: str, kind: Any, taken: Any = (), what: str = "") -> str:
    meanings, rows = described(kind), []
    for field in fields(kind):
        if field.name in ("ladder", "reference"):
            continue
        # Where the sampler has a setting of that name, the part's goes by a longer one.
        name = f"{what}-{field.name}" if field.name in taken else field.name
        rows.append((f"--{name.replace('_', '-')}", _default(field), meanings.get(field.name, "")))
    return f"{title}:\n{_rows(rows)}" if rows else f"{title}: no settings."


def _default(field: Any) -> str:
    if field.default_factory is not MISSING:
        return f"[{type(field.default_factory()).__name__}]"
    if field.default is MISSING:
        return "[needed]"
    return f"[{str(field.default).lower() if field.default in (None, True, False) else field.default}]"


def _rows(rows: list[tuple[str, str, str]]) -> str:
    """Option and default, then the meaning in lines of its own."""
    lines = []
    for option, default, meaning in rows:
        lines.append(f"  {option} {default}".rstrip())
        lines += [f"      {line}" for line in wrap(meaning, 90)]
    return "\n".join(lines)


def _first_paragraph(kind: Any) -> str:
    return " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].replace("``", "").split())
