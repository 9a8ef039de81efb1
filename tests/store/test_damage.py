"""What is on disk is what was written, or an error that names the file: no draw is ever silently wrong."""

import json
import shutil

import numpy as np
import pytest
import xarray

import mintmc
from mintmc.run.driver import Driver
from mintmc.store.document import signed
from mintmc.store.keeper import Saver
from mintmc.store.run_store import RunStore, open_run, verify
from resumed_run import posterior, run
from stores import arrays, part_of, write

DRAWS = 140
SETTINGS = {"warmup": 100}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store with everything in it: draws, statistics, a ladder, rings and a checkpoint."""
    path = tmp_path_factory.mktemp("whole") / "run.zarr"
    run("equi-energy", path, DRAWS, **SETTINGS)
    return path


def files_of(path):
    return sorted(file for file in path.rglob("*") if file.is_file())


def copied(whole, folder):
    path = folder / "run.zarr"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(whole, path)
    return path


def flip(file, bit):
    data = bytearray(file.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(data)


def numbers(tree):
    return {name: values.values for name, values in arrays(tree).items()}


def check_right_or_named(read, damaged, expected):
    """Either an error that names the damaged file, or the right draws; returns whether it was an error."""
    try:
        found = numbers(read())
    except (ValueError, OSError) as error:
        said = str(error)
    else:
        said = None
    if said is not None:
        assert f"{damaged.parent.name}/{damaged.name}" in said
        return True
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=f"{damaged}: {name}")
    return False


def reading(path):
    """What ``sample`` and ``resume`` do with a finished run."""

    def read():
        verify(path)
        return open_run(path)

    return read


def going_on(path):
    return lambda: run("equi-energy", path, 2 * DRAWS, **SETTINGS)


def is_read(file):
    """Zarr's own notes beside each array are not: the root's zarr.json holds them all, signed."""
    return file.name != "zarr.json" or file.parent.name == "run.zarr"


def test_a_flipped_bit_in_what_is_read_is_noticed(whole, tmp_path):
    expected, rng = numbers(open_run(whole)), np.random.default_rng(0)
    read = [file for file in files_of(whole) if "rings" not in file.parts and is_read(file)]
    assert len(read) > 40
    path = copied(whole, tmp_path)
    for file in read[:: len(read) // 30]:
        damaged = path / file.relative_to(whole)
        flip(damaged, rng.integers(8 * file.stat().st_size))
        assert check_right_or_named(reading(path), damaged, expected), damaged
        shutil.copy(file, damaged)  # mended: reading has changed nothing


def test_a_flipped_bit_in_rings_or_checkpoint_is_noticed_when_the_run_goes_on(whole, tmp_path):
    expected, rng = numbers(run("equi-energy", None, 2 * DRAWS, **SETTINGS)), np.random.default_rng(0)
    for file in [*sorted(whole.glob("rings/*"))[:2], next(whole.glob("checkpoint-*"))]:
        path = copied(whole, tmp_path)
        damaged = path / file.relative_to(whole)
        # The last bytes: numbers of a ring, not the header, parts of which say nothing.
        flip(damaged, 8 * file.stat().st_size - 1 - rng.integers(8000 if "rings" in file.parts else 100))
        assert check_right_or_named(going_on(path), damaged, expected), damaged


@pytest.mark.slow
def test_a_flipped_bit_anywhere_is_noticed_or_harmless(whole, tmp_path, record_property):
    expected, rng = numbers(run("equi-energy", None, 2 * DRAWS, **SETTINGS)), np.random.default_rng(1)
    files, noticed = files_of(whole), 0
    for i in range(200):
        file = files[i % len(files)]
        path = copied(whole, tmp_path)
        damaged = path / file.relative_to(whole)
        flip(damaged, rng.integers(8 * file.stat().st_size))
        noticed += check_right_or_named(going_on(path), damaged, expected)
    record_property("tried", 200)
    record_property("noticed", noticed)


def lose(file, how):
    if how == "deleted":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.integrity
@pytest.mark.parametrize("how", ["deleted", "truncated"])
def test_any_lost_file_is_noticed_or_harmless_when_the_run_goes_on(whole, tmp_path, how, record_property):
    expected, noticed = numbers(run("equi-energy", None, 2 * DRAWS, **SETTINGS)), 0
    for file in files_of(whole):
        path = copied(whole, tmp_path)
        damaged = path / file.relative_to(whole)
        lose(damaged, how)
        noticed += check_right_or_named(going_on(path), damaged, expected)
    record_property("tried", len(files_of(whole)))
    record_property("noticed", noticed)


@pytest.mark.parametrize("how", ["deleted", "truncated"])
def test_a_lost_file_is_noticed(whole, tmp_path, how):
    expected, path = numbers(open_run(whole)), copied(whole, tmp_path)
    for file in [file for file in files_of(whole) if "rings" not in file.parts]:
        damaged = path / file.relative_to(whole)
        lose(damaged, how)
        is_refused = check_right_or_named(reading(path), damaged, expected)
        assert is_refused or (how == "truncated" and not is_read(file)), damaged
        shutil.copy(file, damaged)


def test_a_lost_ring_is_an_error_again_and_again(whole, tmp_path):
    """An empty one used to be made at the first try, and believed at the second."""
    path = copied(whole, tmp_path)
    (path / "rings" / "1-0.npy").unlink()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"1-0.npy is missing"):
            going_on(path)()


def test_a_store_whose_checksums_are_not_looked_at_would_be_caught(whole, tmp_path):
    """The broken twin: what Zarr alone makes of a lost chunk. At least it is NaN, not a draw."""
    path = copied(whole, tmp_path)
    damaged = path / "posterior" / "a" / "c" / "0" / "0"
    damaged.unlink()
    tree = xarray.open_datatree(path, engine="zarr")
    assert np.isnan(tree["posterior"]["a"].values[0]).all()
    with pytest.raises(AssertionError):
        check_right_or_named(lambda: tree, damaged, numbers(open_run(whole)))


def test_a_record_that_is_ahead_of_its_checkpoint_is_refused(tmp_path):
    """Signed or not: the checkpoint counts for itself."""

    class Run:
        warmed, drawn = 0, 40

        def checkpoint(self):
            return [np.arange(40), np.array(1.5)]

        def restore(self, checkpoint):
            pass

    store = RunStore(tmp_path / "run.zarr")
    store.append(part_of(0, 60))
    store.commit({}, {"drawn": 60, "warmed": 0}, Run().checkpoint())
    driver = Driver(None, None, Run(), Saver(tmp_path / "run.zarr"), {}, False, None, None)
    with pytest.raises(
        ValueError, match=r"checkpoint-0.npz is damaged: .* 40 into the draws, but zarr.json says 0 and 60"
    ):
        driver._restore()


def test_an_edited_record_is_refused(tmp_path):
    path = tmp_path / "run.zarr"
    write(path)
    text = (path / "zarr.json").read_text()
    (path / "zarr.json").write_text(text.replace('\\"drawn\\": 80', '\\"drawn\\": 90'))
    with pytest.raises(ValueError, match=r"zarr.json is damaged: its checksum does not match"):
        RunStore(path)
    document = json.loads((path / "zarr.json").read_text())
    del document["attributes"]["mintmc_digest"]
    (path / "zarr.json").write_bytes(signed(document))
    with pytest.raises(ValueError, match=r"zarr.json is damaged: .* but there are 90 draws"):
        RunStore(path)


@pytest.mark.parametrize("how", ["removed", "replaced", "emptied"])
def test_a_store_that_is_gone_during_the_run_is_not_made_again(tmp_path, how):
    path = tmp_path / "run.zarr"
    store = RunStore(path)
    store.append(part_of(0))
    store.commit({}, {"drawn": 40}, [])
    shutil.rmtree(path)
    if how == "replaced":
        write(path)
    elif how == "emptied":
        path.mkdir()
    before = files_of(path)
    with pytest.raises(ValueError, match=r"run.zarr was removed or replaced while the run was writing to it"):
        store.append(part_of(40))
    with pytest.raises(ValueError, match="removed or replaced"):
        store.commit({}, {"drawn": 80}, [])
    assert files_of(path) == before
    assert path.exists() == (how != "removed")


def test_a_run_notices_that_its_store_is_gone(tmp_path, monkeypatch):
    path = tmp_path / "run.zarr"
    committed = mintmc.run.chains.ChainRun.committed
    monkeypatch.setattr("mintmc.store.keeper._SECONDS_BETWEEN", 0.0)

    def remove(self):
        committed(self)
        shutil.rmtree(path)

    monkeypatch.setattr(mintmc.run.chains.ChainRun, "committed", remove)
    with pytest.raises(ValueError, match="removed or replaced"):
        run("mint", path, 2000)
    assert not path.exists()


def test_chunks_of_fill_values_are_written(tmp_path):
    """Or a chunk of NaN could not be told from one that is lost."""
    path = tmp_path / "run.zarr"
    for first in (0, 40):  # in an array that is made, and in one that is opened
        tree = part_of(first)
        tree["sample_stats"]["energy"] = tree["sample_stats"]["energy"] * np.nan
        store = RunStore(path)
        store.append(tree)
        store.commit({}, {"drawn": first + 40}, [])
    verify(path)


def test_only_leftovers_of_a_start_are_a_new_store(tmp_path):
    for i, name in enumerate(["zarr.json.partial", "zarr.0123456789abcdef0123456789abcdef.partial"]):
        path = tmp_path / f"{i}.zarr"
        path.mkdir()
        (path / name).write_text("")
        write(path)
        verify(path)
        assert not (path / name).exists()
    path = tmp_path / "precious.zarr"
    path.mkdir()
    (path / "zarr.json.partial").write_text("")
    (path / "notes.txt").write_text("precious")
    with pytest.raises(ValueError, match="new path or a run of mintmc"):
        RunStore(path)
    assert (path / "notes.txt").read_text() == "precious"


def test_a_finished_run_that_is_damaged_is_not_returned(whole, tmp_path):
    path = copied(whole, tmp_path)
    flip(path / "sample_stats" / "accepted" / "c" / "0" / "0", 50)
    for use in (
        lambda: run("equi-energy", path, DRAWS, **SETTINGS),
        lambda: mintmc.resume(path, posterior(), progress=False),
    ):
        with pytest.raises(ValueError, match=r"accepted/c/0/0 is damaged: its checksum"):
            use()


def test_reading_a_damaged_part_later_is_an_error_too(whole, tmp_path):
    path = copied(whole, tmp_path)
    tree = open_run(path)
    flip(path / "posterior" / "a" / "c" / "1" / "0", 100)
    np.asarray(tree["posterior"]["a"][0])
    with pytest.raises(ValueError, match=r"a/c/1/0 is damaged: its checksum"):
        np.asarray(tree["posterior"]["a"])
