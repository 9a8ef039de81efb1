"""What an experiment leaves behind: a JSON file of numbers and a page that sets claims beside measurements."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class Page:
    """Claims of the paper beside what was measured."""

    name: str
    scale: str
    title: str
    claims: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def claim(self, what: str, method: str, expected: str, measured: str, z: float | None = None) -> None:
        """One line of the table; ``z`` is the distance in standard errors."""
        self.claims.append(
            {"what": what, "method": method, "expected": expected, "measured": measured, "z": z and float(z)}
        )

    def fact(self, name: str, value: float) -> None:
        """A number worth keeping."""
        self.facts[name] = value

    def note(self, text: str) -> None:
        """A sentence below the tables."""
        self.notes.append(text)

    def write(self, out: Path, figure: Path) -> None:
        """Write NAME.json and NAME.md."""
        content = {"experiment": self.name, "scale": self.scale, "claims": self.claims, "facts": self.facts}
        (out / f"{self.name}.json").write_text(json.dumps(content, indent=2) + "\n")
        rows = [
            f"| {c['what'].replace('|', chr(92) + '|')} | {c['method']} | {c['expected']} | {c['measured']} | "
            f"{'' if c['z'] is None else format(c['z'], '+.1f')} |"
            for c in self.claims
        ]
        facts = [f"| {name} | {value:.4g} |" for name, value in self.facts.items()]
        lines = [
            f"# {self.title}",
            f"Scale: {self.scale}. z is the distance from the expected value in Monte Carlo standard errors.",
            f"![{self.title}]({figure.name})",
            "\n".join(["| what | method | expected | measured | z |", "|---|---|---|---|---|", *rows]),
            "\n".join(["| fact | value |", "|---|---|", *facts]),
            *self.notes,
        ]
        (out / f"{self.name}.md").write_text("\n\n".join(lines) + "\n")


def mean_and_error(values: np.ndarray, batches: int = 20) -> tuple[float, float]:
    """Mean of a (chain, draw) array, and its standard error by batch means."""
    chains, draws = values.shape
    length = draws // batches
    means = values[:, : length * batches].reshape(chains * batches, length).mean(axis=1)
    return float(values.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))
