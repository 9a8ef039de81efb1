"""Progress where there is no terminal: lines in a log, a table in a notebook."""

import json
import sys

import pytest

from mintmc.run import views
from mintmc.run.phases import View
from mintmc.run.progress import Display, view_for


class Clock:
    """A time that goes on as told."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("time.perf_counter", clock)
    return clock


def test_a_file_gets_lines_and_silence_none(capsys):
    assert isinstance(view_for(True), views.Lines)  # what pytest captures is no terminal
    assert type(view_for(False)) is View


def test_a_log_has_a_line_now_and_then(clock, capsys):
    display = Display(True)
    with display:
        phase = display.phase("draws", 1000, later=0)
        for _ in range(50):
            clock.now += 1.5
            display.advance(phase, 10, 0.25)
    lines = capsys.readouterr().out.splitlines()
    # 10 s are seven of these steps; a tenth of the phase takes ten.
    assert len(lines) == 50 // 7 + 1
    assert lines[0] == "draws       7%  70/1,000, 7 draws/s, acceptance 0.25, about 0:02:20 left"
    assert lines[-1].startswith("draws      50%  500/1,000")


def test_a_short_phase_is_one_line(clock, capsys):
    with Display(True) as display:
        phase = display.phase("warm-up", 100)
        for _ in range(100):
            clock.now += 0.001
            display.advance(phase, 1, 0.5)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("warm-up   100%  100/100")


def test_a_phase_that_goes_on_is_the_same():
    display = Display(False)
    first = display.phase("draws", 100)
    display.advance(first, 40)
    assert display.phase("draws", 100, 40) is first
    display.advance(first, 60)
    assert display.phase("draws", 100) is not first


NOTEBOOK_CODE = """
import mintmc
density = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
tree = mintmc.sample(density, mintmc.MetropolisHastings(), init=0.0, draws=200, chains=2)
"""


def test_a_notebook_shows_progress_without_widgets(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NOTEBOOK_CODE)])
    kernel = {"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "this"}
    (tmp_path / "kernels" / "this").mkdir(parents=True)
    (tmp_path / "kernels" / "this" / "kernel.json").write_text(json.dumps({**kernel, "language": "python"}))
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="this")
    client.create_kernel_manager()
    client.km.kernel_spec_manager.kernel_dirs.insert(0, str(tmp_path / "kernels"))
    client.execute()
    outputs = notebook.cells[0].outputs
    assert any("Metropolis" in output.get("text", "") for output in outputs)
    shown = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert len(shown) == 1  # updated in place
    assert '<progress value="400" max="400">' in shown[0]
