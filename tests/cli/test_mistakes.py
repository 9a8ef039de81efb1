"""Every mistake is one line on standard error and exit code 2, and nothing is lost."""

import pytest
from typer.testing import CliRunner

from mintmc.cli import app
from mintmc.store.lock import locked
from mintmc.store.run_store import open_run


def refused(*arguments):
    """The one line that a mistake ends in."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.parametrize("command", ["summary", "diagnose", "plot", "watch", "resume", "plan", "prepare", "sample"])
def test_a_wrong_option(command, here):
    files = {"resume": ["run.zarr", "model.py"], "plan": ["model.py"], "prepare": ["a", "b"], "sample": ["model.py"]}
    said = refused(command, *files.get(command, ["run.zarr"]), "--hepl")
    assert "there is no option --hepl; did you mean --help?" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sampel"], "No such command 'sampel'. Did you mean 'sample'?"),
        (["sample"], "Missing argument"),
        (["sample", "model.py", "--draws", "many"], "--draws"),
        (["sample", "none.py"], "FILE must be a Python file that defines posterior and init, got none.py"),
        (["resume", "none.zarr", "model.py"], "got none.zarr: nothing there"),
        (["summary", "none.zarr"], "got none.zarr: nothing there"),
        (["summary", "model.py"], "path must be a run of mintmc, got model.py: no model.py/zarr.json there"),
        (["prepare", "none.parquet", "out"], "source must be an existing file or folder, got 'none.parquet'"),
        (["diagnose", "none.zarr"], "got none.zarr: nothing there"),
        (["plot", "none.zarr"], "got none.zarr: nothing there"),
        (["diagnose", "run.zarr", "--variables", "men"], "--variables must be among mean, got men; did you mean mean?"),
        (
            ["sample", "model.py", "--out", "none/run.zarr"],
            "--out must be in a folder that is there, got none/run.zarr",
        ),
        (["plot", "run.zarr", "--out", "none/a.png"], "--out must be in a folder that is there, got none/a.png"),
        (["plan", "model.py", "--plot", "none/a.png"], "--plot must be in a folder that is there, got none/a.png"),
        (["plot", "run.zarr", "--out", "a.word"], "word"),
        (["reproduce", "fifty-mode"], "control-noise, got fifty-mode; did you mean fifty-modes?"),
        (["watch", "run.zarr", "--every", "0"], "--every must be above 0, got 0"),
        (["sample", "model.py", "--until-ess", "-1"], "least must be in (0, inf), got -1"),
        (["sample", "model.py", "--until-ess", "9", "--until-rhat", "2"], "must be given alone, got 9 and 2"),
        (["sample", "model.py", "--process-id", "1"], "--coordinator or --distributed must be given with --process-id"),
        (["sample", "model.py", "--settings", "none.toml"], "--settings must be a TOML file, got none.toml"),
    ],
)
def test_a_mistake(arguments, said, here):
    before = sorted(here.rglob("*"))
    assert said in refused(*arguments)
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("draws = 10\ndrawz = 20", "there is no option --drawz; did you mean --draws?"),
        ('sampler = "mint"\nbatchsize = 20', "got batchsize; did you mean --batch-size?"),
        ("draws = ", "Invalid value (at end of document)"),
        ("draws = 1.5", "--draws"),
        ("[mint]\nalpha = 1", "--settings must have no tables, got [mint]"),
    ],
)
def test_a_mistake_in_a_file_of_settings(text, said, here, tmp_path):
    (tmp_path / "run.toml").write_text(text)
    assert said in refused("sample", "model.py", "--settings", tmp_path / "run.toml", "--out", tmp_path / "new.zarr")


def test_a_plan_takes_options_only(here, tmp_path):
    (tmp_path / "run.toml").write_text("chainz = 3")
    said = refused("plan", "model.py", "--settings", tmp_path / "run.toml")
    assert "must have options of this command only, got chainz; did you mean chains?" in said


def test_a_store_that_another_process_writes_to(here):
    with locked(here / "run.zarr"):
        said = refused("resume", "run.zarr", "model.py", "--draws", 200, "--no-progress")
    assert "out must not be in use, got run.zarr, which process " in said
    assert open_run(here / "run.zarr").posterior.sizes["draw"] == 150
