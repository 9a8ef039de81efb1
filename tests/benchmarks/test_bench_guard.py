"""The guard decides by ratios alone; what it has to notice is made here."""

import json
import math

import pytest

import bench
from harness import guard
from harness.rows import GUARD, ROWS

STORED = {
    "step: over C": {"ratio": 1.9, "more_is_better": False},
    "draws: over NUTS": {"ratio": 100.0, "more_is_better": True},
}


def found(**changed):
    ratios = {"step: over C": 1.9, "draws: over NUTS": 100.0} | changed
    return {name: {"ratio": ratio, "more_is_better": name.startswith("draws")} for name, ratio in ratios.items()}


def test_noise_within_the_margin_is_no_alarm():
    assert guard.judged(found(**{"step: over C": 5.6, "draws: over NUTS": 34.0}), STORED) == []


@pytest.mark.parametrize(
    ("name", "ratio"), [("step: over C", 5.8), ("draws: over NUTS", 33.0), ("draws: over NUTS", math.nan)]
)
def test_what_has_become_three_times_as_slow_is_an_alarm_that_names_it(name, ratio):
    """The broken twins: a step three times as long, a third of the draws, and a ratio that is no number."""
    (told,) = guard.judged(found(**{name: ratio}), STORED)
    assert told.startswith(name)


def test_a_line_that_was_not_measured_is_an_alarm():
    lines = found()
    del lines["draws: over NUTS"]
    (told,) = guard.judged(lines, STORED)
    assert "not measured" in told


def test_of_two_measurements_the_better_counts():
    better = guard.better(found(**{"step: over C": 9.0}), found(**{"draws: over NUTS": 40.0}))
    assert {name: line["ratio"] for name, line in better.items()} == {"step: over C": 1.9, "draws: over NUTS": 100.0}


@pytest.mark.parametrize(("busy", "code"), [(2, 0), (3, 1)])
def test_what_seems_worse_is_measured_again_twice(busy, code, tmp_path, monkeypatch):
    """A machine that was busy for two of three times is no alarm."""
    stored, left = tmp_path / "guard.json", [9.0] * busy + [1.9]
    stored.write_text(json.dumps({"mint-step: over C": STORED["step: over C"]}))
    monkeypatch.setattr(bench, "STORED", stored)
    monkeypatch.setattr(bench, "measured", lambda row, given: lines(left.pop(0)))
    assert bench.main(["--guard", "mint-step"]) == code


def lines(ratio, is_ratio=True):
    return [{"what": "over C", "ratio": ratio, "more_is_better": False, "is_ratio": is_ratio}]


@pytest.mark.parametrize(("ratio", "code"), [(1.9, 0), (6.0, 1)])
def test_the_command_ends_with_1_if_something_is_worse(ratio, code, tmp_path, monkeypatch, capsys):
    """Nothing is timed: what a process of its own would have found is given."""
    stored = tmp_path / "guard.json"
    stored.write_text(json.dumps({"mint-step: over C": STORED["step: over C"]}))
    monkeypatch.setattr(bench, "STORED", stored)
    monkeypatch.setattr(bench, "measured", lambda row, given: lines(ratio))
    assert bench.main(["--guard", "mint-step"]) == code
    assert ("WORSE" in capsys.readouterr().out) == bool(code)


def test_a_line_whose_peer_is_missing_is_not_measured(monkeypatch, tmp_path):
    """Its value stands where the ratio would be, and must not pass for one."""
    monkeypatch.setattr(bench, "STORED", tmp_path / "guard.json")
    bench.STORED.write_text(json.dumps({"mint-step: over C": STORED["step: over C"]}))
    monkeypatch.setattr(bench, "measured", lambda row, given: lines(0.1, is_ratio=False))
    assert bench.main(["--guard", "mint-step"]) == 1


def test_storing_writes_what_is_judged_later(tmp_path, monkeypatch):
    stored = tmp_path / "guard.json"
    monkeypatch.setattr(bench, "STORED", stored)
    monkeypatch.setattr(bench, "measured", lambda row, given: lines(1.9))
    assert bench.main(["--guard", "--store", "mint-step"]) == 0
    assert bench.main(["--guard", "mint-step"]) == 0
    monkeypatch.setattr(bench, "measured", lambda row, given: None)
    assert bench.main(["--guard", "mint-step"]) == 1


def test_every_stored_ratio_is_measured_by_a_row_of_the_guard():
    names = {name.split(":")[0] for name in guard.read(bench.STORED)}
    assert names == {row.name for row in GUARD}


def test_names_of_rows_are_different_and_an_unknown_one_is_refused(capsys):
    assert len({row.name for row in ROWS}) == len(ROWS)
    with pytest.raises(SystemExit):
        bench.main(["no-such-row"])
    assert "got no-such-row" in capsys.readouterr().err


def test_a_row_that_fails_is_said_and_the_others_go_on(tmp_path, monkeypatch, capsys):
    """A process that cannot start must not cost what was measured before."""

    def broken(script, *words, **_):
        if "import" in words:
            raise bench.process.Failed("import failed: no such thing")
        return [{**LINE, "what": words[2]}]

    monkeypatch.setattr(bench, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(bench.process, "measured", broken)
    assert bench.main(["import", "sgld"]) == 1
    assert "no such thing" in capsys.readouterr().err
    assert list(json.loads((tmp_path / "results.json").read_text())) == ["sgld"]


LINE = {
    "workload": "w",
    "unit": "s",
    "ours": 1.0,
    "peer": None,
    "peers": {},
    "limit": None,
    "is_ratio": False,
    "more_is_better": True,
    "ratio": 1.0,
    "spread": [1.0, 1.0],
    "rounds": 1,
    "bar": None,
    "met": None,
    "counts": {},
    "skipped": {},
    "point": {},
}
