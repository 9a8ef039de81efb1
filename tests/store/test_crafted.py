"""A store from elsewhere: nothing outside it is touched, nothing in it executed, and it takes no more than it has."""

import io
import json
import os
import resource
import shutil
import zipfile
from dataclasses import is_dataclass
from importlib.metadata import EntryPoint

import numcodecs
import numpy as np
import pytest

import mintmc
from mintmc import proposals, samplers
from mintmc.control import bounds, lower_bounds, taylor
from mintmc.kernels import schedule
from mintmc.ladder import ladder, rings
from mintmc.store import encode
from mintmc.store.document import load_document, signed
from mintmc.store.durable import digest
from mintmc.store.run_store import Committed, RunStore, open_run, verify
from stores import write

SETTINGS = {"init": {"a": 0.0}, "draws": 40, "warmup": 0, "chains": 2, "progress": False}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("original") / "run.zarr"
    write(path, parts=1)
    return path


@pytest.fixture
def store(original, tmp_path):
    path = tmp_path / "inside" / "run.zarr"
    shutil.copytree(original, path)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_text("precious")
    return path


def edit(path, change):
    """Change a store's document, and sign it: whoever crafts a store can do that too."""
    document = load_document(path)
    change(document)
    (path / "zarr.json").write_bytes(signed(document))


def edit_record(path, **changes):
    def change(document):
        record = json.loads(document["attributes"]["mintmc_run"]) | changes
        document["attributes"]["mintmc_run"] = json.dumps(record)

    edit(path, change)


def edit_array(path, name, **changes):
    edit(path, lambda document: document["consolidated_metadata"]["metadata"][name].update(changes))


def link_group(path, outside):
    (path / "posterior").rename(outside / "posterior")
    (path / "posterior").symlink_to(outside / "posterior")


def link_array(path, outside):
    (path / "posterior" / "theta").rename(outside / "theta")
    (path / "posterior" / "theta").symlink_to(outside / "theta")


def link_chunk(path, outside):
    chunk = path / "posterior" / "theta" / "c" / "0" / "0" / "0"
    chunk.rename(outside / "chunk")
    chunk.symlink_to(outside / "chunk")


def link_rings(path, outside):
    (path / "rings").symlink_to(outside)


def link_document(path, outside):
    (path / "zarr.json").rename(outside / "zarr.json")
    (path / "zarr.json").symlink_to(outside / "zarr.json")


def link_checkpoint(path, outside):
    (path / "checkpoint-0.npz").rename(outside / "checkpoint.npz")
    (path / "checkpoint-0.npz").symlink_to(outside / "checkpoint.npz")


def pipe_document(path, outside):
    (path / "zarr.json").unlink()
    os.mkfifo(path / "zarr.json")


def other_checkpoint(path, outside):
    shutil.copy(path / "checkpoint-0.npz", outside / "checkpoint-0.npz")
    edit_record(path, checkpoint="../../outside/checkpoint-0.npz")


def array_elsewhere(path, outside):
    def change(document):
        members = document["consolidated_metadata"]["metadata"]
        members["../../outside"] = members["posterior/theta"]

    edit(path, change)


def save_checkpoint(path, content):
    (path / "checkpoint-0.npz").write_bytes(content)
    edit_record(path, checkpoint_digest=digest(path / "checkpoint-0.npz"))


def pickled_checkpoint(path, outside):
    file = io.BytesIO()
    np.savez(file, np.array([os], object).astype(str).astype(object))
    save_checkpoint(path, file.getvalue())


def packed_checkpoint(path, outside):
    file = io.BytesIO()
    np.savez_compressed(file, np.zeros(10**6))
    save_checkpoint(path, file.getvalue())


def claiming_checkpoint(path, outside):
    header, file = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("arr_0.npy", header.getvalue())
    save_checkpoint(path, file.getvalue())


def write_chunk(path, unpacked):
    import google_crc32c

    packed = numcodecs.Zstd(1).encode(unpacked)
    (path / "posterior" / "draw" / "c" / "0").write_bytes(
        packed + google_crc32c.value(bytes(packed)).to_bytes(4, "little")
    )


def large_chunk(path, outside):
    write_chunk(path, np.zeros(50_000_000))


def large_chunks(path, outside):
    edit_array(path, "posterior/draw", chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2 * 10**8]}})


def many_rows(path, outside):
    edit_array(path, "posterior/theta", shape=[2, 10**12, 2])


def many_rows_alike(path, outside):
    edit_record(path, drawn=10**12)


def negative_rows(path, outside):
    edit_record(path, drawn=-1)


def a_list_for_a_count(path, outside):
    edit_record(path, drawn=[40])


def other_codecs(path, outside):
    edit_array(path, "posterior/theta", codecs=[{"name": "bytes", "configuration": {"endian": "little"}}])


def strings_in_an_array(path, outside):
    edit_array(path, "posterior/theta", data_type="string")


def nothing_of_an_array(path, outside):
    edit_array(path, "posterior/theta", codecs=None)


def a_deep_document(path, outside):
    (path / "zarr.json").write_text("[" * 10**6)


