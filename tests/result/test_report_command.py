"""``mintmc report``: a store is verified, then written as a page; a mistake is one line."""

import pytest
from typer.testing import CliRunner

import mintmc
from made_tree import normal_posterior
from mintmc.cli import app


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "run.zarr"
    sampler = mintmc.MINT(batch_size=20, temperature=4.0, proposal=mintmc.RandomWalk(0.4))
    settings = {"draws": 300, "warmup": 20, "chains": 2, "progress": False, "audit": False}
    mintmc.sample(normal_posterior(), sampler, init=0.5, out=out, **settings)
    return out


def invoke(*arguments):
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def test_the_command_writes_a_page(stored, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke(stored)
    assert (result.exit_code, result.output) == (0, "report: report.html\n")
    page = (tmp_path / "report.html").read_text()
    assert page.index("This run should not be trusted as it is.") < page.index("not draws of the posterior")
    for told in ("run.zarr", "batch_size", "versions.jax", "machines"):  # of the store, the sampler, its record
        assert told in page
    assert invoke(stored, "--out", "another.html").exit_code == 0
    assert (tmp_path / "another.html").read_text() == page


def test_a_mistake_is_one_line(stored, tmp_path):
    other = tmp_path / "model.py"
    other.write_text("x = 1")
    for arguments, message in (
        ((tmp_path / "none",), "error: path must be a run of mintmc"),
        ((stored, "--out", other), "error: out must be a new file or a report of mintmc"),
        ((stored, "--out", tmp_path / "no" / "r.html"), "error: out must be in a folder that exists"),
    ):
        result = invoke(*arguments)
        assert result.exit_code == 2
        assert result.output.startswith(message)
        assert result.output.count("\n") == 1
    assert other.read_text() == "x = 1"


def test_a_damaged_store_is_refused(stored, tmp_path):
    chunk = next(path for path in (stored / "tempered_posterior" / "theta" / "c").rglob("*") if path.is_file())
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    try:
        result = invoke(stored, "--out", tmp_path / "report.html")
        assert result.exit_code == 2
        assert not (tmp_path / "report.html").exists()
    finally:
        chunk.write_bytes(whole)
