"""One line of the table: ours, the best peer, the limit of hand-written C, their ratio, its spread, and the bar."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple


class Bar(NamedTuple):
    """What a ratio (or, without anything to compare with, a value) has to be."""

    sense: str  # "at least" or "at most"
    value: float

    def is_met(self, ratio: float) -> bool:
        """Whether it is."""
        return ratio >= self.value if self.sense == "at least" else ratio <= self.value

    def __str__(self) -> str:
        return f"{self.sense} {self.value:,g}"


def at_least(value: float) -> Bar:
    """More is better: draws a second."""
    return Bar("at least", value)


def at_most(value: float) -> Bar:
    """Less is better: seconds a draw."""
    return Bar("at most", value)


def best(peers: Mapping[str, Sequence[float]], more_is_better: bool) -> str | None:
    """The peer of the best median."""
    choose = max if more_is_better else min
    return choose(peers, key=lambda name: median(peers[name])) if peers else None


def line(
    workload: str,
    what: str,
    ours: Sequence[float],
    peers: Mapping[str, Sequence[float]] | None = None,
    *,
    unit: str,
    more_is_better: bool = True,
    limit: Sequence[float] | None = None,
    bar: Bar | None = None,
    counts: Mapping[str, Any] | None = None,
    skipped: Mapping[str, str] | None = None,
    point: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """A line, as JSON holds it.

    ``ours``, every one of ``peers`` and ``limit`` (of C) are values of the same rounds: ratios are taken round by
    round, over the best peer, or over C where there is no peer. Without either the value itself faces the bar.
    """
    peers = dict(peers or {})
    rival = best(peers, more_is_better)
    over = peers[rival] if rival else limit
    ratios = [a / b for a, b in zip(ours, over, strict=True)] if over else list(ours)
    return {
        "workload": workload,
        "what": what,
        "unit": unit,
        "ours": median(ours),
        "peer": rival,
        "peers": {name: median(values) for name, values in peers.items()},
        "limit": median(limit) if limit else None,
        "is_ratio": bool(over),
        "more_is_better": more_is_better,
        "ratio": median(ratios),
        "spread": [min(ratios), max(ratios)],
        "rounds": len(ratios),
        "bar": str(bar) if bar else None,
        "met": bar.is_met(median(ratios)) if bar else None,
        "counts": dict(counts or {}),
        "skipped": dict(skipped or {}),
        "point": dict(point or {}),
    }
