import ast
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import mintmc
from mintmc.cli import app
from mintmc.cli.options import build_sampler, parse_pairs, samplers
from mintmc.experiments.tied_means import experiment as tied_means
from mintmc.run.sample import Interrupted
from mintmc.store.run_store import open_run


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


HEAVY = ("matplotlib", "arviz_stats", "xarray", "scipy.stats", "typer", "zarr", "pyarrow", "sklearn")


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        # What takes long to import is imported when it is used.
        ("import mintmc", (*HEAVY, "jax", "numpy", "rich")),
        # What a run needs only at its end is imported then.
        ("import mintmc; mintmc.sample, mintmc.MINT, mintmc.Posterior", HEAVY),
    ],
)
def test_importing_is_light(code, heavy):
    code = f"{code}; import sys; print([m for m in {heavy!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]", mintmc.__name__


def test_every_public_name_is_there_for_people_and_for_checkers_of_types():
    tree = ast.parse(Path(mintmc.__file__).read_text())
    hinted = next(node for node in tree.body if isinstance(node, ast.If))
    named = {alias.name for node in hinted.body for alias in node.names}
    assert named == set(mintmc.__all__) == set(mintmc._HOMES) | {"protocols"}
    assert all(getattr(mintmc, name) is not None for name in mintmc.__all__)
    assert set(mintmc.__all__) <= set(dir(mintmc))
    with pytest.raises(AttributeError, match="module 'mintmc' has no attribute 'mimt'"):
        mintmc.mimt  # noqa: B018


MODEL = """
import numpy as np, mintmc
x = np.random.default_rng(0).normal(3.0, 1.0, size=2_000)
posterior = mintmc.Posterior(lambda p, x: -0.5 * (x - p["mean"]) ** 2, x)
init = {"mean": 3.0}
"""


def invoke(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments), "--no-progress"])


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def test_sample_and_resume(model, tmp_path):
    out = tmp_path / "run.zarr"
    settings = ("--sampler", "mint", "--batch-size", 100, "--alpha", 0.5, "--step-size", 0.4, "--out", out)
    result = invoke("sample", model, *settings, "--draws", 200, "--warmup", 50, "--chains", 2)
    assert result.exit_code == 0, result.output
    assert "ESS" in result.output
    assert result.output.endswith(f"draws: {out}\n")
    result = invoke("resume", out, model, "--draws", 300)
    assert result.exit_code == 0, result.output
    tree = open_run(out)
    assert tree["tempered_posterior"].sizes["draw"] == 300
    # The sampler is the store's, whatever the file says, and settings may stand before the file.
    model.write_text(MODEL + "sampler = mintmc.SGLD(10, step_size=1e-3)")
    more = ("--sampler", "mint", "--batch-size", 100, "--alpha", 0.5, "--step-size", 0.4, model, "--out", out)
    for command in (("resume", out, model, "--draws", 310), ("sample", *more, "--draws", 320, "--chains", 2)):
        result = invoke(*command, *(() if command[0] == "resume" else ("--warmup", 50)))
        assert result.exit_code == 0, result.output
    assert tree.attrs["step_size"] == [pytest.approx(0.4)] * 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sampler", "mint", "--alpha", "0.5"], "mint needs --batch-size"),
        (["--sampler", "mint", "--batch-size", "100", "--alpha", "2"], "alpha must be in (0, 1), got 2"),
        (
            ["--sampler", "mint", "--batch-size", "9999", "--alpha", "0.5"],
            "batch_size must be in [1, n=2000], got 9999",
        ),
        (["--sampler", "mint", "--batchsize", "9", "--alpha", "0.5"], "got batchsize; did you mean --batch-size?"),
        (["--sampler", "nuts"], "sampler must be one of "),
        (["--sampler", "equi-energy"], "ladder must be given by --temperatures"),
        (["--sampler", "equi-energy", "--temperatures", "1,1"], "temperatures must increase strictly from 1"),
        (["--sampler", "mint", "--batch-size", "100", "--alpha", "0.5", "--draws", "0"], "draws must be at least 1"),
        (["--drawz", "5"], "there is no option --drawz; did you mean --draws?"),
        (["--alpha", "0.5"], "--sampler must be given with settings of it, got --alpha 0.5"),
        (["--sampler", "mnit", "--alpha", "0.5"], "got 'mnit'; did you mean mint?"),
        (["--sampler", "equi-energy", "--temperatures", "1,2", "--rungs", "3"], "ladder must be given by"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(model, tmp_path, arguments, said):
    result = invoke("sample", model, "--out", tmp_path / "run.zarr", *arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1
    assert result.stdout == ""
    assert not (tmp_path / "run.zarr").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n1 / 0", "failed in line 2, '1 / 0': ZeroDivisionError: division by zero"),
        ("def half(:", "failed in line 1, 'def half(:': SyntaxError: "),
        ("import sys\nsys.exit()", "failed in line 2, 'sys.exit()': SystemExit"),
        (MODEL.replace("x - p", "y - p"), "NameError: name 'y' is not defined ("),
        (MODEL.replace("x - p", "y - p"), "model.py, line 4, 'posterior = mintmc.Posterior("),
        ("posterior = 1", "must define posterior and init, got no init"),
        (MODEL + "posterior = 3", "posterior must be a mintmc.Posterior, got 3"),
    ],
)
def test_a_broken_model_file_is_one_line(tmp_path, text, said):
    path = tmp_path / "model.py"
    path.write_text(text)
    result = invoke(
        "sample", path, "--sampler", "mint", "--batch-size", 10, "--alpha", 0.5, "--out", tmp_path / "r.zarr"
    )
    assert result.exit_code == 2
    assert said in result.output
    assert result.output.count("\n") == 1
    assert result.output.count(" line ") <= 1  # where it is, is said once


