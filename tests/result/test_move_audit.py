import json

import jax
import numpy as np
import pytest

import mintmc
from mintmc.result import audit_decisions, audit_pairs, steps
from mintmc.result.law import audits
from mintmc.result.tilt import fit_tilt
from truth import gaussian_data, gaussian_log_likelihood

pytestmark = pytest.mark.audited
N = 4000
GAUSS = mintmc.Posterior(gaussian_log_likelihood, gaussian_data(N))


def pairs(dim, count, seed=0):
    rng = np.random.default_rng(seed)
    here = rng.normal(size=(count, dim))
    return rng.normal(size=(4000, dim)), here, here + 2.4 / dim**0.5 * rng.normal(size=(count, dim))


def tilted(dim, count, b, c, error=0.03):
    draws, here, there = pairs(dim, count)
    g = lambda u: u @ b + c * (u**2).sum(axis=1) / 2  # noqa: E731
    noise = np.random.default_rng(1).normal(size=count) * error
    return fit_tilt(draws, here, there, g(there) - g(here) + noise, np.full(count, error**2), np.ones(count))


@pytest.mark.parametrize(("dim", "count"), [(1, 64), (5, 64), (40, 64)])
def test_a_tilt_is_found_even_with_few_pairs_for_many_parameters(dim, count):
    b = np.zeros(dim)
    b[dim // 2] = 0.5
    found = tilted(dim, count, b, 0.2)
    assert found.parameter == dim // 2
    # 40 parameters are shrunk towards no tilt by half; their error says so.
    assert abs(found.bias - 0.5 / 1.2**0.5) < 4 * found.bias_error + 0.02
    assert found.bias > 0.15
    assert abs(found.spread - (1.2**0.5 - 1)) < 4 * found.spread_error + 0.02


def test_no_tilt_is_found_where_there_is_none():
    found = tilted(3, 64, np.zeros(3), 0.0)
    assert abs(found.bias) < 3 * found.bias_error
    assert 0 < found.bias_error < 0.05
    assert abs(found.spread) < 3 * found.spread_error + 0.01


def test_too_few_pairs_say_nothing():
    assert np.isnan(tilted(1, 3, np.zeros(1), 0.0).bias)


def test_random_batches_of_the_audit_are_uniform_subsets():
    # All pairs of 12 rows in batches of 4 are as likely in a table of random order; here the order is drawn each time.
    rng, rows, size, count = np.random.default_rng(0), 12, 4, 5000
    places = audit_decisions._places(rng, (count,), size, rows)
    numbers = np.asarray(jax.vmap(lambda p: audit_decisions._numbers(p, size, rows))(places))
    assert (np.diff(np.sort(numbers, axis=1)) > 0).all()
    inside = np.zeros((count, rows))
    for row, batch in zip(inside, numbers, strict=True):
        row[rng.permutation(rows)[batch]] = 1
    expected = size * (size - 1) / (rows * (rows - 1))
    together = (inside.T @ inside / count)[np.triu_indices(rows, 1)]
    # 66 scores below 4 with probability 0.996.
    assert np.abs((together - expected) / np.sqrt(expected * (1 - expected) / count)).max() < 4


LADDER = mintmc.Ladder([1, 10, 40], [None, 500, 110])  # n_eff / m = 0.8 and 0.9 on batches


@pytest.mark.parametrize("kind", [pytest.param(mintmc.EquiEnergy, marks=pytest.mark.slow), mintmc.ParallelTempering])
def test_rungs_on_batches_are_audited(kind):
    entries = {}
    for penalty in (True, False):
        init = mintmc.PerChain(np.linspace(-0.1, 0.1, 4))
        settings = {"init": init, "draws": 300, "warmup": 200, "progress": False}
        tree = mintmc.sample(GAUSS, kind(LADDER, penalty=penalty), **settings)
        entries[penalty] = audits(tree)
        assert [entry["rung"] for entry in entries[penalty]] == [1, 2]
        early = json.loads(tree.attrs["audit_after_warmup"])
        assert [entry["rung"] for entry in early] == [1, 2]
        touched = sum(entry["data_touched"] for entry in (*early, *entries[penalty]))
        assert tree.attrs["data_touched_audit"] == touched
    # The broken twin runs hot.
    assert entries[False][1]["spread"] > entries[True][1]["spread"] + 0.05


def test_the_audit_of_a_stored_run_is_that_of_a_run_in_memory(tmp_path):
    settings = {"init": 0.0, "draws": 200, "warmup": 100, "chains": 2, "progress": False}
    sampler = mintmc.MINT(100, alpha=0.5)
    stored = mintmc.sample(GAUSS, sampler, out=tmp_path / "run.zarr", **settings)
    assert stored.attrs["audit"] == mintmc.sample(GAUSS, sampler, **settings).attrs["audit"]
    longer = mintmc.resume(tmp_path / "run.zarr", GAUSS, draws=300, progress=False)
    assert longer.attrs["audit"] == mintmc.sample(GAUSS, sampler, **settings | {"draws": 300}).attrs["audit"]


def test_many_rows_are_audited_on_a_table_of_some(monkeypatch):
    whole = mintmc.sample(GAUSS, mintmc.MINT(100, alpha=0.9), init=0.0, draws=500, progress=False)
    monkeypatch.setattr(audit_pairs, "_TABLE", 1000)
    monkeypatch.setattr(audit_pairs, "BLOCK", 1500)  # the last block of 4000 rows is moved up
    some = mintmc.sample(GAUSS, mintmc.MINT(100, alpha=0.9), init=0.0, draws=500, progress=False)
    one, other = audits(whole)[0], audits(some)[0]
    # Weighed by acceptance, which the table changes a little.
    assert one["skewness"] == pytest.approx(other["skewness"], rel=0.1)
    assert abs(other["bias"]) < 0.1


def test_steps_of_many_parameters_are_judged_by_their_gradients(monkeypatch):
    # 9% too wide: the step alone gives 1/(1 - 0.16) of variance.
    settings = {"init": 0.0, "draws": 3000, "warmup": 100, "chains": 4, "progress": False}
    sampler = mintmc.SGLD(N, step_size=0.64 / N)
    by_theory = audits(mintmc.sample(GAUSS, sampler, **settings))[0]
    monkeypatch.setattr(steps, "MOST_PARAMETERS", 0)
    by_gradients = audits(mintmc.sample(GAUSS, sampler, **settings))[0]
    assert by_theory["spread"] == pytest.approx((1 / (1 - 0.16)) ** 0.5 - 1, rel=0.01)
    assert by_gradients["kind"] == "equipartition"
    assert abs(by_gradients["spread"] - by_theory["spread"]) < 4 * by_gradients["spread_error"]


def test_steps_that_diverge_are_told():
    # eps H = 5 > 4: every step overshoots further. Chains would overflow, so they are few and short.
    tree = mintmc.sample(
        GAUSS, mintmc.SGLD(N, step_size=5.0 / N), init=0.0, draws=20, warmup=0, chains=2, progress=False
    )
    assert audits(tree)[0]["spread"] == np.inf
    assert any("would diverge" in warning for warning in mintmc.diagnose(tree).warnings)
