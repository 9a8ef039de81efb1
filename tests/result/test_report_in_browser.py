"""Reports as people see them: in Chromium, on a phone and on a desk, light and dark."""

import pytest

import made_runs
from browser import CHROMIUM, DESKTOP, MISSING, PHONE, looked_at
from mintmc.result.report.page import html_page

# Nine pages, two browsers: make test-verdicts looks at them.
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=MISSING)]

RUNS = {
    "good": made_runs.good,
    "bad": made_runs.bad,
    "strange": made_runs.strange,
    "hot": lambda: made_runs.good(temperature=31.6),
    "one": lambda: made_runs.good(dim=1, chains=1),
    "many": lambda: made_runs.good(dim=200),
    "swapping": made_runs.swapping,
    "jumping": made_runs.jumping,
    "leaping": made_runs.leaping,
}
READABLE = 4.5
"""Contrast of text and ground that the accessibility guidelines (WCAG 2, AA) ask for; 3 of lines."""


@pytest.fixture(scope="module")
def pages():
    return {name: html_page(make(), f"{name}.zarr") for name, make in RUNS.items()}


@pytest.fixture(scope="module")
def seen(pages, tmp_path_factory):
    return looked_at(pages, tmp_path_factory.mktemp("light"))


@pytest.fixture(scope="module")
def seen_in_the_dark(pages, tmp_path_factory):
    return looked_at({name: pages[name] for name in ("bad", "swapping")}, tmp_path_factory.mktemp("dark"), dark=True)


def test_nothing_is_logged_fetched_or_run(seen):
    found, logged = seen
    assert logged == []
    assert set(found) == {(name, width) for name in RUNS for width in (PHONE, DESKTOP)}
    for page in found.values():
        assert (page["errors"], page["fetched"], page["twice"]) == ([], [], [])
        assert page["scripts"] == 2  # those of the test: no name of a parameter became one


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("name", RUNS)
def test_every_figure_is_seen_whole(seen, name, width):
    page = seen[0][name, width]
    assert page["overflow"] <= 0
    assert page["figures"]
    for figure in page["figures"]:
        assert figure["width"] > 250, figure
        assert figure["height"] > 80, figure
        assert figure["seen"], figure
        assert figure["texts"] >= 2, figure  # both axes are labelled
        assert (figure["cut"], figure["overlapping"]) == ([], []), figure
        assert figure["smallest"] > 4, figure
        assert figure["contrast"] >= READABLE, figure


def test_tables_that_go_on_beyond_the_edge_show_it(seen):
    for page in seen[0].values():
        assert (page["unshaded"], page["split"]) == (0, 0), page["name"]


def test_the_verdict_is_seen_first(seen):
    found = seen[0]
    assert found["bad", PHONE]["heading"] == "This run should not be trusted as it is."
    assert found["good", PHONE]["heading"] == "Nothing speaks against this run."
    assert found["bad", PHONE]["verdict"] != found["good", PHONE]["verdict"]


def test_few_and_many_parameters_are_shown(seen):
    found = seen[0]
    assert found["many", PHONE]["rows"] == 200
    assert len(found["many", PHONE]["figures"]) == 6 * 3 + 6 + 2
    assert len(found["one", PHONE]["figures"]) == 3 + 2
    assert "Pairs" not in found["one", PHONE]["headings"]
    assert {"Ladder", "Modes"}.isdisjoint(found["good", PHONE]["headings"])


def test_it_is_read_in_the_dark(seen_in_the_dark):
    found, logged = seen_in_the_dark
    assert logged == []
    for page in found.values():
        assert page["isDark"]
        assert page["textContrast"] >= READABLE
        assert min(figure["contrast"] for figure in page["figures"]) >= READABLE
        assert min(figure["strokes"] for figure in page["figures"]) >= 3


def test_what_cannot_be_read_would_be_noticed(pages, tmp_path):
    broken = pages["good"].replace("</style>", "svg { color: #eeeeee } p { width: 900px; max-width: none }</style>")
    page = looked_at({"broken": broken}, tmp_path, widths=(PHONE,))[0]["broken", PHONE]
    assert page["overflow"] > 0
    assert page["figures"][0]["contrast"] < READABLE
