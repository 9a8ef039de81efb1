"""What others wrote works like what is ours: in ``sample``, ``resume``, stores, the command line, and on disk."""

from importlib.metadata import EntryPoint

import numpy as np
import pytest
from scipy.special import expit
from typer.testing import CliRunner

import mintmc
from mintmc.cli import app
from mintmc.cli.options import build_sampler, parse_pairs, samplers
from mintmc.store import encode
from mintmc.store.run_store import open_run
from outside import CauchyWalk, TextRows, WholeBarkerMH
from outside.rows import save
from simulated_tempering import SimulatedTempering
from stores import assert_same
from truth import LIMIT, distance, gaussian_data, gaussian_log_likelihood

N = 300
X = gaussian_data(N)
POSTERIOR = mintmc.Posterior(gaussian_log_likelihood, X)
SAMPLERS = {
    "an acceptance test and a proposal": WholeBarkerMH(CauchyWalk(step_size=0.04)),
    "a proposal in a sampler of ours": mintmc.MINT(100, temperature=5.0, proposal=CauchyWalk()),
    "a coupling over a ladder": SimulatedTempering(mintmc.Ladder([1, 3, 9]), proposal=CauchyWalk()),
}
LISTED = {
    "CauchyWalk": "outside:CauchyWalk",
    "WholeBarkerMH": "outside:WholeBarkerMH",
    "SimulatedTempering": "simulated_tempering:SimulatedTempering",
}
SETTINGS = {"init": 0.0, "warmup": 100, "chains": 2, "seed": 1, "progress": False}


@pytest.fixture
def installed(monkeypatch):
    """As if the package that holds them were installed, and listed them."""
    theirs = [EntryPoint(name, value, encode.GROUP) for name, value in LISTED.items()]
    monkeypatch.setattr(encode, "entry_points", lambda group: (*ENTRIES, *theirs))
    encode.listed.cache_clear()
    yield
    encode.listed.cache_clear()


def test_a_test_and_a_proposal_from_outside_sample_the_posterior():
    sampler = SAMPLERS["an acceptance test and a proposal"]
    tree = mintmc.sample(POSTERIOR, sampler, **SETTINGS | {"draws": 20_000, "chains": 4, "warmup": 0})
    theta, stats = tree.posterior.theta.values, tree["sample_stats"]
    assert distance(theta, 0) < LIMIT
    assert distance(theta**2, 1 / N) < LIMIT
    # Its own statistic is in the tree, and is what decided.
    rate = expit(stats["log_ratio"].values.astype(float))
    np.testing.assert_allclose(stats["acceptance_rate"], rate, rtol=1e-4, atol=1e-6)
    assert distance(stats["accepted"].values - rate, 0) < LIMIT
    assert (stats["data_touched"] == N).all()


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_run_is_stored_and_gone_on_with(name, tmp_path):
    sampler = SAMPLERS[name]
    whole = mintmc.sample(POSTERIOR, sampler, draws=60, **SETTINGS)
    mintmc.sample(POSTERIOR, sampler, draws=25, out=tmp_path / "run.zarr", **SETTINGS)
    resumed = mintmc.resume(tmp_path / "run.zarr", POSTERIOR, draws=60, progress=False)
    assert_same(resumed, whole)


def test_what_is_not_installed_must_be_given_again(tmp_path):
    sampler = SAMPLERS["an acceptance test and a proposal"]
    mintmc.sample(POSTERIOR, sampler, draws=25, out=tmp_path / "run.zarr", **SETTINGS)
    with pytest.raises(ValueError, match=r"sampler must be given: not all of it could be written to .*run.zarr"):
        mintmc.resume(tmp_path / "run.zarr", POSTERIOR, draws=60, progress=False)
    tree = mintmc.resume(tmp_path / "run.zarr", POSTERIOR, sampler=sampler, draws=60, progress=False)
    assert_same(tree, mintmc.sample(POSTERIOR, sampler, draws=60, **SETTINGS))
    with pytest.raises(ValueError, match=r"sampler\.proposal\.step_size was 0\.04, now 0\.05"):
        mintmc.resume(tmp_path / "run.zarr", POSTERIOR, sampler=WholeBarkerMH(CauchyWalk(0.05)), draws=70)


