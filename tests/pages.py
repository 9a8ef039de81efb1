"""Pages of the documentation as tests read them: code blocks, what a reader does not see, commands, links."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(?P<kind>\w*)(?: title=\"(?P<title>[^\"]+)\")?$")
HIDDEN = "<!-- setup:"
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")


class Block(NamedTuple):
    """One block of a page: its language, the file that it stands for, its text, and the line before it."""

    kind: str
    title: str | None
    text: str
    line: int


def name_of(page):
    """A page as a user calls it."""
    return page.relative_to(ROOT).as_posix()


def blocks(text):
    """The fenced blocks of a page, and Python that is hidden in a comment, in their order."""
    lines, found, place = text.splitlines(), [], 0
    while place < len(lines):
        fence, is_hidden = FENCE.match(lines[place]), lines[place] == HIDDEN
        if not fence and not is_hidden:
            place += 1
            continue
        end = lines.index("-->" if is_hidden else "```", place + 1)
        body = "\n".join(lines[place + 1 : end]) + "\n"
        kind, title = ("python", None) if is_hidden else (fence["kind"], fence["title"])
        found.append(Block(kind, title, body, place + 1))
        place = end + 1
    return found


def commands(text):
    """The words of every ``mintmc ...`` of the shell blocks of a page."""
    shell = "\n".join(block.text for block in blocks(text) if block.kind == "sh").replace("\\\n", " ")
    split = [shlex.split(line.removeprefix("srun "), comments=True) for line in shell.splitlines()]
    return [words[1:] for words in split if words[:1] == ["mintmc"]]


def links(text):
    """Where the links of a page lead, within the repository; code has none."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    targets = (found["target"] for found in LINK.finditer(re.sub(r"`[^`]*`", "", prose)))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchors(text):
    """The names of a page's headings, as links call them."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.MULTILINE)
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}
