"""What a report says, without looking at it; ``test_report_in_browser.py`` looks."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import made_runs
import mintmc
from mintmc.result.report.chosen import choose
from mintmc.result.report.page import html_page


def page(tree):
    return html_page(tree, "a run")


def text_of(html):
    """What is read of a page."""

    class Reader(HTMLParser):
        words, hidden = "", 0

        def handle_starttag(self, tag, attrs):
            self.hidden += tag in ("style", "svg")

        def handle_endtag(self, tag):
            self.hidden -= tag in ("style", "svg")

        def handle_data(self, data):
            self.words += "" if self.hidden else f" {data} "

    reader = Reader()
    reader.feed(html)
    return " ".join(reader.words.split())


@pytest.fixture(scope="module")
def good():
    return page(made_runs.good())


def test_the_verdict_comes_first(good):
    assert text_of(good).partition("this run.")[0].endswith("a run Nothing speaks against ")
    tree = made_runs.bad()
    words = text_of(page(tree))
    assert words.index("This run should not be trusted as it is.") < words.index("R-hat") < words.index("Parameters")
    for warning in mintmc.diagnose(tree).warnings:
        assert " ".join(warning.split()) in words


def test_a_page_needs_nothing_but_itself(good):
    assert not re.search(r'(src|href)="(?!#|data:)', good.replace("xlink:", ""))
    assert "@import" not in good
    assert "<script" not in good
    assert not re.search(r"url\((?!#)", good)


def test_the_same_run_is_the_same_page(good):
    assert page(made_runs.good()) == good


def test_names_are_escaped_and_long_ones_kept():
    html = page(made_runs.strange())
    assert "<script>" not in html
    assert "alert(&#x27;x&#x27;)" in html
    assert "x" * 150 in text_of(html)
    assert "it never changed" in text_of(html)


def test_draws_at_another_temperature_are_called_so():
    words = text_of(page(made_runs.good(temperature=31.6)))
    assert "Draws at temperature 31.6, not draws of the posterior." in words
    assert "not draws of the posterior" not in text_of(page(made_runs.good()))


def test_of_many_parameters_the_worst_are_shown():
    theta = np.random.default_rng(0).normal(size=(4, 200, 40))
    theta[..., 17] += 5 * np.arange(4)[:, None]
    tree = made_runs.whole_run(theta)
    assert choose(tree).names[choose(tree).worst[0]] == "beta[17]"
    html = page(tree)
    assert "The 12 worst of 40 by R-hat and ESS" in text_of(html)
    assert "All 40 parameters" in text_of(html)
    drawn = re.findall(r'aria-label="Trace of ([^,]*),', html)
    assert (len(drawn), drawn[0]) == (6, "beta[17]")


def test_rows_of_the_table_are_of_their_own_parameter():
    init = {"b": np.zeros((2, 3), np.float32), "a": np.zeros(2, np.float32)}
    offsets = 10 * np.arange(8)  # leaves of a dict are in the order of its keys
    tree = made_runs.whole_run(np.random.default_rng(0).normal(size=(4, 300, 8)) + offsets, init=init)
    draws = choose(tree)
    assert draws.names == ["a[0]", "a[1]", "b[0, 0]", "b[0, 1]", "b[0, 2]", "b[1, 0]", "b[1, 1]", "b[1, 2]"]
    np.testing.assert_allclose(draws.values.mean(axis=(0, 1)), draws.table["mean"], rtol=1e-5)
    np.testing.assert_allclose(draws.table["mean"], offsets, atol=0.2)  # 1,200 draws of deviation 1: 7 errors


def test_long_runs_are_thinned_and_it_is_said():
    tree = made_runs.good(draws=100_000, dim=2, chains=2)
    html = page(tree)
    assert len(html) < 1_000_000
    assert "of every second draw" in text_of(html)


def test_a_ladder_and_modes_are_told():
    words = text_of(page(made_runs.swapping()))
    assert "12 rungs, from T = 1 to 12,345, coupled by swaps." in words
    assert "Round trips of each chain: 3, 4, 5, 6." in words
    html = page(made_runs.leaping())
    words = text_of(html)
    assert "12 modes known. About 0.1 more are estimated to be missing." in words
    assert "4 of 5 parameters: those that tell the modes apart best" in words
    assert "mode 11" in words
    assert "5 others" in words


def test_what_there_is_not_is_left_out():
    run = made_runs.leaping()
    run.attrs |= {"modes_unseen": 0.01, "data_touched_setup": [0] * 4, "step_size": [[0.5, 1.0], [0.25, 2.0]]}
    run["sample_stats"]["data_touched"][:] = 0  # a density has no data
    page = html_page(run, "leaps.zarr")
    assert "No other is estimated to be missing." in page
    assert ">nan<" not in page
    assert "0.5, 1; 0.25, 2" in page  # chain by chain


def test_one_chain_and_no_audit():
    words = text_of(page(made_runs.good(chains=1, dim=1, audit="null")))
    assert "one chain" in words
    assert "It was not made (audit=False, or the run is not finished)." in words


def test_the_audit_is_told(good):
    assert "+0.010 ± 0.010" in text_of(good)


def test_a_report_replaces_reports_only(tmp_path):
    tree, out = made_runs.good(dim=1), tmp_path / "report.html"
    assert mintmc.report(tree, out) == out
    first = out.read_text()
    assert mintmc.report(tree, str(out)).read_text() == first
    out.write_text("my thesis")
    for place, said in (
        (out, "out must be a new file or a report of mintmc"),
        (tmp_path, "out must be a file"),
        (tmp_path / "no" / "report.html", "out must be in a folder that exists"),
    ):
        with pytest.raises(ValueError, match=said):
            mintmc.report(tree, place)
    assert out.read_text() == "my thesis"
    assert list(tmp_path.iterdir()) == [out]


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"run must be what mintmc.sample returned, or the path of a run store, got 3"):
        mintmc.report(3, tmp_path / "report.html")
    with pytest.raises(ValueError, match=r"must be a run of mintmc, got .*nothing there"):
        mintmc.report(tmp_path / "none.zarr", tmp_path / "report.html")
    tree = made_runs.good(dim=1)
    del tree["sample_stats"]
    with pytest.raises(ValueError, match="tree must have a group sample_stats"):
        mintmc.report(tree, tmp_path / "report.html")
