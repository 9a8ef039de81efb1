"""Breaks the prose of Markdown files into lines of at most 100 characters: ``python tools/wrap_prose.py FILE...``.

Tables, code, headings, pictures and comments stay as they are. `tests/test_docs.py` asks for such lines.
"""

import re
import sys
import textwrap
from pathlib import Path

WIDTH = 100
ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
OTHER = ("#", "|", "![", "    ", "<", ":::")
"""How lines begin that are no prose."""


def filled(text, first="", rest=""):
    """Text in short lines; code in backticks is not broken."""
    whole = re.sub(r"`[^`]+`", lambda code: code[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(
        whole, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace("\0", " ")


def pieces(lines):
    """Lines in groups: of prose, a paragraph or an item at a time, or as they are."""
    group, until = [], None
    for line in lines:
        begins = until is None and line.startswith(("```", "<!--"))
        if begins:
            yield group, True
            group, until = [line], "```" if line.startswith("```") else "-->"
        elif until is not None:
            group.append(line)
        if until is not None:
            if until in line and not (begins and until == "```"):
                yield group, False
                group, until = [], None
        elif not line.strip() or line.startswith(OTHER):
            yield group, True
            yield [line], False
            group = []
        elif ITEM.match(line):
            yield group, True
            group = [line]
        else:
            group.append(line)
    yield group, until is None


def wrapped(text):
    r"""The text of a page, its prose in short lines.

    Examples
    --------
    >>> print(wrapped("- one `two three`\n  four\n\n| a table |"))
    - one `two three` four
    <BLANKLINE>
    | a table |
    """
    found = []
    for group, is_prose in pieces(text.split("\n")):
        if not group:
            continue
        mark = ITEM.match(group[0])
        if not is_prose:
            found += group
        elif mark:
            body = " ".join(line.strip() for line in group)[len(mark[0].strip()) :].strip()
            found.append(filled(body, mark[0], " " * len(mark[0])))
        else:
            found.append(filled(" ".join(line.strip() for line in group)))
    return "\n".join(found)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(wrapped(path.read_text()))
