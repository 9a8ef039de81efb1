"""A run that stops when it is good enough makes the same draws, whatever happens to it."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import mintmc
import stopped_run
from mintmc.run import stretches
from mintmc.run.stops import Stops
from mintmc.run.until import is_look, next_look, restored_goal
from mintmc.store import keeper
from mintmc.store.encode import encode
from mintmc.store.run_store import open_run, read_record
from stopped_run import SAMPLERS, density
from stores import assert_same

GOAL = mintmc.Ess(300)


def run(*args, **settings):
    return stopped_run.run(*args, **{"until": GOAL} | settings)


@pytest.fixture
def saved_often(monkeypatch):
    monkeypatch.setattr(keeper, "_SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(keeper, "_SHARE", 1e9)


def ess_after(tree, draws):
    return mintmc.diagnose(tree.isel(draw=slice(draws), missing_dims="ignore")).numbers["ess_bulk"]


def test_looks_grow_by_a_quarter():
    looks = [draws for draws in range(2000) if is_look(draws)]
    assert looks[:4] == [100, 125, 156, 195]
    assert all(next_look(a) == b for a, b in pairwise(looks))


@pytest.mark.parametrize("name", SAMPLERS)
def test_it_stops_at_the_first_look_that_finds_enough(name):
    tree = run(name)
    draws = tree.posterior.sizes["draw"]
    looks = [look for look in range(draws + 1) if is_look(look)]
    assert looks[-1] == draws < 5000
    assert ess_after(tree, draws) >= 300
    assert all(ess_after(tree, look) < 300 for look in looks[:-1])
    assert tree.attrs["stopped"].startswith("stopped early: ESS is ")
    assert f"({draws:,} of at most 5,000 draws a chain)" in tree.attrs["stopped"]


def test_all_draws_are_made_if_it_is_not_reached():
    tree = run(until=mintmc.Ess(10**6), draws=200)
    assert tree.posterior.sizes["draw"] == 200
    assert "stopped" not in tree.attrs


@pytest.mark.usefixtures("saved_often")
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_store_has_the_same_draws_and_is_finished(name, tmp_path, monkeypatch):
    path = tmp_path / "run.zarr"
    tree = run(name)
    assert_same(run(name, out=path), tree)
    assert open_run(path).attrs["stopped"] == tree.attrs["stopped"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mintmc.run.sample.Driver", None)  # nothing is run
        assert_same(run(name, out=path), tree)
        assert_same(mintmc.resume(path, density(), progress=False), tree)
    more = run(name, out=path, until=mintmc.Ess(600))
    assert_same(more, run(name, until=mintmc.Ess(600)))
    assert more.posterior.sizes["draw"] > tree.posterior.sizes["draw"]


def test_the_number_of_draws_does_not_depend_on_stretches(monkeypatch):
    tree = run()
    monkeypatch.setattr(stretches, "next_size", lambda *args: 7)
    assert_same(run(), tree)


class CrashError(Exception):
    """The power is cut."""


@pytest.mark.usefixtures("saved_often")
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_run_that_was_cut_off_stops_where_it_would_have(name, tmp_path, monkeypatch):
    path, tree = tmp_path / "run.zarr", run(name)
    monkeypatch.setattr(stretches, "next_size", lambda *args: 50)
    for last in (60, 125, 180):  # before the first look, at one, between two

        def crash(so_far, last=last):
            if so_far.drawn >= last:
                raise CrashError

        with pytest.raises(CrashError):
            run(name, out=path, callback=crash)
    assert_same(mintmc.resume(path, density(), progress=False), tree)


def test_to_ask_for_more_draws_is_to_ask_for_them(tmp_path):
    path = tmp_path / "run.zarr"
    more = run(out=path).posterior.sizes["draw"] + 100
    assert mintmc.resume(path, density(), draws=more, progress=False).posterior.sizes["draw"] == more
    assert "stopped" not in open_run(path).attrs


def test_what_matters_may_be_computed_from_parameters():
    posterior = mintmc.Posterior.from_density(
        lambda p: -0.5 * (p["a"] ** 2 + 1e-4 * p["b"] ** 2), deterministics=lambda p: {"double": 2 * p["a"]}
    )
    settings = {"draws": 3000, "warmup": 200, "chains": 2, "progress": False, "until": mintmc.Ess(50, ["double"])}
    tree = mintmc.sample(posterior, mintmc.MetropolisHastings(), init={"a": 0.0, "b": 0.0}, **settings)
    draws = tree.posterior.sizes["draw"]
    assert draws < 3000
    assert mintmc.diagnose(tree, var_names=["double"]).numbers["ess_bulk"] >= 50


def test_r_hat():
    tree = run(until=mintmc.RHat(1.05))
    assert tree.posterior.sizes["draw"] < 5000
    assert "R-hat is " in tree.attrs["stopped"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"until": 1000}, r"until must be mintmc.Ess\(...\) or mintmc.RHat\(...\), got 1000"),
        ({"until": mintmc.Ess}, "until must be .* got the class Ess: call it"),
        ({"until": mintmc.RHat(1.01), "chains": 1}, "until must be mintmc.Ess.* got RHat"),
        ({"until": mintmc.Ess(10, ["c"])}, "until must have var_names among a, b, got Ess"),
        ({"callback": 3}, "callback must be a function, got 3"),
    ],
)
@pytest.mark.usefixtures("no_compiler")
def test_other_goals_are_refused(settings, said):
    with pytest.raises((ValueError, TypeError), match=said):
        run(**settings)


@pytest.mark.parametrize("goal", [mintmc.Ess(10), mintmc.Ess(10, ["a", "b"]), mintmc.RHat(1.1)])
def test_a_goal_comes_back_from_a_store(goal):
    assert restored_goal(encode(goal)) == goal


def test_a_store_says_what_was_asked_for(tmp_path):
    run(out=tmp_path / "run.zarr")
    record = read_record(tmp_path / "run.zarr")
    assert (record["goal"]["kind"], record["is_reached"], record["to_warm"]) == ("Ess", True, 100)


def spread_out(parameters):
    """A density of so many parameters, of which the last mixes worst."""
    width = np.geomspace(0.5, 1.0, parameters)
    return mintmc.Posterior.from_density(lambda x: -0.5 * ((x / width) ** 2).sum())


def test_many_parameters_do_not_keep_a_goal_out_of_reach():
    # 300 numbers a draw: a thousand draws a chain were judged, so that 2,000 of two chains was the most.
    sampler = mintmc.MetropolisHastings(mintmc.Hamiltonian(step_size=0.5, steps=5))
    settings = {"init": np.zeros(300), "chains": 2, "warmup": 100, "progress": False}
    tree = mintmc.sample(spread_out(300), sampler, draws=20_000, until=mintmc.Ess(2100), **settings)
    assert "stopped" in tree.attrs
    assert tree.posterior.sizes["draw"] < 20_000


@pytest.mark.parametrize("goal", [mintmc.Ess(2000), mintmc.RHat(1.02)])
def test_the_worst_are_looked_at_first_and_decide_nothing_else(goal, monkeypatch):
    looked = []
    draws = np.random.default_rng(0).normal(size=(4, 3000, 60)).cumsum(axis=1)[:, :, :30]  # these never mix
    draws = np.concatenate([draws[:, :, :20] * 0.01 + np.random.default_rng(1).normal(size=(4, 3000, 20)), draws], 2)
    draws[:, 1000:, 20:] = np.random.default_rng(2).normal(size=(4, 2000, 30))
    shortfalls = type(goal).shortfalls
    monkeypatch.setattr(type(goal), "shortfalls", lambda self, d: looked.append(d.shape[2]) or shortfalls(self, d))
    task = SimpleNamespace(draws=10_000, target=None)
    stops, always = Stops(goal), []
    for drawn in (look for look in range(3001) if is_look(look)):
        found = stops.reached(task, drawn, lambda least, drawn=drawn: draws[:, :drawn])
        always.append(goal.is_met(goal.value(float(np.max(shortfalls(goal, draws[:, :drawn]))))))
        assert found == always[-1]
    assert looked.count(50) < len(always) / 2