def test_prepare(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(1000.0))
    result = invoke("prepare", tmp_path / "x.npy", tmp_path / "prepared")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("1,000 rows in random order")
    again = invoke("prepare", tmp_path / "x.npy", tmp_path / "prepared")
    assert again.exit_code == 2
    assert again.output.startswith("error: ")


NEEDED = {
    "mint": "--batch-size 10 --alpha 0.5 --no-penalty",
    "metropolis-hastings": "--proposal langevin --target-acceptance 0.6",
    "barker": "--batch-size 10",
    "austere": "--batch-size 10",
    "confidence": "--bound oracle",
    "sgld": "--batch-size 10 --step-size 0.01",
    "sghmc": "--batch-size 10 --step-size 0.01 --friction 0.1",
    "leaps": "--starts 100 --proposal langevin",
    "parallel-tempering": "--temperatures 1,2 --batch-sizes none,50 --scheme seo",
    "equi-energy": "--hottest 9 --rungs 3 --rings spaced --c 5 --truncate",
    "mintee": "--smallest-batch 10 --proposal random-walk --step-size 0.1",
}


@pytest.mark.parametrize("name", sorted(samplers()))
def test_every_sampler_can_be_asked_for(name):
    if name in NEEDED:
        assert isinstance(build_sampler(name, parse_pairs(NEEDED[name].split())), samplers()[name])
    else:  # a bound is a function: the model file must define the sampler
        with pytest.raises(ValueError, match=f"{name} needs --(bounds|bound|scales)"):
            build_sampler(name, {})


def test_batch_sizes_go_with_either_kind_of_ladder_and_steps_with_either_part():
    settings = "--hottest 16 --rungs 3 --batch-sizes none,50,20 --steps 1,2,3 --proposal hamiltonian --proposal-steps 7"
    sampler = build_sampler("equi-energy", parse_pairs(settings.split()))
    assert sampler.ladder.batch_sizes == (None, 50, 20)
    assert sampler.ladder.temperatures == (1.0, 4.0, 16.0)
    assert (sampler.steps, sampler.proposal.steps) == ((1, 2, 3), 7)


FINISHED = SimpleNamespace(attrs={})


def interrupted(warning, drawn=True):
    """What stands in for a run that was stopped."""

    def run(*args, **settings):
        if not drawn:
            raise KeyboardInterrupt("interrupted: 0 of 9 draws were made")
        warnings.warn(warning, stacklevel=2)
        return FINISHED

    return run


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (interrupted(Interrupted("stopped")), 130),
        (interrupted(None, drawn=False), 130),
        (interrupted(UserWarning("interrupted is what this is not")), 0),
    ],
)
def test_an_interruption_is_known_by_what_it_is(model, tmp_path, monkeypatch, run, code):
    monkeypatch.setattr("mintmc.study.choose.sample", run)
    monkeypatch.setattr("mintmc.cli.show.table_of", lambda tree, out: "a table")
    monkeypatch.setattr("mintmc.cli.show.judging.diagnose", lambda tree: "a verdict" if tree is FINISHED else None)
    out = tmp_path / "run.zarr"
    result = invoke("sample", model, "--sampler", "mint", "--batch-size", 10, "--alpha", 0.5, "--out", out)
    assert result.exit_code == code
    expected = (
        f"interrupted; to go on: mintmc resume {out} {model}\n" if code else f"a table\na verdict\ndraws: {out}\n"
    )
    assert result.output == expected


def test_debug_shows_where_an_error_was_raised(model, tmp_path):
    mistake = ("sample", model, "--sampler", "mint", "--alpha", 2, "--batch-size", 10, "--out", tmp_path / "run.zarr")
    result = invoke("--debug", *mistake)
    assert isinstance(result.exception, ValueError)
    assert "alpha must be in (0, 1), got 2" in str(result.exception)
    result = invoke(*mistake)  # what it said last does not stay
    assert (result.exit_code, result.output) == (2, "error: alpha must be in (0, 1), got 2\n")


def test_a_bug_in_the_library_is_no_mistake_of_the_user(model, tmp_path, monkeypatch):
    def fails(*args, **settings):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("mintmc.study.choose.sample", fails)
    result = invoke("sample", model, "--sampler", "mint", "--alpha", 0.5, "--batch-size", 10, "--out", tmp_path / "r")
    assert isinstance(result.exception, ZeroDivisionError)


def test_compiled_programs_are_kept_where_the_user_says(tmp_path):
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: jax.config.values[name] for name in names}
    try:
        assert invoke("--cache", tmp_path / "cache", "sample", tmp_path / "none.py").exit_code == 2
        assert jax.config.values[names[0]] == str(tmp_path / "cache")
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
