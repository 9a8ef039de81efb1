"""Whether a change made something slower: a few ratios against those that are stored, with a wide margin.

A ratio to a peer, or to C, measured in the same minutes says little of the machine. A line is worse if its ratio is
beyond the stored one by more than the factor ``margin``; a machine that is three times as good at the one than at the
other would be needed to raise a false alarm, or one that is busy again and again: what seems worse is measured anew.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MARGIN = 3.0


def is_worse(ratio: float, stored: float, more_is_better: bool, margin: float = MARGIN) -> bool:
    """By more than the margin; a ratio that is no number is."""
    if not ratio > 0:
        return True
    return ratio < stored / margin if more_is_better else ratio > stored * margin


def judged(
    found: Mapping[str, Mapping[str, Any]], stored: Mapping[str, Mapping[str, Any]], margin: float = MARGIN
) -> list[str]:
    """A line for each that is worse, or that was to be measured and was not."""
    told = []
    for name, kept in stored.items():
        if name not in found:
            told.append(f"{name}: not measured; it was {kept['ratio']:.3g}")
        elif is_worse(found[name]["ratio"], kept["ratio"], kept["more_is_better"], margin):
            bound = "at least" if kept["more_is_better"] else "at most"
            limit = kept["ratio"] / margin if kept["more_is_better"] else kept["ratio"] * margin
            told.append(
                f"{name}: ratio {found[name]['ratio']:.3g}, must be {bound} {limit:.3g} ({kept['ratio']:.3g} is stored)"
            )
    return told


def better(first: Mapping[str, Any], again: Mapping[str, Any]) -> dict[str, Any]:
    """Of lines that were measured twice, the better ones."""
    found = dict(first)
    for name, line in again.items():
        known = found.get(name)
        if known is None or not is_worse(line["ratio"], known["ratio"], line["more_is_better"], margin=1.0):
            found[name] = line
    return found


def stored_from(lines: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What is to be stored of lines, by name."""
    return {
        name: {"ratio": float(f"{line['ratio']:.3g}"), "more_is_better": line["more_is_better"]}
        for name, line in lines.items()
    }


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The stored ratios."""
    if not path.exists():
        raise SystemExit(f"{path.name} is missing: python benchmarks/bench.py --guard --store writes it")
    return json.loads(path.read_text())


def write(path: Path, lines: Mapping[str, Mapping[str, Any]]) -> None:
    """Store the ratios of lines."""
    path.write_text(json.dumps(stored_from(lines), indent=1) + "\n")


def named(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Mapping[str, Any]]:
    """Lines by row and what they measure; those without a peer (none is installed) have no ratio and are left out."""
    return {f"{name}: {line['what']}": line for name, lines in rows.items() for line in lines if line["is_ratio"]}
