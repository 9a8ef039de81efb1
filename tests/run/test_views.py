"""Progress where there is no terminal: lines in a log, a table in a notebook."""

import io
import json
import math
import re
import sys

import pytest
from rich.console import Console

from mintmc.run import views
from mintmc.run.phase import Chains, View
from mintmc.run.progress import Display, view_for


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


def shown_by_bars(width, chains):
    """The last frame of a run in a terminal so wide."""
    display, out = Display(False), io.StringIO()
    display._view = views.Bars(Console(file=out, force_terminal=True, width=width, color_system=None))
    with display:
        for name in ("warm-up", "draws"):
            phase = display.phase(name, 8_000_000, later=100)
            display.advance(phase, 1_234_567, 0.25)
            display.tell(name, Chains(1234, 2000, chains, 1.0234))
        out.seek(0)
        out.truncate()
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("count", [1, 4, 8, 100])
def test_bars_fit_a_terminal(width, count):
    shown = shown_by_bars(width, [0.25] * count)
    assert "…" not in shown
    assert "1,234,567/8,000,000" in shown
    assert "left" in shown
    assert "R-hat so far 1.023" in shown
    lines = re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", shown).replace("\r", "").splitlines()
    assert max(map(len, lines)) <= width


def test_a_log_says_whether_chains_agree(clock, capsys):
    with Display(True) as display:
        phase = display.phase("draws", 100)
        display.tell("draws", Chains(10, 50, [0.2, 0.3], 1.0234))
        clock.now += 20
        display.advance(phase, 20, 0.25)
    assert "acceptance 0.25, R-hat 1.023, about" in capsys.readouterr().out


def test_a_notebook_has_a_row_for_each_chain():
    phase = Display(False).phase("draws", 100)
    phase.chains = Chains(10, 50, [0.2, math.nan], math.nan)
    shown = views.as_html([phase])
    assert "chain 1" in shown
    assert "acceptance 0.20" in shown
    assert "nan" not in shown
    phase.chains = Chains(10, 50, [0.2] * 99 + [0.3], 1.5)
    shown = views.as_html([phase])
    assert "acceptance of 100 chains 0.20 to 0.30, R-hat so far 1.500" in shown


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
    assert shown[0].count('<progress value="200" max="200">') == 2  # one for each chain
