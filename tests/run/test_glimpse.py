"""R-hat while a run goes on: of draws spread over all of it, seldom, and in little memory."""

from types import SimpleNamespace

import numpy as np
import pytest

import mintmc
from mintmc.result.mixing import rhat
from mintmc.run import glimpse
from mintmc.run.glimpse import Glimpse

SHAPE = (4, 5000, 3)


@pytest.fixture
def draws():
    """Of chains that do not agree: their means are 0 to 3 standard deviations apart."""
    return np.random.default_rng(0).normal(size=SHAPE) + np.arange(4)[:, None, None]


def run_of(draws, drawn, saved=0):
    return SimpleNamespace(drawn=drawn, waiting=draws[:, saved:drawn])


def never(count, step):
    raise AssertionError("nothing is to be read")


def test_it_keeps_draws_of_the_whole_run(clock, draws):
    seen, saved = Glimpse(never), 0
    for drawn in range(7, 5000, 7):
        clock.now += 0.4
        found = seen.rhat(run_of(draws, drawn, saved), is_last=drawn == 4998)
        saved = drawn if drawn % 3 == 0 else saved  # a store takes what was made, now and then
    kept = seen._kept
    assert 2000 < kept.shape[0] * kept.shape[1] <= 4000
    np.testing.assert_array_equal(kept, draws[:, : 4998 : seen._step])
    assert found == pytest.approx(rhat(draws).max(), rel=0.05)


def test_a_resumed_run_is_looked_at_from_its_beginning(clock, draws):
    seen = Glimpse(lambda count, step: draws[:, :count:step])
    for drawn in (3100, 3200, 5000):
        clock.now += 10.0
        seen.rhat(run_of(draws, drawn, saved=3000), is_last=False)
    np.testing.assert_array_equal(seen._kept, draws[:, :: seen._step])
    assert seen._kept.shape[1] > 100


def test_it_looks_seldom(clock, draws, monkeypatch):
    looks = []

    def slow(kept):
        looks.append(clock.now)
        clock.now += 0.1
        return rhat(kept)

    monkeypatch.setattr(glimpse, "rhat", slow)
    seen = Glimpse(never)
    for drawn in range(10, 5000, 10):
        clock.now += 0.4
        seen.rhat(run_of(draws, drawn), is_last=False)
    # A look takes 0.1 s, so there are 10 s to the next: 200 s have 20 of them.
    assert 10 <= len(looks) <= 20
    assert min(np.diff(looks)) >= 10


def test_nothing_is_said_of_few_draws_or_one_chain(clock, draws):
    for chains, drawn in ((4, 19), (1, 5000)):
        seen = Glimpse(never)
        clock.now += 100.0
        assert np.isnan(seen.rhat(run_of(draws[:chains], drawn), is_last=True))


def test_of_many_parameters_some_are_looked_at(clock):
    draws = np.random.default_rng(0).normal(size=(2, 50, 4001)).astype(np.float32)
    seen = Glimpse(never)
    clock.now += 100.0
    assert 1 < seen.rhat(run_of(draws, 50), is_last=True) < 1.5
    assert seen._kept.shape[2] <= 1000


def test_a_log_has_the_acceptance_and_what_chains_agree_on(capsys):
    density = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
    before = {"draws": 200, "chains": 2, "warmup": 50, "audit": False}
    quiet = mintmc.sample(density, mintmc.MetropolisHastings(), init=0.0, progress=False, **before)
    shown = mintmc.sample(density, mintmc.MetropolisHastings(), init=0.0, **before)
    np.testing.assert_array_equal(quiet.posterior.theta, shown.posterior.theta)
    assert "acceptance" in capsys.readouterr().out
