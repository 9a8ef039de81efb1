"""Counts are exact, however many, and wherever a stretch ends."""

import jax
import numpy as np
import pytest

import mintmc
from mintmc.acceptance.barker import Barker
from mintmc.run import chains, count
from mintmc.run.lane import check_countable
from resumed_run import run


def test_counts_go_beyond_32_bits():
    added = jax.jit(lambda more: jax.lax.fori_loop(0, 1000, lambda i, so_far: count.add(so_far, more), count.nothing()))
    assert int(count.total(added(2_000_000_000))) == 2 * 10**12
    # The broken twin: one word of 32 bits.
    one = jax.jit(lambda more: jax.lax.fori_loop(0, 1000, lambda i, so_far: so_far + more, 0))
    assert int(one(2_000_000_000)) != 2 * 10**12


def test_a_sum_of_rates_does_not_depend_on_where_it_is_cut():
    rates = np.random.default_rng(0).random(1000).astype(np.float32)

    def summed(parts):
        total = 0
        for part in parts:
            words = count.nothing()
            for rate in part:
                words = count.add_rate(words, rate)
            total += count.rate_total(words)
        return total

    assert summed([rates]) == summed(np.split(rates, [7, 400]))
    assert summed([rates]) == pytest.approx(rates.sum(dtype=float), abs=1e-3)  # 1000 roundings to a millionth


def test_what_warm_up_reports_does_not_depend_on_timing(monkeypatch):
    reported = []
    for first in (16, 5):
        monkeypatch.setattr(chains, "_FIRST_STRETCH", first)
        reported.append(run("mint", None, 20, warmup=300).attrs)
    for name in ("warmup_acceptance_rate", "data_touched_setup", "step_size"):
        assert reported[0][name] == reported[1][name]


def test_a_thinned_draw_counts_what_all_its_steps_read(monkeypatch):
    """Each step as if it had read 1e9 rows more: three of them are beyond 2^31."""
    settings = {"warmup": 0, "thin": 3, "chains": 1}
    plain = run("barker", None, 20, **settings).sample_stats.data_touched.values
    decide = Barker.decide

    def read_more(*args, **kwargs):
        decision, rest = decide(*args, **kwargs)
        return decision._replace(data_touched=decision.data_touched + 10**9), rest

    monkeypatch.setattr(Barker, "decide", read_more)
    more = run("barker", None, 20, **settings).sample_stats.data_touched.values
    np.testing.assert_array_equal(more, plain + 3 * 10**9)


def test_more_rows_than_a_step_can_count_are_refused():
    check_countable(10**8, 1, mintmc.Langevin())
    with pytest.raises(ValueError, match=r"data must have at most 532676608 rows .*, got 600000000"):
        check_countable(6 * 10**8, 1, mintmc.RandomWalk())
    with pytest.raises(ValueError, match="got 100000000"):
        check_countable(10**8, 15, mintmc.RandomWalk())
