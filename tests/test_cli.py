import subprocess
import sys

from typer.testing import CliRunner

import mintmc
from mintmc.cli import app
from mintmc.experiments import tied_means


def test_version():
    from importlib.metadata import version

    assert CliRunner().invoke(app, ["--version"]).output.strip() == version("mintmc")


def test_reproduce_ends_with_the_path_of_the_figure(tmp_path, monkeypatch):
    def reproduce(scale, out, progress):
        (out / "tied-means.md").write_text(f"scale {scale}, progress {progress}")
        return out / "tied-means.png"

    monkeypatch.setattr(tied_means, "reproduce", reproduce)
    result = CliRunner().invoke(app, ["reproduce", "tied-means", "--out", str(tmp_path), "--no-progress"])
    assert result.exit_code == 0, result.output
    assert "scale quick, progress False" in result.output
    assert f"figure: {tmp_path / 'tied-means.png'}" in result.output


def test_a_folder_that_cannot_be_written_is_one_line_before_any_work(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = CliRunner().invoke(app, ["reproduce", "tied-means", "--out", str(blocked / "inside"), "--no-progress"])
    assert result.exit_code == 2
    assert result.output.startswith(f"error: cannot write to {blocked / 'inside'}: ")
    assert result.output.count("\n") == 1


def test_an_unknown_experiment_is_refused_with_what_there_is():
    result = CliRunner().invoke(app, ["reproduce", "nothing"])
    assert result.exit_code == 2
    assert "tied-means" in result.output


def test_importing_is_light():
    # What a run needs only at its end, and what takes long to import, is imported then.
    heavy = ("matplotlib", "arviz_stats", "xarray", "scipy.stats", "typer")
    code = f"import sys, mintmc; print([m for m in {heavy!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]", mintmc.__name__
