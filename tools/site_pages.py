"""Pages of the site that are files elsewhere in the repository: README, CONTRIBUTING, CHANGELOG, benchmarks.

A hook of MkDocs (``hooks`` in mkdocs.yml). A page that consists of ``<!-- file: PATH -->`` becomes that file, with its
links turned into links between pages, so that the text stands in one place and its links work in both.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""Files that are pages, by the name that the page has."""
MARK = re.compile(r"<!-- file: (\S+) -->")
LINK = re.compile(r"\]\(([^)#:]+)((?:#[^)]*)?)\)")


def turned(target, folder):
    """Where a link of a file in a folder leads on the site."""
    path = (ROOT / folder / target).resolve().relative_to(ROOT).as_posix()
    return PAGES.get(path, path.removeprefix("docs/"))


def on_page_markdown(markdown, **_):
    """MkDocs calls this with the text of every page."""
    if not (found := MARK.fullmatch(markdown.strip())):
        return markdown
    name = found.group(1)
    folder = Path(name).parent
    return LINK.sub(lambda link: f"]({turned(link[1], folder)}{link[2]})", (ROOT / name).read_text())
