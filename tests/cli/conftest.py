"""A small run that commands look at."""

import pytest
from typer.testing import CliRunner

from mintmc.cli import app

MODEL = """
import numpy as np, mintmc
x = np.random.default_rng(0).normal(3.0, 1.0, size=2_000)
posterior = mintmc.Posterior(lambda p, x: -0.5 * (x - p["mean"]) ** 2, x)
init = {"mean": 3.0}
sampler = mintmc.MetropolisHastings(mintmc.RandomWalk(0.05))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model file, and a small run of it."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "model.py").write_text(MODEL)
    command = ["sample", "model.py", "--draws", "150", "--warmup", "20", "--chains", "2", "--no-audit", "--out"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(app, [*command, "run.zarr"])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def here(made, monkeypatch):
    """Its folder, which commands are given in."""
    monkeypatch.chdir(made)
    return made
