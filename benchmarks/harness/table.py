"""Results: what was measured now beside what was measured before, in results.json and RESULTS.md."""

import datetime
import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("mintmc", "jax", "numpy", "numpyro", "blackjax", "pymc", "nutpie", "emcee", "dynesty")
HEADER = """# Results

Written by `make bench` and `make bench-full`; [README.md](README.md) says what each bar means. Ratios
are medians over rounds in which ours and the peer were measured in turn, with the smallest and the
largest of them. Rows that were not run the last time keep their entry, and its date.
"""
COLUMNS = ("row", "workload", "what", "ours", "peer", "C", "ratio (spread)", "bar", "met", "counts", "measured")


def versions() -> dict[str, str]:
    """Of what was measured."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Where it was measured."""
    name = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        named = [text.split(":")[1].strip() for text in information.read_text().splitlines() if "model name" in text]
        name = named[0] if named else name
    return {"cores": os.cpu_count(), "processor": name}


def entry(lines: Sequence[Mapping[str, Any]], seconds: float) -> dict[str, Any]:
    """What is kept of a row: its lines, when and with what they were measured."""
    today = datetime.date.today().isoformat()
    return {"lines": list(lines), "date": today, "seconds": seconds, "versions": versions(), "machine": machine()}


def read(path: Path) -> dict[str, Any]:
    """Entries by row; none if there is no file."""
    return json.loads(path.read_text()) if path.exists() else {}


def merged(before: Mapping[str, Any], now: Mapping[str, Any], order: Sequence[str]) -> dict[str, Any]:
    """New entries in the place of old ones; rows that no longer exist are left out."""
    both = {**before, **now}
    return {name: both[name] for name in order if name in both}


def written(path: Path, entries: Mapping[str, Any]) -> None:
    """Both files, the second beside the first."""
    path.write_text(json.dumps(entries, indent=1) + "\n")
    path.with_name("RESULTS.md").write_text(page(entries))


def page(entries: Mapping[str, Any]) -> str:
    """The table as Markdown, with what was skipped and the versions below it."""
    lines = [HEADER, row_of(COLUMNS), row_of("---" for _ in COLUMNS)]
    for name, kept in entries.items():
        lines += [row_of([name, *cells(line), kept["date"]]) for line in kept["lines"]]
    skipped = sorted({f"- {who}: {why}" for kept in entries.values() for who, why in skips(kept)})
    if skipped:
        lines += ["", "Not measured:", "", *skipped]
    lines += ["", "Measured with:", ""]
    for kept in {json.dumps([e["versions"], e["machine"]]): e for e in entries.values()}.values():
        told = ", ".join(f"{package} {version}" for package, version in kept["versions"].items())
        where = kept["machine"]
        lines.append(f"- {kept['date']}: {where['cores']} cores ({where['processor']}); {told}")
    return "\n".join(lines) + "\n"


def skips(kept: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Peers that were left out, and why."""
    return [(who, why) for line in kept["lines"] for who, why in line["skipped"].items()]


def row_of(cells: Any) -> str:
    """One line of a Markdown table."""
    return f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"


def number(value: float | None) -> str:
    """Three digits, or as many as it has before the point."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def cells(line: Mapping[str, Any]) -> list[str]:
    """Of a line, as they are printed and written."""
    others = {name: value for name, value in line["peers"].items() if name != line["peer"]}
    peer = f"{line['peer']} {number(line['peers'][line['peer']])}" if line["peer"] else ""
    if others:
        peer += f" ({', '.join(f'{name} {number(value)}' for name, value in others.items())})"
    low, high = map(number, line["spread"])
    ratio = f"{number(line['ratio'])} ({low} to {high})" if line["is_ratio"] else f"({low} to {high})"
    met = {True: "yes", False: "**no**", None: ""}[line["met"]]
    counts = ", ".join(f"{name} {count(value)}" for name, value in line["counts"].items())
    what = f"{line['what']}, {line['unit']}"
    return [
        line["workload"],
        what,
        number(line["ours"]),
        peer,
        number(line["limit"]),
        ratio,
        line["bar"] or "",
        met,
        counts,
    ]


def count(value: Any) -> str:
    """A number, or a word."""
    return number(value) if isinstance(value, (int, float)) else str(value)


def shown(name: str, line: Mapping[str, Any]) -> str:
    """A line as it is printed while others are measured."""
    workload, what, ours, peer, limit, ratio, bar, _, counts = cells(line)
    told = [f"{name}: {workload}; {what}: ours {ours}"]
    told += [f"peer {peer}"] if peer else []
    told += [f"C {limit}"] if limit else []
    told += [f"ratio {ratio}" if line["is_ratio"] else ratio]
    told += [f"bar {bar}: {'met' if line['met'] else 'NOT met'}"] if bar else []
    told += [counts] if counts else []
    return "; ".join(told)