def a_long_document(path, outside):
    with open(path / "zarr.json", "r+b") as file:
        file.truncate(2**33)


CRAFTED = [
    link_group,
    link_array,
    link_chunk,
    link_rings,
    link_document,
    link_checkpoint,
    pipe_document,
    other_checkpoint,
    array_elsewhere,
    pickled_checkpoint,
    packed_checkpoint,
    claiming_checkpoint,
    large_chunk,
    large_chunks,
    many_rows,
    many_rows_alike,
    negative_rows,
    a_list_for_a_count,
    other_codecs,
    strings_in_an_array,
    nothing_of_an_array,
    a_deep_document,
    a_long_document,
]


def content(folder):
    return {path: path.lstat().st_mode if path.is_dir() else path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize("craft", CRAFTED)
def test_a_crafted_store_is_refused_and_nothing_outside_is_touched(craft, store, tmp_path):
    outside = tmp_path / "outside"
    craft(store, outside)
    before = content(outside)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def use():
        RunStore(store)
        Committed.at(store).checkpoint()

    with pytest.raises(ValueError, match=r"run\.zarr"):
        use()
    assert content(outside) == before
    # Reading alone writes nothing, and is refused where it would follow or unpack.
    try:
        verify(store)
        open_run(store).load()
    except (ValueError, OSError) as error:
        refused = str(error)
        assert "run.zarr" in refused
    assert content(outside) == before
    # In kilobytes: none of them takes 100 MB, where the largest claims 8 TB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 100_000


@pytest.mark.parametrize("name", ["zarr.json.partial", "checkpoint-1.npz.partial", "checkpoint-1.npz"])
def test_a_link_in_the_place_of_what_is_written_next_is_not_followed(name, store, tmp_path):
    (store / name).symlink_to(tmp_path / "outside" / "precious")
    with pytest.raises(ValueError, match=f"files and folders only, got .*{name}"):
        write(store, parts=2)
    # Even one that appears after the store was opened.
    (store / name).unlink()
    opened = RunStore(store)
    (store / name).symlink_to(tmp_path / "outside" / "precious")
    opened.commit({}, {"drawn": 40}, [])
    assert (tmp_path / "outside" / "precious").read_text() == "precious"
    verify(store)


def test_a_new_store_does_not_follow_links_that_lie_in_wait(tmp_path):
    path, precious = tmp_path / "run.zarr", tmp_path / "precious"
    precious.write_text("precious")
    path.mkdir()
    (path / "zarr.json.partial").symlink_to(precious)
    write(path)
    assert precious.read_text() == "precious"


@pytest.mark.parametrize(
    "coded",
    [
        {"kind": "check"},
        {"kind": "initial_scale", "preconditioner": None, "dim": 3, "dtype": "f4"},
        {"kind": "Any"},
        {"kind": "dataclass"},
        {"kind": "__import__", "name": "os"},
        {"kind": ["MINT"]},
        {"kind": "MINT", "no_such": 1},
        {"kind": "MINT", "batch_size": [1]},
        {"kind": "MINT"},
        {"array": ["a"], "shape": [1], "dtype": "O"},
        {"array": [1], "shape": [10**12], "dtype": "f8"},
        {"array": [1], "shape": [1], "dtype": "no such"},
        {"dict": 3},
        {},
    ],
)
def test_nothing_is_called_but_settings(coded):
    assert not encode.is_readable(coded)
    with pytest.raises(ValueError, match=r"."):
        encode.decode(coded)


def test_all_settings_can_be_read_back():
    """A sampler that is added must be listed, or its runs could not be gone on with by their stores alone."""
    homes = (samplers, proposals, ladder, rings, bounds, lower_bounds, taylor, schedule)
    found = {
        name: kind
        for home in homes
        for name, kind in vars(home).items()
        if isinstance(kind, type) and is_dataclass(kind) and kind.__module__.startswith(home.__name__)
    }
    del found["RemainderBounds"]  # its distance is a function, which no store can hold
    del found["Leap"]  # no setting of a user's
    listed = {name: entry for name, entry in encode.listed().items() if entry.value.startswith("mintmc.")}
    assert found == {name: encode.listed_class(name) for name in listed}
    assert all(hasattr(mintmc, name) for name in found)


@pytest.fixture
def others(monkeypatch):
    """What other packages list, beside ours: a function, a module, and a class under a name of ours."""
    ours = tuple(encode.listed().values())
    theirs = ("call", "os:system"), ("home", "os"), ("MINT", "fractions:Fraction"), ("gone", "no_such_package:Nothing")
    entries = [EntryPoint(name, value, encode.GROUP) for name, value in theirs]
    monkeypatch.setattr(encode, "entry_points", lambda group: (*ours, *entries))
    encode.listed.cache_clear()
    yield
    encode.listed.cache_clear()


@pytest.mark.usefixtures("others")
def test_what_others_list_is_called_only_if_it_is_a_class_of_settings():
    for name in ("call", "home", "gone"):
        with pytest.raises(ValueError, match=f"cannot be read back from a store: .*{name}"):
            encode.decode({"kind": name})
    assert encode.listed_class("MINT") is mintmc.MINT
