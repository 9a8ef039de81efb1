"""The same seed gives the same draws in one process and in two, on one device and on two."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from resumed_run import run, run_one_chain
from test_resume import assert_same

from mintmc.run.store import open_run

HERE = Path(__file__).parent
DRAWS = 150


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def in_two_processes(name, folder):
    out, port = folder / "run.zarr", free_port()
    command = [sys.executable, str(HERE / "shared_run.py"), name, str(out), str(DRAWS), str(port)]
    both = [subprocess.Popen([*command, str(index)]) for index in range(2)]
    assert [process.wait(timeout=300) for process in both] == [0, 0]
    return open_run(out)


@pytest.mark.parametrize("name", ["mint", "metropolis-hastings", "equi-energy", "parallel-tempering"])
def test_two_processes_make_the_draws_of_one(name, tmp_path):
    assert_same(in_two_processes(name, tmp_path), run(name, None, DRAWS))


def test_two_processes_make_one_chain_by_sharing_its_full_passes(tmp_path):
    two, one = in_two_processes("one chain", tmp_path), run_one_chain(None, DRAWS)
    # The sums are the same bit for bit (see below), but the compiler may round the rest of a step otherwise.
    np.testing.assert_allclose(two.posterior.a, one.posterior.a, atol=1e-5)
    np.testing.assert_allclose(two.sample_stats.energy, one.sample_stats.energy, atol=1e-2)


def test_a_shared_full_pass_gives_the_same_sums_bit_for_bit():
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "4"}
    subprocess.run([sys.executable, str(HERE / "shared_pass.py")], env=environment, check=True)


@pytest.mark.parametrize("name", ["mint", pytest.param("equi-energy", marks=pytest.mark.slow)])
def test_two_devices_make_the_draws_of_one(name, tmp_path):
    out = tmp_path / "run.zarr"
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "2"}
    command = [sys.executable, str(HERE / "resumed_run.py"), name, str(out), str(DRAWS)]
    subprocess.run(command, env=environment, check=True)
    assert_same(open_run(out), run(name, None, DRAWS))
