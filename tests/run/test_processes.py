"""The same seed gives the same draws in one process and in two, on one device and on two."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from caches import cached
from mintmc.cli import app
from mintmc.run.processes import join_parts, part_path
from mintmc.store.run_store import open_run, read_record
from resumed_run import run, run_one_chain
from stores import assert_same
from truth import mostly_slow

HERE = Path(__file__).parents[1]
DRAWS = 150


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_two(name, out, draws, settings=("{}", "{}"), timeout=30):
    command = [sys.executable, str(HERE / "shared_run.py"), name, str(out), str(draws), str(free_port())]
    options = {"stderr": subprocess.PIPE, "text": True, "env": cached()}
    return [
        subprocess.Popen([*command, str(index), given, str(timeout)], **options) for index, given in enumerate(settings)
    ]


def in_two_processes(name, folder, **changes):
    both = start_two(name, folder / "run.zarr", DRAWS, **changes)
    said = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    return open_run(folder / "run.zarr")


@pytest.mark.parametrize(
    "name", mostly_slow(["mint", "metropolis-hastings", "equi-energy", "parallel-tempering"], "mint")
)
def test_two_processes_make_the_draws_of_one(name, tmp_path):
    one = run(name, None, DRAWS)  # first, so that others find in the cache what it has compiled
    assert_same(in_two_processes(name, tmp_path), one)


@pytest.mark.slow
def test_two_processes_make_one_chain_by_sharing_its_full_passes(tmp_path):
    two, one = in_two_processes("one chain", tmp_path), run_one_chain(None, DRAWS)
    # The sums are the same bit for bit (see below), but the compiler may round the rest of a step otherwise.
    np.testing.assert_allclose(two.posterior.a, one.posterior.a, atol=1e-5)
    np.testing.assert_allclose(two.sample_stats.energy, one.sample_stats.energy, atol=1e-2)


def test_a_shared_full_pass_gives_the_same_sums_bit_for_bit():
    environment = cached("devices", reads_only=False, JAX_NUM_CPU_DEVICES="4")
    subprocess.run([sys.executable, str(HERE / "shared_pass.py")], env=environment, check=True)


@pytest.mark.parametrize("name", ["mint", pytest.param("equi-energy", marks=pytest.mark.slow)])
def test_two_devices_make_the_draws_of_one(name, tmp_path):
    out = tmp_path / "run.zarr"
    command, one = [sys.executable, str(HERE / "resumed_run.py"), name, str(out), str(DRAWS)], run(name, None, DRAWS)
    subprocess.run(command, env=cached(JAX_NUM_CPU_DEVICES="2"), check=True)
    assert_same(open_run(out), one)


def one_line(text):
    """What a process said, without what JAX says of its connections."""
    lines = [line for line in text.splitlines() if line and not line.startswith("[Gloo]")]
    assert len(lines) == 1, text
    return lines[0]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (('{"seed": 1}', '{"seed": 2}'), "seed is {} here"),
        pytest.param(('{"warmup": 100}', '{"warmup": 200}'), "warmup is {}00 here", marks=pytest.mark.slow),
    ],
)
def test_processes_with_different_settings_are_refused_before_they_begin(settings, said, tmp_path):
    both = start_two("mint", tmp_path / "run.zarr", DRAWS, settings)
    for index, process in enumerate(both):
        text = process.communicate(timeout=300)[1]
        assert process.returncode == 2
        other = f"all processes must be given the same run, got another in process {1 - index}: "
        # Another seed also disperses the starts otherwise.
        assert one_line(text).startswith("error: " + other)
        assert one_line(text).endswith(said.format(index + 1))
    assert list(tmp_path.iterdir()) == []


def kill_one(both, victim):
    """Kill one of two processes: the other ends soon, with one line that says who is gone."""
    both[victim].kill()
    begun = time.monotonic()
    text = both[1 - victim].communicate(timeout=60)[1]
    # The time-out is 8 s; JAX looks a few times in it. Who shares passes notices a closed connection at once, but not
    # whose it was.
    assert time.monotonic() - begun < 20
    assert both[1 - victim].returncode == 1
    assert one_line(text).startswith(f"error: process {victim} is gone")
    assert "start the same again, in all processes, to go on" in text
    both[victim].communicate()


@pytest.mark.parametrize("victim", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_a_killed_process_is_named_in_one_line_and_the_run_goes_on(victim, tmp_path):
    out = tmp_path / "run.zarr"
    both = start_two("mint", out, 10**8, timeout=8)
    while not all((tmp_path / f"run.zarr.part-{index}" / "tempered_posterior").exists() for index in range(2)):
        assert [process.poll() for process in both] == [None, None]
        time.sleep(0.1)
    kill_one(both, victim)
    record = read_record(f"{out}.part-0")
    assert record["draws"] == 10**8


@pytest.mark.slow
@pytest.mark.parametrize("victim", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_one_of_those_that_share_full_passes_is_killed(victim, tmp_path):
    out = tmp_path / "run.zarr"
    both = start_two("one chain", out, 10**6, timeout=8)
    while not (out / "posterior").exists() or read_record(out)["drawn"] == 0:
        assert [process.poll() for process in both] == [None, None]
        time.sleep(0.1)
    kill_one(both, victim)
    drawn = read_record(out)["drawn"]
    assert 0 < drawn < 10**6
    again = start_two("one chain", out, drawn + DRAWS)
    said = [process.communicate(timeout=300)[1] for process in again]
    assert [process.returncode for process in again] == [0, 0], said
    two, one = open_run(out), run_one_chain(None, drawn + DRAWS)
    # As above: the sums are the same, the compiler may round the rest of a step otherwise.
    np.testing.assert_allclose(two.posterior.a, one.posterior.a, atol=1e-5)


@pytest.mark.parametrize("name", mostly_slow(["mint", "one chain"], "mint"))
def test_a_process_that_does_not_come_is_one_line(name, tmp_path):
    process = start_two(name, tmp_path / "run.zarr", DRAWS, ("{}",), timeout=2)[0]
    text = process.communicate(timeout=120)[1]
    assert process.returncode == 1
    assert one_line(text).startswith("error: another process did not come within 2 s, see --timeout")


def test_parts_of_different_runs_are_not_joined(tmp_path, monkeypatch):
    out = tmp_path / "run.zarr"
    for index, seed in enumerate((0, 1)):
        run("mint", part_path(out, index), 20, warmup=0, seed=seed)
    record = read_record(part_path(out, 0))
    monkeypatch.setattr("jax.process_count", lambda: 2)
    with pytest.raises(ValueError, match=r"all parts must be of the same run, got .*part-1, which differs: seed was 1"):
        join_parts(out, {name: record[name] for name in ("sampler", "seed", "chains", "model", "data")})
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--processes", 2], "--coordinator or --distributed must be given with --processes, got neither"),
        (["--process-id", 0], "--coordinator or --distributed must be given with --process-id, got neither"),
        (["--coordinator", "nonsense"], "coordinator must be HOST:PORT of the first process, got 'nonsense'"),
        (["--coordinator", "a:b"], "coordinator must be HOST:PORT of the first process, got 'a:b'"),
        (["--coordinator", "a:1", "--processes", 2, "--process-id", 2], "process_id must be in [0, 1], got 2"),
        (["--coordinator", "a:1", "--processes", 0], "processes must be at least 1, got 0"),
        (["--coordinator", "a:1", "--timeout", 0], "timeout must be in [1, 1000000], got 0"),
    ],
)
def test_a_mistake_in_how_processes_meet_is_one_line(arguments, said, tmp_path):
    (tmp_path / "model.py").write_text("")
    result = CliRunner().invoke(app, ["sample", str(tmp_path / "model.py"), *map(str, arguments)])
    assert (result.exit_code, result.output) == (2, f"error: {said}\n")
