"""Draws docs/choosing.svg: which sampler to take, as questions from left to right.

    python tools/draw_choosing.py
"""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

OUT = Path(__file__).parents[1] / "docs" / "choosing.svg"
QUESTION, ANSWER = ("#e6f2f1", "#00796b"), ("#fff4e5", "#dd6b20")
BOXES = {
    "start": (1.3, 7.0, 2.2, "Not sure?\nmintmc.sample(posterior, init=...)\nlooks, and chooses", ANSWER),
    "T": (1.3, 4.0, 2.2, "Must the draws be\nof the posterior itself,\nT = 1?", QUESTION),
    "modes": (4.6, 4.0, 2.0, "More than\none mode?", QUESTION),
    "hot": (4.6, 0.55, 2.6, "MINT(m, alpha=0.5)\nhot: shows where modes are", ANSWER),
    "found": (7.9, 6.2, 2.3, "Can they be found\n(hot chains, then descents:\nfind_modes)?", QUESTION),
    "rows": (7.9, 2.3, 2.3, "Many rows, and does\ncurvature describe\nthe mode?", QUESTION),
    "leaps": (12.0, 7.3, 3.9, "Leaps()\nlarge n, regular modes:\nLeaps(control=Taylor(), batch_size=m)", ANSWER),
    "ladder": (12.0, 5.4, 3.9, "ParallelTempering(): a few modes, the evidence\nMINTEE(): many modes, large n", ANSWER),
    "exact": (12.0, 3.75, 3.9, "ScalableMH(bounds)\nexact, where bounds are known (glm has them)", ANSWER),
    "control": (12.0, 2.3, 3.9, "MINT(temperature=1.0, control=Taylor())\nthe cheapest at T = 1", ANSWER),
    "full": (12.0, 0.75, 3.9, "MetropolisHastings(Hamiltonian()) or NUTS()\nno gradient: MetropolisHastings()", ANSWER),
}
"""Middle, width, words and colours of every box."""
ARROWS = (
    ("T", "modes", "yes"),
    ("T", "hot", "no: explore"),
    ("modes", "found", "yes"),
    ("modes", "rows", "no"),
    ("found", "leaps", "yes"),
    ("found", "ladder", "no, or a continuum"),
    ("rows", "exact", "law must be exact"),
    ("rows", "control", "yes"),
    ("rows", "full", "no"),
)
HEIGHT = 1.05


def draw():
    """The picture."""
    figure = Figure(figsize=(11.5, 6.4), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(0, 14.1), ylim=(-0.1, 8.0), aspect="equal")
    axes.axis("off")
    for x, y, width, words, (fill, edge) in BOXES.values():
        corner = (x - width / 2, y - HEIGHT / 2)
        axes.add_patch(FancyBboxPatch(corner, width, HEIGHT, "round,pad=0.06", facecolor=fill, edgecolor=edge))
        axes.text(x, y, words, ha="center", va="center", fontsize=9)
    for source, target, words in ARROWS:
        (x0, y0, w0, *_), (x1, y1, w1, *_) = BOXES[source], BOXES[target]
        begin, end = (x0 + w0 / 2 + 0.08, y0), (x1 - w1 / 2 - 0.08, y1)
        axes.annotate("", end, begin, arrowprops={"arrowstyle": "-|>", "color": "#4a5568"})
        middle = ((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2)
        patch = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        axes.text(*middle, words, ha="center", va="center", fontsize=8, color="#4a5568", bbox=patch)
    return figure


if __name__ == "__main__":
    matplotlib.rcParams["svg.hashsalt"] = "mintmc"  # the same file from the same picture
    draw().savefig(OUT, metadata={"Date": None})
    print(OUT)
