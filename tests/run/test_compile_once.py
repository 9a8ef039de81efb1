"""Compile once: a second run of the same kind compiles nothing, and another kind only what it does not share."""

import time

import numpy as np
import pytest

import mintmc
from compiling import compilations
from mintmc.run import chain_programs, rung_programs
from stores import assert_same
from truth import gaussian_data, gaussian_log_likelihood, mostly_slow

X = gaussian_data(300)
POSTERIOR = mintmc.Posterior(gaussian_log_likelihood, X)
LADDER = mintmc.Ladder([1, 4], [None, 60])
SAMPLERS = {
    "a chain": lambda **others: mintmc.MINT(50, alpha=0.5, **others),
    "a ladder": lambda **others: mintmc.EquiEnergy(LADDER, **({"round_length": 20, "capacity": 10} | others)),
}


def run(name, posterior=POSTERIOR, others=None, **settings):
    settings = {"init": 0.0, "draws": 40, "warmup": 30, "chains": 2, "progress": False} | settings
    return mintmc.sample(posterior, SAMPLERS[name](**(others or {})), **settings)


@pytest.fixture
def programs(monkeypatch):
    """The names of all programs that chains and rungs compile."""
    names = []
    for home in (chain_programs, rung_programs):
        original = home.compile_program

        def noted(function, *args, original=original, **settings):
            names.append(getattr(function, "__name__", str(function)))
            return original(function, *args, **settings)

        monkeypatch.setattr(home, "compile_program", noted)
    return names


@pytest.mark.parametrize("name", mostly_slow(SAMPLERS, "a chain"))
def test_the_second_identical_call_samples_and_does_little_else(name):
    first = run(name)
    begun, busy = time.perf_counter(), time.thread_time()
    with compilations() as compiled:
        second = run(name)
    busy, whole = time.thread_time() - busy, time.perf_counter() - begun
    assert compiled == []
    assert_same(second, first)
    overhead = whole - second.attrs["sampling_time"] - second.attrs["warmup_time"]
    print(f"{overhead:.2f} s beside sampling, {busy:.2f} s of it at work")
    # Chains run on threads of their own. What this one is busy with should take 0.3 s on an idle machine.
    assert busy < 1.5


def test_another_length_thinning_or_warm_up_shares_what_it_can(programs):
    run("a chain")
    programs.clear()
    for settings, compiled in (
        ({"draws": 55, "chains": 3, "seed": 9}, []),
        ({"thin": 2}, ["draw"]),
        ({"warmup": 20}, ["warm"]),
        ({"thin": 2, "warmup": 20}, []),
        ({"thin": 2, "warmup": 0}, []),
    ):
        run("a chain", **settings)
        assert programs == compiled
        programs.clear()


@pytest.mark.slow
@pytest.mark.parametrize(
    "others",
    [{"capacity": 15}, {"rings": mintmc.QuantileRings(5)}, {"round_length": 25}, {"proposal": mintmc.Langevin()}],
    ids=str,
)
def test_a_ladder_with_other_rings_or_moves_is_another_program(others, programs):
    run("a ladder")
    programs.clear()
    tree = run("a ladder", others=others)
    assert programs
    # As if there had been no other run before.
    anew = mintmc.Posterior(gaussian_log_likelihood, POSTERIOR.data)
    assert_same(tree, run("a ladder", anew, others))


@pytest.mark.slow
def test_temperatures_and_jumps_of_a_ladder_are_no_other_program(programs):
    run("a ladder")
    programs.clear()
    run("a ladder", others={"jump_probability": 0.4, "share_rings": True, "feed": 50})
    assert programs == []


def test_another_posterior_or_sampler_is_compiled(programs):
    """Also the broken twin of all tests that count: programs that are compiled are seen."""
    run("a chain")
    for settings in (
        {"posterior": mintmc.Posterior(gaussian_log_likelihood, POSTERIOR.data)},
        {"others": {"penalty": False}},
        {"others": {"proposal": mintmc.RandomWalk(step_size=0.1)}},
    ):
        programs.clear()
        with compilations() as compiled:
            run("a chain", **settings)
        assert sorted(programs) == ["draw", "warm"]
        assert len(compiled) >= 2


def test_a_start_of_another_type_or_form_is_another_target():
    """A float of Python and an array of float32 are not the same params."""
    plain, array = run("a chain"), run("a chain", init=np.float32(0.0))
    assert_same(plain, array)
    tree = run("a chain", init={"mean": 0.0}, posterior=mintmc.Posterior(lambda p, x: -0.5 * (x - p["mean"]) ** 2, X))
    np.testing.assert_array_equal(tree.tempered_posterior["mean"], plain.tempered_posterior["theta"])
