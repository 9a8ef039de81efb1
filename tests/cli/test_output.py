"""What commands print: tables, JSON and nothing else, a run from a file of settings, a run that is being made."""

import json
import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import mintmc
from mintmc.cli import app, show
from mintmc.cli.watching import follow, frame
from mintmc.store.lock import locked
from mintmc.store.run_store import open_run

pytestmark = pytest.mark.usefixtures("here")


def output_of(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_run_ends_with_its_table_and_its_verdict():
    shown = output_of("resume", "run.zarr", "model.py", "--no-audit")
    assert shown.index("r_hat") < shown.index("R-hat") < shown.index("draws: run.zarr")
    assert mintmc.summary(open_run("run.zarr")).to_string() in shown


def test_of_many_parameters_the_worst_are_shown(monkeypatch):
    monkeypatch.setattr("mintmc.cli.show._MOST_ROWS", 0)
    shown = output_of("resume", "run.zarr", "model.py", "--no-audit")
    assert shown.startswith("The 10 of 1 parameters that mix worst (mintmc summary run.zarr shows all):\n")


def test_json_and_nothing_else(tmp_path):
    tree = open_run("run.zarr")
    verdict = mintmc.diagnose(tree)
    (tmp_path / "loud.py").write_text(Path("model.py").read_text() + 'print("a model may print")')
    for command in (["diagnose", "run.zarr"], ["resume", "run.zarr", tmp_path / "loud.py", "--no-audit"]):
        found = json.loads(output_of(*command, "--json"))
        assert found["trusted"] == verdict.trusted
        assert found["warnings"] == list(verdict.warnings)
        assert found["numbers"]["ess_bulk"] == pytest.approx(verdict.numbers["ess_bulk"])
    assert (found["draws"], found["out"], found["stopped"]) == (150, "run.zarr", None)
    table = mintmc.summary(tree)
    for shown in (found, json.loads(output_of("summary", "run.zarr", "--json"))):
        assert shown["table"]["mean"]["ess_bulk"] == table.loc["mean", "ess_bulk"]


@pytest.mark.slow
def test_a_plan_as_json():
    found = json.loads(output_of("plan", "model.py", "--draws", 100, "--json"))
    assert found["options"][0]["sampler"] == found["chosen"]
    assert found["n"] == 2000


def test_a_log_is_not_empty_until_the_end(tmp_path):
    command = ["sample", "model.py", "--draws", "100", "--warmup", "20", "--chains", "2", "--no-audit"]
    shown = output_of(*command, "--out", tmp_path / "run.zarr")
    assert "warm-up   100%  40/40" in shown
    assert "draws     100%  200/200" in shown


def test_settings_from_a_file_which_the_command_line_overrides(tmp_path):
    (tmp_path / "run.toml").write_text(
        'sampler = "mint"\nbatch-size = 100\nalpha = 0.5\nstep_size = 0.4\ndraws = 80\nwarmup = 10\nchains = 2\n'
        "progress = false\naudit = false\n"
    )
    out = tmp_path / "run.zarr"
    output_of(
        "sample", "model.py", "--settings", tmp_path / "run.toml", "--draws", 60, "--step-size", 0.3, "--out", out
    )
    tree = open_run(out)
    assert tree.tempered_posterior.sizes["draw"] == 60
    assert json.loads(tree.attrs["sampler_settings"])["proposal"]["step_size"] == 0.3
    assert json.loads(tree.attrs["sampler_settings"])["batch_size"] == 100


def test_a_run_that_stops_when_it_is_good_enough(tmp_path):
    command = ["sample", "model.py", "--draws", "5000", "--warmup", "20", "--chains", "2", "--no-audit", "--until-ess"]
    shown = output_of(*command, 100, "--out", tmp_path / "run.zarr", "--no-progress")
    assert "\nstopped early: ESS is " in shown


def test_plot(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        output_of("plot", "run.zarr", "--out", tmp_path / "trace.png")
    assert (tmp_path / "trace.png").read_bytes().startswith(b"\x89PNG")


def test_a_table_is_not_wider_than_the_terminal(monkeypatch, here):
    table = mintmc.summary(open_run(here / "run.zarr"))
    assert show.as_text(table).count("\n") == len(table)  # in a file a row is a line
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, show.as_text(table).splitlines())) <= 60


def test_watch_shows_a_frame():
    shown = output_of("watch", "run.zarr", "--once")
    assert shown.startswith("run.zarr: MetropolisHastings, 2 chains, finished in 0:00:")
    assert "20 of 20 a chain" in shown
    assert "150 of 150 a chain" in shown
    assert "acceptance of each chain: 0." in shown
    assert "parameters that mix worst" in shown
    assert "This run should not be trusted:" in shown
    assert "So far" not in shown  # it is finished


def test_watch_says_who_is_at_work_and_when_nobody_is(here):
    with locked(here / "run.zarr"):
        found = frame(here / "run.zarr")
        assert not found.is_over  # the audit may be to come
        assert "running for" in str(found.parts[0])
    assert frame(here / "run.zarr").is_over
    with locked(here / "run.zarr"), pytest.MonkeyPatch.context() as patch:
        # It ends while it is looked at: its last frame is still to come.
        patch.setattr("mintmc.cli.watching._about", lambda store: [os.remove(here / "run.zarr.lock")])
        assert not frame(here / "run.zarr").is_over
    nothing = frame(here / "none.zarr")
    assert not nothing.is_over
    assert "waiting for its first save" in str(nothing.parts[0])


@pytest.mark.slow
def test_watch_follows_a_run_to_its_end(tmp_path):
    path = tmp_path / "run.zarr"
    watching = threading.Thread(target=follow, args=(path, 0.2))
    watching.start()
    time.sleep(0.5)
    command = ["sample", "model.py", "--draws", "3000", "--chains", "2", "--no-audit", "--out", str(path)]
    subprocess.run([sys.executable, "-m", "mintmc", *command], check=True, capture_output=True)
    watching.join(30)
    assert not watching.is_alive()
