"""A little HTML for pages and notebooks. What a user named is escaped: only what was made here is taken as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def as_html(content: Any) -> Html:
    """HTML as it is, anything else escaped.

    Examples
    --------
    >>> as_html("a < b"), as_html(Html("<b>"))
    ('a &lt; b', '<b>')
    """
    return content if isinstance(content, Html) else Html(escape(str(content)))


def element(name: str, *content: Any, **attributes: Any) -> Html:
    """One element; an attribute that is a word of Python ends in an underscore, one that is None is left out.

    Examples
    --------
    >>> element("p", "R-hat > ", element("b", 1.01), class_="note")
    '<p class="note">R-hat &gt; <b>1.01</b></p>'
    """
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    opening = "".join(f' {key}="{escape(str(value))}"' for key, value in named.items())
    return Html(f"<{name}{opening}>{joined(content)}</{name}>")


def joined(parts: Iterable[Any]) -> Html:
    """One after the other."""
    return Html("".join(map(as_html, parts)))


def listed(items: Iterable[Any], **attributes: Any) -> Html:
    """A list."""
    return element("ul", *(element("li", item) for item in items), **attributes)


def table(head: Sequence[Any], rows: Iterable[Sequence[Any]], **attributes: Any) -> Html:
    """A table whose first column names its rows."""
    top = element("thead", element("tr", *(element("th", name, scope="col") for name in head)))
    lines = (
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in cells))
        for first, *cells in rows
    )
    return element("table", top, element("tbody", *lines), **attributes)


_TONES = {"good": "#3a7d44", "bad": "#c0392b", "plain": "#1b6ca8"}


def card(title: Any, *content: Any, tone: str = "plain") -> Html:
    """A box in a notebook, light or dark: it brings its style along, and no colour of text or ground."""
    style = f"border-left: 4px solid {_TONES[tone]}; padding: 0.3em 0.9em; margin: 0.3em 0; overflow-x: auto"
    return element("div", element("div", title, style="font-weight: 600; margin-bottom: 0.3em"), *content, style=style)
