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
_STYLE: dict[Any, Any] = {
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
    """The picture without what a page does not need, in the page's colours and type."""
    text = text[text.index("<svg") :]
    unneeded = r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>|<!--.*?-->"
    text = re.sub(unneeded, "", text, flags=re.DOTALL).replace("xlink:href", "href")
    text = re.sub(r'( (?:d|x|y)=")([^"]*)"', lambda part: f'{part[1]}{_rounded(part[2])}"', text)
    text = re.sub(r"(?<=>)\s+(?=<)", "", text)
    text = re.sub(r"font: [^;\"]*?([\d.]+px) [^;\"]*", r"font-size: \1", text)
    text = re.sub(r"font-family: [^;\"]*(; )?", "", text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    opening, _, rest = _named_apart(text, seen).partition(">")
    box = re.search(r'viewBox="[^"]*"', opening)
    label = element("svg", role="img", aria_label=seen).removesuffix("></svg>")
    return Html(f"{label} {box[0] if box else ''}>{rest}")


def _rounded(numbers: str) -> str:
    """Hundredths of a point are not to be seen."""
    return " ".join(re.sub(r"(\.\d\d)\d+", r"\1", numbers).split())


def _named_apart(text: str, seen: str) -> str:
    """Parts that others refer to under names of their own: a page has many figures, and each names its parts alike."""
    own = "f" + hashlib.sha256((seen + text).encode()).hexdigest()[:8]
    used = dict.fromkeys(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    names = {name: f"{own}-{number}" for number, name in enumerate(used)}
    text = re.sub(r' id="([^"]*)"', lambda part: f' id="{names[part[1]]}"' if part[1] in names else "", text)
    return re.sub(r'(url\(#|href="#)([^)"]+)', lambda part: part[1] + names[part[2]], text)