SAME = ("--draws", 85, "--warmup", 20, "--chains", 2)
ENTRIES = tuple(encode.listed().values())
MODEL = """
import numpy as np, mintmc
from simulated_tempering import SimulatedTempering
x = np.random.default_rng(0).normal(3.0, 1.0, size=300)
posterior = mintmc.Posterior(lambda p, x: -0.5 * (x - p["mean"]) ** 2, x)
init = {"mean": 3.0}
"""


def invoke(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments), "--no-progress"])


def test_the_command_line_runs_it_and_goes_on_with_it(tmp_path, request):
    model, out = tmp_path / "model.py", tmp_path / "run.zarr"
    model.write_text(MODEL + "sampler = SimulatedTempering(mintmc.Ladder([1, 2, 4]))")
    result = invoke("sample", model, "--draws", 50, "--warmup", 20, "--chains", 2, "--out", out)
    assert result.exit_code == 0, result.output
    # A file without a sampler: the store says which, and only what is installed is taken from it.
    model.write_text(MODEL)
    result = invoke("resume", out, model, "--draws", 80)
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
    assert result.output.startswith("error: sampler must be given")
    request.getfixturevalue("installed")
    result = invoke("resume", out, model, "--draws", 80)
    assert result.exit_code == 0, result.output
    tree = open_run(out)
    assert tree.attrs["sampler"] == "SimulatedTempering"
    assert tree.posterior.sizes["draw"] == 80
    assert tree["sample_stats"]["rung"].dtype == np.int32
    # The same command says it with options.
    result = invoke("sample", model, "--sampler", "simulatedtempering", "--temperatures", "1,2,4", "--out", out, *SAME)
    assert result.exit_code == 0, result.output
    assert open_run(out).posterior.sizes["draw"] == 85


@pytest.mark.usefixtures("installed")
def test_the_command_line_builds_what_is_installed():
    assert build_sampler("simulatedtempering", parse_pairs(["--hottest", "4", "--rungs", "3"])) == SimulatedTempering(
        mintmc.Ladder([1, 2, 4])
    )
    # It has a proposal of its own, which is not ours to replace, unless one is asked for.
    assert build_sampler("wholebarkermh", {"temperature": 2.0}) == WholeBarkerMH(temperature=2.0)
    walk = mintmc.RandomWalk(step_size=0.3)
    assert build_sampler("wholebarkermh", {"proposal": "random-walk", "step_size": 0.3}) == WholeBarkerMH(walk)
    assert "cauchywalk" not in samplers()


def test_a_package_that_fails_to_import_is_no_reason_to_fail(monkeypatch):
    broken = EntryPoint("Broken", "no_such_package:Broken", encode.GROUP)
    monkeypatch.setattr(encode, "entry_points", lambda group: (*ENTRIES, broken))
    encode.listed.cache_clear()
    try:
        assert build_sampler("mint", {"batch_size": 10, "alpha": 0.5}) == mintmc.MINT(10, alpha=0.5)
        with pytest.raises(ValueError, match=r"sampler must be one of .*got 'broken'"):
            build_sampler("broken", {})
    finally:
        encode.listed.cache_clear()


def test_a_data_source_from_outside_gives_the_draws_of_memory(tmp_path):
    save(tmp_path / "rows.txt", X)
    source = TextRows(tmp_path / "rows.txt")
    assert source.n == N
    on_disk, exact = mintmc.Posterior(gaussian_log_likelihood, source), mintmc.MetropolisHastings()
    rounded = mintmc.Posterior(gaussian_log_likelihood, source.read(0, N))  # as the file has them
    path, settings = tmp_path / "run.zarr", SETTINGS | {"warmup": 0}
    mintmc.sample(on_disk, exact, draws=25, out=path, **settings)
    resumed = mintmc.resume(path, on_disk, draws=40, progress=False)
    assert_same(resumed, mintmc.sample(rounded, exact, draws=40, **settings))
    tree = mintmc.sample(on_disk, mintmc.MINT(100, temperature=5.0), draws=40, **settings)
    assert np.isfinite(tree.tempered_posterior.theta).all()
    # It is known again, and another one is told from it.
    save(tmp_path / "rows.txt", X + 1)
    changed = mintmc.Posterior(gaussian_log_likelihood, TextRows(tmp_path / "rows.txt"))
    with pytest.raises(ValueError, match=r"data was full-.*, now full-"):
        mintmc.resume(path, changed, draws=60, progress=False)
