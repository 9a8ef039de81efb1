"""Counts are exact, however many, and wherever a stretch ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc import count, statistics
from mintmc.acceptance.barker import Barker
from mintmc.run import stretches
from resumed_run import log_likelihood, posterior, run
from truth import gaussian_data, gaussian_log_likelihood

BILLIONS = 3 * 10**9


def test_counts_go_beyond_32_bits():
    added = jax.jit(lambda more: jax.lax.fori_loop(0, 1000, lambda i, so_far: count.add(so_far, more), count.nothing()))
    assert int(count.total(added(2_000_000_000))) == 2 * 10**12
    # The broken twin: one word of 32 bits.
    one = jax.jit(lambda more: jax.lax.fori_loop(0, 1000, lambda i, so_far: so_far + more, 0))
    assert int(one(2_000_000_000)) != 2 * 10**12


@pytest.mark.parametrize("number", [0, 1, 2**24 - 1, 2**24, 2**31 - 1, 2**31, BILLIONS, 2**40 + 3])
def test_a_number_that_is_known_beforehand_is_counted_as_it_is(number):
    assert int(count.total(count.of(number))) == number
    assert int(count.total(count.add(count.of(number), count.of(BILLIONS)))) == number + BILLIONS


@pytest.mark.parametrize("rows", [0, 1, 2**24 + 5, 2**31 - 1])
def test_so_many_times_a_number_of_rows(rows):
    for factor in (1, 2, 3, 64):
        assert int(count.total(jax.jit(lambda rows, k=factor: count.times(k, rows))(jnp.int32(rows)))) == factor * rows


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
        monkeypatch.setattr(stretches, "FIRST", first)
        reported.append(run("mint", None, 20, warmup=300).attrs)
    for name in ("warmup_acceptance_rate", "data_touched_setup", "step_size"):
        assert reported[0][name] == reported[1][name]


def test_a_thinned_draw_counts_what_all_its_steps_read(monkeypatch):
    """Each step as if it had read 1e9 rows more: three of them are beyond 2^31."""
    settings = {"warmup": 0, "thin": 3, "chains": 1}
    plain = run("barker", None, 20, **settings).sample_stats.data_touched.values
    decide = Barker.decide

    def read_more(*args, **kwargs):
        info, memory = decide(*args, **kwargs)
        return info | {"data_touched": count.add(info["data_touched"], 10**9)}, memory

    monkeypatch.setattr(Barker, "decide", read_more)
    # A program that was compiled is kept: another posterior has none.
    anew = mintmc.Posterior(log_likelihood, posterior().data)
    monkeypatch.setattr("resumed_run.posterior", lambda: anew)
    more = run("barker", None, 20, **settings).sample_stats.data_touched.values
    np.testing.assert_array_equal(more, plain + 3 * 10**9)


@pytest.mark.parametrize("step", [2 * 10**9, count.of(2 * 10**9)], ids=["a word", "two words"])
def test_a_statistic_of_64_bits_is_summed_in_64_bits(step):
    """However a step reports it: as one word, or as two."""
    declared = (statistics.DATA_TOUCHED, statistics.counted("kept"))
    info = {"data_touched": step, "kept": jnp.int32(2)}
    sums = statistics.nothing(declared, info)
    for _ in range(3):
        sums = statistics.merge(declared, sums, info)
    after = statistics.reduce(declared, sums, 3)
    assert int(declared[0].on_host(after["data_touched"])) == 6 * 10**9
    assert int(after["kept"]) == 6


def test_the_rows_of_a_large_pass_are_counted():
    """What a draw of three steps would read of 2e9 rows, and of a gradient proposal's two batches of 1e9."""
    posterior = mintmc.Posterior(gaussian_log_likelihood, gaussian_data(100))
    posterior.data.n = 2 * 10**9
    target = posterior.flat(0.0)
    exact = mintmc.MetropolisHastings().kernel(target)
    assert (exact.touched, exact.init_touched) == (2 * 10**9, 2 * 10**9)
    batches = mintmc.MINT(10**9, alpha=0.5, proposal=mintmc.Langevin()).kernel(target)
    assert batches.touched == 4 * 10**9
