"""The same seed gives the same draws in one process and in two, on one device and on two."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from resumed_run import run
from test_resume import assert_same

from mintmc.run.store import open_run

HERE = Path(__file__).parent
DRAWS = 150


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("name", ["mint", "metropolis-hastings", "equi-energy", "parallel-tempering"])
def test_two_processes_make_the_draws_of_one(name, tmp_path):
    out, port = tmp_path / "run.zarr", free_port()
    command = [sys.executable, str(HERE / "shared_run.py"), name, str(out), str(DRAWS), str(port)]
    both = [subprocess.Popen([*command, str(index)]) for index in range(2)]
    assert [process.wait(timeout=300) for process in both] == [0, 0]
    assert_same(open_run(out), run(name, None, DRAWS))


@pytest.mark.parametrize("name", ["mint", pytest.param("equi-energy", marks=pytest.mark.slow)])
def test_two_devices_make_the_draws_of_one(name, tmp_path):
    out = tmp_path / "run.zarr"
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "2"}
    command = [sys.executable, str(HERE / "resumed_run.py"), name, str(out), str(DRAWS)]
    subprocess.run(command, env=environment, check=True)
    assert_same(open_run(out), run(name, None, DRAWS))
