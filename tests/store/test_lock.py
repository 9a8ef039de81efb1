"""One writer at a time: the second is told who the first is, and nothing is lost."""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from caches import cached
from mintmc.data.prepare import prepare
from mintmc.store.lock import locked
from mintmc.store.run_store import open_run
from resumed_run import run
from stores import assert_same

HOLD = """
import sys, time, pathlib
from mintmc.store.lock import locked

with locked(pathlib.Path(sys.argv[1])):
    print(1, flush=True)
    time.sleep(60)
"""


def holding(path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    assert process.stdout.readline().strip() == b"1"
    return process


def test_a_lock_is_held_by_one_and_forgotten_with_its_holder(tmp_path):
    out, lock = tmp_path / "out", tmp_path / "out.lock"
    holder = holding(out)
    try:
        with pytest.raises(ValueError, match=rf"out must not be in use, got .*out, which process {holder.pid} on"):
            locked(out).__enter__()
    finally:
        holder.kill()
        holder.communicate()
    assert lock.exists()  # left behind
    with locked(out):
        assert json.loads(lock.read_text())["process"] == os.getpid()
        with pytest.raises(ValueError, match=f"process {os.getpid()} on"):
            locked(out).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_another_name_of_the_same_place_has_the_same_lock(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "out")
    with locked(tmp_path / "out"), pytest.raises(ValueError, match="out must not be in use"):
        locked(tmp_path / "link").__enter__()


def test_the_lock_of_another_machine_is_respected(tmp_path):
    """Its process cannot be asked from here; what to do is said."""
    held = {"host": "elsewhere", "kernel": "another", "process": 7, "since": "today"}
    (tmp_path / "out.lock").write_text(json.dumps(held))
    with pytest.raises(ValueError, match=r"process 7 on elsewhere \(since today\).*if it has ended, remove .*out.lock"):
        locked(tmp_path / "out").__enter__()
    assert json.loads((tmp_path / "out.lock").read_text()) == held
    # The same machine after it was started anew: whoever held it has ended.
    (tmp_path / "out.lock").write_text(json.dumps(held | {"host": platform.node()}))
    with locked(tmp_path / "out"):
        pass


def test_what_is_no_lock_is_left_alone(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    lock = tmp_path / "out.lock"
    for make in (lambda: lock.symlink_to(precious), lambda: lock.hardlink_to(precious), lambda: os.mkfifo(lock)):
        make()
        with pytest.raises(ValueError, match="must be a lock of mintmc, got something else"):
            locked(tmp_path / "out").__enter__()
        lock.unlink()
    lock.write_text("notes")
    with pytest.raises(ValueError, match="must be a lock of mintmc, got something else"):
        locked(tmp_path / "out").__enter__()
    assert (lock.read_text(), precious.read_text()) == ("notes", "precious")


def test_a_lock_that_was_killed_before_it_could_say_is_taken_over(tmp_path):
    (tmp_path / "out.lock").touch()
    with locked(tmp_path / "out"):
        pass


def test_prepare_has_a_lock(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(1000.0))

    def second(done, total):
        with pytest.raises(ValueError, match="out must not be in use"):
            prepare(tmp_path / "x.npy", tmp_path / "out")

    prepare(tmp_path / "x.npy", tmp_path / "out", progress=second)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "x.npy"]


def test_a_second_run_in_this_process_is_refused(tmp_path):
    path = tmp_path / "run.zarr"
    with locked(path), pytest.raises(ValueError, match=r"out must not be in use, got .*run.zarr"):
        run("mint", path, 50)
    run("mint", path, 50)
    with locked(path):  # a finished run is only read
        run("mint", path, 50)


def two_writers(name, path, draws, seeds):
    code = "import sys, resumed_run as r; r.run(sys.argv[1], sys.argv[2], int(sys.argv[3]), seed=int(sys.argv[4]))"
    return [
        subprocess.Popen(
            [sys.executable, "-c", code, name, str(path), str(draws), str(seed)],
            stderr=subprocess.PIPE,
            text=True,
            env=cached(PYTHONPATH=os.pathsep.join([str(Path(__file__).parent), *sys.path])),
        )
        for seed in seeds
    ]


@pytest.mark.parametrize(
    ("name", "seeds", "trials"),
    [
        ("mint", (0, 1), 1),
        pytest.param("equi-energy", (0, 1), 1, marks=pytest.mark.slow),
        *(
            pytest.param(name, seeds, 10, marks=pytest.mark.integrity)
            for name in ("mint", "equi-energy")
            for seeds in ((0, 0), (0, 1))
        ),
    ],
)
def test_of_two_writers_one_is_refused_and_nothing_is_lost(name, seeds, trials, tmp_path, record_property):
    rng, draws = np.random.default_rng(0), 3000
    expected = {seed: run(name, None, draws, seed=seed) for seed in set(seeds)}
    refused = 0
    for trial in range(trials):
        path = tmp_path / f"{trial}.zarr"
        first, second = two_writers(name, path, draws, seeds[:1])[0], None
        time.sleep(rng.uniform(0, 1.0))
        second = two_writers(name, path, draws, seeds[1:])[0]
        said = [process.communicate()[1] for process in (first, second)]
        codes = [process.returncode for process in (first, second)]
        assert 0 in codes, said
        winner = codes.index(0)
        # Either it was in use, or it was finished before the other looked.
        loser = said[1 - winner].splitlines()[-1:]
        if codes != [0, 0]:
            refused += 1
            assert any(part in loser[0] for part in ("out must not be in use", "seed was")), loser
        else:
            assert seeds[0] == seeds[1]
        assert_same(open_run(path), expected[seeds[winner]])
    record_property("tried", trials)
    record_property("noticed", refused)
