"""A run that was stopped, by whatever means, goes on to the draws that it would have made."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from caches import cached
from mintmc.store import keeper
from mintmc.store.encode import encode, is_readable
from mintmc.store.provenance import model_fingerprint
from mintmc.store.run_store import RunStore
from resumed_run import SAMPLERS, going_on, posterior, run
from stores import FaultAt, assert_same

DRAWS = 2000


COMMAND = [sys.executable, str(Path(__file__).parents[1] / "resumed_run.py")]


def run_until_killed(name, path, wait):
    """Run in a process of its own and kill it ``wait`` seconds after it goes on; False if it had finished."""
    going_on(path).unlink(missing_ok=True)
    process = subprocess.Popen([*COMMAND, name, str(path), str(DRAWS)], env=cached())
    # Time to import and compile differs from machine to machine, and is nothing to be killed in.
    while process.poll() is None and not going_on(path).exists():
        time.sleep(0.01)
    time.sleep(wait)
    process.kill()  # nothing happens if it has ended
    code = process.wait()
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.parametrize(
    ("name", "kills"),
    [
        ("mint", 1),
        pytest.param("equi-energy", 1, marks=pytest.mark.slow),
        *(pytest.param(name, 10, marks=pytest.mark.integrity) for name in SAMPLERS),
    ],
)
def test_killed_at_random_moments_it_goes_on_bit_for_bit(name, kills, tmp_path, record_property):
    uninterrupted, rng = run(name, None, DRAWS), np.random.default_rng(kills)
    killed = runs = 0
    while killed < kills:
        path = tmp_path / f"{runs}.zarr"
        runs += 1
        # In warm-up, between two saves or in one; a run is killed again and again until it is finished.
        while killed < kills and run_until_killed(name, path, wait=rng.exponential(0.5)):
            killed += 1
        assert_same(run(name, path, DRAWS), uninterrupted)
    record_property("tried", killed)


def run_until_killed_at(name, path, at):
    """Run in a process of its own that kills itself at its at-th write, fsync or rename; False if it had finished."""
    code = subprocess.run([*COMMAND, name, str(path), "400", str(at)], env=cached()).returncode
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.parametrize(
    ("name", "moments"),
    # The first five: a lock, the folder, its first file, which is written, synced and (not any more) renamed.
    [
        ("mint", [5]),
        pytest.param("parallel-tempering", [5, 40, 200], marks=pytest.mark.slow),
        *(pytest.param(name, None, marks=pytest.mark.integrity) for name in SAMPLERS),
    ],
)
def test_killed_at_any_write_from_the_start_it_goes_on_bit_for_bit(name, moments, tmp_path, record_property):
    uninterrupted = run(name, None, 400)
    moments = [*range(1, 9), *np.random.default_rng(0).geometric(0.005, 12)] if moments is None else moments
    kills = 0
    for at in moments:
        path = tmp_path / f"{at}.zarr"
        killed = run_until_killed_at(name, path, at)
        kills += killed
        assert killed or at > 8
        if at == 5:
            assert [left.name for left in path.iterdir()] == ["zarr.json.partial"]
        assert_same(run(name, path, 400), uninterrupted)
    record_property("tried", kills)


def test_a_finished_run_is_returned_as_it_is(tmp_path, monkeypatch):
    first = run("mint", tmp_path / "run.zarr", 100)
    monkeypatch.setattr("mintmc.run.sample.Driver", None)  # nothing is run
    assert_same(run("mint", tmp_path / "run.zarr", 100), first)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"seed": 4}, "seed was 0, now 4"), ({"chains": 3}, "chains was 2, now 3"), ({"thin": 2}, "thin was 1, now 2")],
)
def test_another_run_is_refused(changes, said, tmp_path):
    run("mint", tmp_path / "run.zarr", 50)
    with pytest.raises(ValueError, match=said):
        run("mint", tmp_path / "run.zarr", 100, **changes)


def test_another_sampler_model_or_data_are_refused(tmp_path):
    path = tmp_path / "run.zarr"
    run("mint", path, 50)
    with pytest.raises(ValueError, match="sampler was MINT, now SGLD"):
        run("sgld", path, 100)
    same = posterior()
    with pytest.raises(ValueError, match="model was"):
        mintmc.resume(path, mintmc.Posterior(lambda p, x: -((x - p["a"]) ** 2) * p["b"][0], same.data.rows), draws=100)
    with pytest.raises(ValueError, match="data was"):
        mintmc.resume(path, mintmc.Posterior(same.log_likelihood, same.data.rows + 1), draws=100)


def test_a_constant_within_a_jitted_likelihood_is_part_of_the_model():
    def fingerprint(precision):
        precision = jnp.asarray(precision)
        inner = jax.jit(lambda p, x: -0.5 * ((x - p) ** 2 * precision).sum())
        return model_fingerprint(mintmc.Posterior(lambda p, x: inner(p, x), np.zeros(3)), 0.0)

    assert fingerprint([1.0, 2.0]) == fingerprint([1.0, 2.0])
    assert fingerprint([1.0, 2.0]) != fingerprint([1.0, 3.0])


def test_a_run_begun_in_a_terminal_goes_on_without_one(monkeypatch):
    before = model_fingerprint(posterior(), {"a": 0.0, "b": jnp.zeros(2)})
    monkeypatch.setattr("jax._src.pretty_printer.CAN_USE_COLOR", True)  # as JAX finds it there
    assert "\x1b[" in str(jax.make_jaxpr(jnp.sin)(0.0))
    assert model_fingerprint(posterior(), {"a": 0.0, "b": jnp.zeros(2)}) == before


class Mean(NamedTuple):
    mean: Any


def test_what_a_store_cannot_hold_must_be_given_again(tmp_path):
    path, model = tmp_path / "run.zarr", mintmc.Posterior(lambda p, x: -0.5 * (x - p.mean) ** 2, np.arange(9.0))
    sampler = mintmc.MetropolisHastings(mintmc.Custom(lambda key, p: Mean(p.mean + jax.random.normal(key))))
    settings = {"warmup": 0, "chains": 1, "progress": False}
    mintmc.sample(model, sampler, init=Mean(0.0), draws=20, out=path, **settings)
    with pytest.raises(ValueError, match=r"sampler must be given: not all of it could be written to .*run.zarr"):
        mintmc.resume(path, model, draws=30)
    with pytest.raises(ValueError, match="init must be given: not all of it"):
        mintmc.resume(path, model, sampler=sampler, draws=30)
    tree = mintmc.resume(path, model, sampler=sampler, init=Mean(0.0), draws=30, progress=False)
    assert_same(tree, mintmc.sample(model, sampler, init=Mean(0.0), draws=30, **settings))


def test_a_large_array_is_remembered_by_its_hash():
    one, other = np.zeros(100_000), np.zeros(100_000)
    other[-1] = 1
    assert encode(one) == encode(one.copy()) != encode(other)
    assert not is_readable(encode(one))
    assert is_readable(encode(mintmc.TunaMH(np.ones(5))))


def test_what_is_no_run_cannot_be_resumed(tmp_path):
    with pytest.raises(ValueError, match=r"path must be a run of mintmc, got .*typo.zarr: nothing there"):
        mintmc.resume(tmp_path / "typo.zarr", posterior())
    RunStore(tmp_path / "begun.zarr")
    with pytest.raises(ValueError, match=r"got .*begun.zarr: one that was stopped before its first save"):
        mintmc.resume(tmp_path / "begun.zarr", posterior())


def test_a_full_disk_is_said_and_loses_nothing(tmp_path, monkeypatch):
    path = tmp_path / "run.zarr"
    run("mint", path, 100)
    with pytest.MonkeyPatch.context() as patch:

        def full(*args, **kwargs):
            raise OSError(28, "No space left on device")

        patch.setattr(np, "savez", full)
        with pytest.raises(OSError, match=r"could not be saved to .*run.zarr.*100 draws.* is safe"):
            run("mint", path, 300)
    assert_same(run("mint", path, 300), run("mint", None, 300))


@pytest.mark.parametrize("at", [15, *(pytest.param(at, marks=pytest.mark.slow) for at in range(1, 100, 9))])
def test_a_fault_while_rings_are_saved_loses_nothing(at, tmp_path, monkeypatch):
    """The same for the files of rings as for draws and checkpoints: any write, rename or fsync may fail."""
    path = tmp_path / "run.zarr"
    monkeypatch.setattr(keeper, "_SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(keeper, "_SHARE", 1e9)
    with pytest.MonkeyPatch.context() as patch:
        FaultAt(patch, at, OSError(28, "No space left on device"))
        with pytest.raises(OSError, match="No space left on device"):
            run("equi-energy", path, 140, warmup=100)
    assert_same(run("equi-energy", path, 140, warmup=100), run("equi-energy", None, 140, warmup=100))


def test_a_run_without_its_rings_is_refused(tmp_path):
    path = tmp_path / "run.zarr"
    run("equi-energy", path, 140, warmup=100)
    (path / "rings" / "1-0.npy").unlink()
    with pytest.raises(ValueError, match=r"1-0.npy is missing: the run cannot go on without its rings"):
        run("equi-energy", path, 280, warmup=100)


def test_the_store_opens_with_xarray(tmp_path):
    import xarray

    run("equi-energy", tmp_path / "run.zarr", 100)
    tree = xarray.open_datatree(tmp_path / "run.zarr", engine="zarr")
    assert {"posterior", "sample_stats", "start", "ladder"} == set(tree.children)
    assert tree["ladder"]["energy"].dims == ("rung", "chain", "draw")
