"""Figures of Matplotlib as part of a page: their colours are the page's, light or dark, and so is their type."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mintmc.markup import Html, element
from mintmc.result.plots import INK

SERIES = ("#1b6ca8", "#c8553d", "#3a7d44", "#8a5fa8", "#b07d0f", "#2a8c82", "#a8476b", "#5f6b7a")
"""Of chains and modes. The page knows a lighter one of each for the dark (``page.css``)."""
OTHERS = "#999999"
"""Of what is not told apart."""
VARIABLES = {
    **{colour: f"var(--series-{number})" for number, colour in enumerate(SERIES)},
    INK["truth"]: "currentColor",
    OTHERS: "var(--others)",
}
"""What a colour is called on the page."""
_STYLE = {
    "axes.edgecolor": INK["truth"],
    "axes.facecolor": "none",
    "axes.labelcolor": INK["truth"],
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.size": 9.0,
    "legend.labelcolor": INK["truth"],
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "mintmc",
    "text.color": INK["truth"],
    "xtick.color": INK["truth"],
    "xtick.major.width": 0.6,
    "ytick.color": INK["truth"],
    "ytick.major.width": 0.6,
}


@contextmanager
def drawing() -> Iterator[None]:
    """Within it figures look like the page's."""
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        yield


def new_figure(height: float = 1.7) -> tuple[Any, Any]:
    """A figure as wide as a phone, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.8, height), layout="constrained")
    return figure, figure.subplots()


def picture(figure: Any, seen: str, *caption: Any) -> Html:
    """A figure with what is to be seen in it in words, for who cannot see it, and a caption for all."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    drawn = _inline(buffer.getvalue(), seen)
    return element("figure", drawn, element("figcaption", *caption))


def _inline(text: str, seen: str) -> Html:
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    # Hundredths of a point are not to be seen.
    text = re.sub(r'( (?:d|x|y)=")([^"]*)"', lambda part: part[1] + re.sub(r"(\.\d\d)\d+", r"\1", part[2]) + '"', text)
    text = re.sub(r"font: ([^;\"]*?)([\d.]+px) [^;\"]*", r"font-size: \2", text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    # A page has many figures, and each names its parts alike.
    own = "f" + hashlib.sha256((seen + text).encode()).hexdigest()[:10]
    text = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{own}-", text)
    opening, _, rest = text.partition(">")
    box = re.search(r'viewBox="[^"]*"', opening)
    label = element("svg", role="img", aria_label=seen).removesuffix("></svg>")
    return Html(f"{label} {box[0] if box else ''}>{rest}")
