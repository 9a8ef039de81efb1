"""Draws docs/choosing.svg: which sampler to take, as questions from above.

python tools/draw_choosing.py
"""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

OUT = Path(__file__).parents[1] / "docs" / "choosing.svg"
QUESTION, ANSWER = ("#e6f2f1", "#00796b"), ("#fff4e5", "#dd6b20")
INK = "#2d3748"
STEPS = (
    (
        "Must draws be of the posterior\nitself, T = 1?",
        "no",
        "yes",
        "MINT(m, alpha=0.5)\nhot: shows where the modes are",
    ),
    (
        "Several modes, and can they be\nfound (hot chains, descents:\nfind_modes)?",
        "yes",
        "no",
        "Leaps()\nlarge n, regular modes:\nLeaps(control=Taylor(), batch_size=m)",
    ),
    (
        "Several modes that cannot be\nfound, or a continuum?",
        "yes",
        "no: one mode",
        "ParallelTempering(): the evidence\nMINTEE(): many modes, large n",
    ),
    (
        "Few rows, or does curvature\nnot describe the mode?",
        "yes",
        "no",
        "MetropolisHastings(Hamiltonian())\nor NUTS(); without gradients\nMetropolisHastings()",
    ),
    ("Must the law be exact, and\nare bounds known (glm)?", "yes", "no", "ScalableMH(bounds)"),
)
"""Questions from above, what leads to the right and what down, and the answer on the right."""
LAST = "MINT(temperature=1.0, control=Taylor())\nthe cheapest at T = 1: any n, one mode"
ASK = "Not sure? mintmc.sample(posterior, init=...) looks, and takes one that gives T = 1"
LEFT, RIGHT, WIDTH, HEIGHT, PITCH = 1.9, 6.3, 3.5, 1.0, 1.55


def box(axes, x, y, words, colors, width=WIDTH, height=HEIGHT):
    """Words in a frame."""
    fill, edge = colors
    corner = (x - width / 2, y - height / 2)
    axes.add_patch(FancyBboxPatch(corner, width, height, "round,pad=0.05", facecolor=fill, edgecolor=edge))
    axes.text(x, y, words, ha="center", va="center", fontsize=10, color=INK)


def arrow(axes, begin, end, words):
    """From here to there, if the words hold."""
    axes.annotate("", end, begin, arrowprops={"arrowstyle": "-|>", "color": INK})
    patch = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    middle = ((begin[0] + end[0]) / 2, (begin[1] + end[1]) / 2)
    axes.text(*middle, words, ha="center", va="center", fontsize=9, color=INK, bbox=patch)


def draw():
    """The picture."""
    top = PITCH * len(STEPS)
    figure = Figure(figsize=(8.1, 8.8), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(0, 8.2), ylim=(-0.7, top + 1.5), aspect="equal")
    axes.axis("off")
    box(axes, 4.1, top + 1.1, ASK, ANSWER, width=7.9, height=0.5)
    for number, (question, right, down, answer) in enumerate(STEPS):
        y = top - PITCH * number
        box(axes, LEFT, y, question, QUESTION)
        box(axes, RIGHT, y, answer, ANSWER)
        arrow(axes, (LEFT + WIDTH / 2 + 0.07, y), (RIGHT - WIDTH / 2 - 0.07, y), right)
        arrow(axes, (LEFT, y - HEIGHT / 2 - 0.07), (LEFT, y - PITCH + HEIGHT / 2 + 0.07), down)
    box(axes, LEFT, 0, LAST, ANSWER)
    return figure


if __name__ == "__main__":
    matplotlib.rcParams["svg.hashsalt"] = "mintmc"  # the same file from the same picture
    draw().savefig(OUT, metadata={"Date": None})
    print(OUT)
