"""The benchmark's results: merging with what was measured before, and the page."""

import json

from harness import plots, table
from harness.line import at_least, line


def entry(ratio, date="2026-01-01", **extra):
    """An entry as it would have been measured on that day."""
    counts = {"rows an effective draw": 200.0} if "point" in extra else {"rows a step": 2000}
    lines = [line("w", "draws", [ratio], {"NUTS": [1.0]}, unit="a second", bar=at_least(2), counts=counts, **extra)]
    return {**table.entry(lines, 1.0), "date": date}


def test_rows_that_were_not_run_keep_their_entry_and_its_date():
    before = {"a": entry(3, "2025-01-01"), "b": entry(4, "2025-01-01"), "gone": entry(5)}
    now = {"b": entry(6, "2026-02-02")}
    found = table.merged(before, now, order=["b", "a", "new"])
    assert list(found) == ["b", "a"]
    assert (found["a"]["date"], found["b"]["date"]) == ("2025-01-01", "2026-02-02")
    assert found["b"]["lines"][0]["ratio"] == 6


def test_both_files_are_written_and_read_back(tmp_path):
    path = tmp_path / "results.json"
    assert table.read(path) == {}
    table.written(path, {"a": entry(3)})
    assert json.loads(path.read_text())["a"]["lines"][0]["met"] is True
    assert table.read(path) == json.loads(path.read_text())
    assert "| a | w |" in (tmp_path / "RESULTS.md").read_text()


def test_the_page_shows_ratio_spread_bar_and_whether_it_is_met():
    text = table.page({"good": entry(3), "bad": entry(1.5)})
    good, bad = (next(row for row in text.splitlines() if row.startswith(f"| {name} ")) for name in ("good", "bad"))
    assert "| NUTS 1 |" in good
    assert "3 (3 to 3) | at least 2 | yes | rows a step 2,000 | 2026-01-01 |" in good
    assert "**no**" in bad
    # A row of a table has as many cells as its header.
    header = next(row for row in text.splitlines() if row.startswith("| row "))
    assert good.count("|") == bad.count("|") == header.count("|")


def test_the_page_says_what_was_skipped_and_with_what_it_was_measured():
    text = table.page({"a": entry(3, skipped={"emcee": "skipped: emcee is not installed"})})
    assert "- emcee: skipped: emcee is not installed" in text
    assert "python 3." in text


def test_points_of_the_figures_come_from_sweeps_and_along_n_from_peers_too():
    at = {"n": 1000, "d": 20, "m": 100, "chains": 2, "cores": 2}
    entries = {"sweep-n": entry(4, point=at), "logistic-1e3-20": entry(4, point=at), "other": entry(1)}
    assert plots.series(entries, "n") == {"mintmc": [(1000, 0.25, 200.0)], "NUTS": [(1000, 1.0, None)]}
    assert plots.series(entries, "m") == {}


def test_figures_are_drawn(tmp_path):
    at = {"n": 1000, "d": 20, "m": 100, "chains": 2, "cores": 2}
    made = plots.draw({"sweep-m": entry(4, point=at)}, tmp_path / "figures")
    assert [path.name for path in made] == ["m.png"]
    assert made[0].stat().st_size > 0
