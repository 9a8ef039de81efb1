"""Figures from results.json: time and data of an effective draw against n, m, d, chains and cores."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

LABELS = {"n": "rows n", "m": "batch m", "d": "parameters d", "chains": "chains", "cores": "cores"}
AXES = tuple(LABELS)


def series(entries: Mapping[str, Any], axis: str) -> dict[str, list[tuple[float, float, float | None]]]:
    """Points (value on the axis, core-seconds of an effective draw, rows of one), by sampler.

    Along n, peers of the rows of logistic regression (d = 20) are beside ours; the other axes have ours alone.
    """
    found: dict[str, list[tuple[float, float, float | None]]] = {}
    for line in entries.get(f"sweep-{axis}", {"lines": []})["lines"]:
        rows = line["counts"]["rows an effective draw"]
        found.setdefault("mintmc", []).append((line["point"][axis], 1 / line["ours"], rows))
    if axis == "n":
        for name, kept in entries.items():
            line = kept["lines"][0]
            if name.startswith("logistic-") and line["point"].get("d") == 20:
                for peer, rate in line["peers"].items():
                    rows = line["counts"].get(f"rows an effective draw, {peer}")
                    found.setdefault(peer, []).append((line["point"]["n"], 1 / rate, rows))
    return {name: sorted(points) for name, points in found.items()}


def draw(entries: Mapping[str, Any], folder: Path) -> list[Path]:
    """One figure for each axis that was measured: time on the left, data on the right."""
    import matplotlib

    matplotlib.use("Agg")
    made = []
    for axis in AXES:
        points = series(entries, axis)
        if points:
            folder.mkdir(exist_ok=True)
            made.append(_figure(axis, points, folder / f"{axis}.png"))
    return made


def _figure(axis: str, points: Mapping[str, Any], path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, values in points.items():
        at, seconds, rows = zip(*values, strict=True)
        style = {"marker": "o", "lw": 2.5 if name == "mintmc" else 1, "label": name}
        left.plot(at, seconds, **style)
        known = [(x, y) for x, y in zip(at, rows, strict=True) if y and y == y]
        if known:
            right.plot(*zip(*known, strict=True), **style)
    for part, what in ((left, "core-seconds of an effective draw"), (right, "rows read for an effective draw")):
        part.set(xscale="log", yscale="log", xlabel=LABELS[axis], ylabel=what)
        ticks = sorted({value[0] for values in points.values() for value in values})
        part.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        part.minorticks_off()
    left.legend(frameon=False, fontsize=8)
    figure.suptitle("Logistic regression at T = 1: the worst parameter, set-up excluded")
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path
