"""Tables that scroll by themselves where a screen is narrow, so that the page does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mintmc.markup import Html, element, table


def scrolled(head: Sequence[Any], rows: Iterable[Sequence[Any]], kind: str = "numbers") -> Html:
    """A table of ``numbers``, or of ``words``, which may be long. It can be scrolled by keys, too."""
    about = f"Table: {', '.join(map(str, head))}"
    return element(
        "div", table(head, rows, class_=kind), class_="scroll", tabindex="0", role="region", aria_label=about
    )
