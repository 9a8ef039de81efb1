"""The page: a list of headings and functions."""

from __future__ import annotations

from importlib.resources import files
from string import Template
from typing import Any

from mintmc.markup import Html, as_html, element, joined
from mintmc.result.diagnose import diagnose
from mintmc.result.report.about_draws import chains, pairs, parameters
from mintmc.result.report.about_modes import ladder, modes
from mintmc.result.report.about_moves import audit, moves
from mintmc.result.report.about_run import facts, numbers, settings, verdict
from mintmc.result.report.chosen import Told, choose
from mintmc.result.report.svg import drawing

SECTIONS = (
    ("Parameters", parameters),
    ("Chains", chains),
    ("Pairs", pairs),
    ("Acceptance and noise", moves),
    ("Ladder", ladder),
    ("Modes", modes),
    ("Audit", audit),
    ("Numbers behind the verdict", numbers),
    ("Settings and provenance", settings),
)
"""What a page has below its verdict. A section that has nothing to say is left out."""


def html_page(tree: Any, title: str, record: dict[str, str] | None = None) -> str:
    """A run as one page of HTML; ``record`` is what its store knows of it."""
    told = Told(tree, diagnose(tree), choose(tree), record or {})
    with drawing():
        sections = joined(_section(heading, content(told)) for heading, content in SECTIONS)
    folder = files("mintmc.result.report")
    return Template(folder.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=as_html(title),
        verdict_word="trusted" if told.diagnosis.trusted else "not trusted",
        version=as_html(tree.attrs.get("inference_library_version", "")),
        style=folder.joinpath("page.css").read_text(encoding="utf-8"),
        verdict=verdict(told),
        facts=facts(told),
        sections=sections,
    )


def _section(heading: str, content: Html) -> Html:
    return element("section", element("h2", heading), content) if content else content
