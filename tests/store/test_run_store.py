"""A store is valid at every moment: whatever fails, what was committed stays, and the rest can be made again."""

import errno
import json
import time

import numpy as np
import pytest
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

import mintmc
from mintmc.store.run_store import Committed, RunStore, open_run, read_record
from stores import CHAINS, PARTS, PER_PART, FaultAt, part_of, write


def check_valid(path, draws):
    tree = open_run(path)
    expected = np.broadcast_to(np.arange(draws), (CHAINS, draws))
    np.testing.assert_array_equal(tree["posterior"]["theta"].values[..., 0], expected)
    np.testing.assert_array_equal(tree["sample_stats"]["energy"].values, expected)
    np.testing.assert_array_equal(tree["posterior"]["draw"].values, np.arange(draws))
    np.testing.assert_array_equal(Committed.at(path).checkpoint()[0], np.arange(draws))
    RunStore(path)  # which refuses what is not whole
    tree.close()


def test_parts_come_back_as_one(tmp_path):
    write(tmp_path / "run.zarr")
    check_valid(tmp_path / "run.zarr", PARTS * PER_PART)
    assert open_run(tmp_path / "run.zarr").attrs["seed"] == 1
    assert len(list((tmp_path / "run.zarr").glob("checkpoint-*"))) == 1


def test_what_is_not_committed_is_not_seen(tmp_path):
    write(tmp_path / "run.zarr", parts=1)
    RunStore(tmp_path / "run.zarr").append(part_of(PER_PART))
    check_valid(tmp_path / "run.zarr", PER_PART)
    write(tmp_path / "run.zarr", parts=2)
    check_valid(tmp_path / "run.zarr", 2 * PER_PART)


def test_groups_that_no_reader_knows_are_overwritten(tmp_path):
    """A run is committed in its warm-up, then writes its first draws and is killed before they are committed."""
    store = RunStore(tmp_path / "run.zarr")
    store.commit({"seed": 1}, {"drawn": 0}, [])
    store.append(part_of(0))
    write(tmp_path / "run.zarr")
    check_valid(tmp_path / "run.zarr", PARTS * PER_PART)


def let_threads_finish(path):
    """Zarr writes in threads; those that did not fail go on for a moment. A killed process has none."""
    before = None
    while (now := sorted(path.rglob("*"))) != before:
        before = now
        time.sleep(0.02)


FULL, KILLED = OSError(errno.ENOSPC, "No space left on device"), RuntimeError("killed")


@pytest.mark.parametrize(
    ("error", "every"),
    [(FULL, 9), (KILLED, 19), *(pytest.param(error, 1, marks=pytest.mark.slow) for error in (FULL, KILLED))],
    ids=str,
)
def test_a_fault_at_any_write_leaves_a_store_that_goes_on(tmp_path, error, every):
    with pytest.MonkeyPatch.context() as patch:
        counter = FaultAt(patch, 0, error)
        write(tmp_path / "counted.zarr")
    assert counter.count > 30
    for at in range(1, counter.count + 1, every):
        path = tmp_path / f"{at}.zarr"
        with pytest.MonkeyPatch.context() as patch:
            FaultAt(patch, at, error)
            with pytest.raises(type(error)):
                write(path)
        let_threads_finish(path)
        if path.exists() and (path / "zarr.json").exists() and "mintmc_run" in (path / "zarr.json").read_text():
            check_valid(path, read_record(path)["drawn"])
        write(path)
        check_valid(path, PARTS * PER_PART)


def test_a_store_whose_end_is_written_in_place_would_be_caught(tmp_path):
    """The broken twin: array lengths that readers see before the commit."""
    write(tmp_path / "run.zarr", parts=1)
    store = RunStore(tmp_path / "run.zarr")
    store.append(part_of(PER_PART))
    document = json.loads((tmp_path / "run.zarr/zarr.json").read_text())
    document["consolidated_metadata"]["metadata"]["posterior/theta"] = store.members["posterior/theta"]
    (tmp_path / "run.zarr/zarr.json").write_text(json.dumps(document))
    with pytest.raises((ValueError, AssertionError)):
        check_valid(tmp_path / "run.zarr", PER_PART)


def make_file(path):
    path.write_text("precious")


def make_folder(path):
    path.mkdir()
    (path / "notes.txt").write_text("precious")


def make_other_store(path):
    zarr.open_group(path, mode="w").create_array("x", shape=(3,), dtype="f4")


def make_truncated(path):
    write(path)
    (path / "zarr.json").write_bytes((path / "zarr.json").read_bytes()[:100])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (make_file, "new path or a run of mintmc"),
        (make_folder, "new path or a run of mintmc"),
        (make_other_store, "new path or a run of mintmc"),
        (make_truncated, "damaged"),
    ],
)
def test_what_is_not_ours_is_refused_and_left_alone(tmp_path, make, message):
    path = tmp_path / "out"
    make(path)
    before = {file: file.read_bytes() for file in [path, *path.rglob("*")] if file.is_file()}
    with pytest.raises(ValueError, match=message):
        RunStore(path)
    assert {file: file.read_bytes() for file in [path, *path.rglob("*")] if file.is_file()} == before


def test_a_lost_or_cut_checkpoint_is_said(tmp_path):
    write(tmp_path / "run.zarr")
    checkpoint = next((tmp_path / "run.zarr").glob("checkpoint-*"))
    checkpoint.write_bytes(checkpoint.read_bytes()[:50])
    with pytest.raises(ValueError, match=r"checkpoint-1.npz is damaged: its checksum"):
        Committed.at(tmp_path / "run.zarr").checkpoint()


def test_a_store_packed_as_before_is_gone_on_with(tmp_path, monkeypatch):
    density = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
    settings = {"init": 0.0, "warmup": 10, "chains": 1, "progress": False}
    with monkeypatch.context() as before:
        before.setattr("mintmc.store.chunks.COMPRESSORS", (ZstdCodec(level=0), Crc32cCodec()))
        mintmc.sample(density, mintmc.MetropolisHastings(), draws=20, out=tmp_path / "run.zarr", **settings)
    more = mintmc.resume(tmp_path / "run.zarr", density, draws=40, progress=False)
    whole = mintmc.sample(density, mintmc.MetropolisHastings(), draws=40, **settings)
    np.testing.assert_array_equal(more.posterior.theta, whole.posterior.theta)
