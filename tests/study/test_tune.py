"""Tuned ladders against closed forms, and against the runs that they are made for."""

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.study.tune import batch_sizes, tune_ladder
from truth import gaussian_data, gaussian_log_likelihood

N = 1000


@pytest.fixture(scope="module")
def ladder():
    posterior = mintmc.Posterior(gaussian_log_likelihood, gaussian_data(N))
    return tune_ladder(posterior, init=0.0, hottest=100, rungs=4, rounds=2, draws=2000)


@pytest.mark.slow
def test_temperatures_of_a_gaussian_are_geometric(ladder):
    # Swap rates depend on ratios alone; their standard error is about 0.01, that of a temperature a few percent.
    np.testing.assert_allclose(np.log(ladder.temperatures), np.linspace(0, np.log(100), 4), atol=0.25)
    assert (ladder.temperatures[0], ladder.temperatures[-1]) == (1.0, 100.0)


@pytest.mark.slow
def test_batches_have_the_noise_asked_for(ladder):
    # A walk of step c sd is accepted with probability 2/pi atan(2/c), 0.3 at c = 3.92, and its log ratio on m rows has
    # the noise c^2 n_eff (1 - m/n) / m, which is 1 at m = 1 / (1 / (c^2 n_eff) + 1/n).
    c = 2 / np.tan(0.15 * np.pi)
    temperatures = np.array(ladder.temperatures)
    exact = 1 / (temperatures / (c**2 * N) + 1 / N)
    assert ladder.batch_sizes[0] is None
    for size, expected in zip(ladder.batch_sizes, exact, strict=True):
        if size is None:
            assert expected > 0.4 * N  # where two batches cost nearly as much as all data
        else:
            assert size == pytest.approx(expected, rel=0.2)
    assert ladder.batch_sizes[-1] is not None


@pytest.mark.slow
def test_gradients_are_worth_four_batches():
    posterior = mintmc.Posterior(gaussian_log_likelihood, gaussian_data(N))
    settings = {"init": 0.0, "hottest": 100, "rungs": 2, "rounds": 1}
    (_, size) = tune_ladder(posterior, proposal=mintmc.Langevin(), **settings).batch_sizes
    # Its step is shorter than the walk's, whose batch would be 133 rows.
    assert 50 <= size < 133


def spread_of_rates(posterior, ladder):
    """How uneven the swap rates on a ladder are."""
    sampler = mintmc.samplers.parallel_tempering.ParallelTempering(ladder)
    tree = mintmc.sample(posterior, sampler, init=jnp.zeros(2), draws=20_000, warmup=1000, chains=2, progress=False)
    return float(np.ptp(tree["ladder"]["swap_rate"].mean("chain").values[:-1]))


@pytest.mark.slow
def test_rates_become_even():
    # A well in a plain 100 times as large: states leave it at about T = 15 / log(100) = 3, and their energies jump.
    posterior = mintmc.Posterior.from_density(lambda x: jnp.logaddexp(-10 * jnp.sum(x**2), -15 - 0.1 * jnp.sum(x**2)))
    tuned = tune_ladder(posterior, init=jnp.zeros(2), hottest=20, rungs=6, rounds=2, draws=20_000)
    assert tuned.batch_sizes == (None,) * 6
    assert spread_of_rates(posterior, tuned) < 0.5 * spread_of_rates(posterior, mintmc.Ladder.geometric(20, 6))


def test_batch_sizes_scale_the_noise():
    # c (1/m - 1/n) with c = 400: at m = 80 of 1000 the noise is 4.6, at m = 286 it is 1.
    measured = np.array([400 * (1 / 80 - 1 / 1000)])
    (size,) = batch_sizes(measured, 80, 1000, 1.0, 500)
    assert 400 * (1 / size - 1 / 1000) == pytest.approx(1, rel=0.01)


def test_batch_sizes_never_grow_with_temperature():
    # The second rung is quieter than the third, and reads as many rows; the first would read too many.
    assert batch_sizes(np.array([20.0, 0.7, 1.5, 0.0]), 100, 1000, 1.0, 500) == [None, 143, 143, 50]


def test_colder_rungs_than_one_on_all_data_read_all_data():
    assert batch_sizes(np.array([1.0, 90.0, 1.0]), 100, 1000, 1.0, 500) == [None, None, 100]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise": 0.0}, r"noise must be in \(0, inf\), got 0"),
        ({"draws": 1}, "draws must be at least 2, got 1"),
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"hottest": 1.0}, r"hottest must be in \(1, inf\), got 1"),
        ({"rungs": 1}, "rungs must be at least 2, got 1"),
    ],
)
def test_mistakes_are_refused(settings, message, no_compiler):
    density = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
    with pytest.raises(ValueError, match=message):
        tune_ladder(density, **({"init": 0.0, "hottest": 10.0, "rungs": 3} | settings))


@pytest.mark.slow
def test_with_control_cold_rungs_read_small_batches():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(4000, 2)).astype(np.float32)
    y = (rng.random(4000) < 1 / (1 + np.exp(-x @ np.array([1.0, -0.5])))).astype(np.float32)

    def log_likelihood(beta, row):
        eta = row["x"] @ beta
        return row["y"] * eta - jnp.logaddexp(0.0, eta)

    posterior = mintmc.Posterior(log_likelihood, {"x": x, "y": y}, lambda beta: -0.5 * jnp.sum(beta**2))
    pilots = {"init": np.zeros(2), "hottest": 20, "rungs": 3, "rounds": 1, "draws": 300}
    plain, controlled = (tune_ladder(posterior, **pilots, control=control) for control in (None, mintmc.Taylor()))
    assert plain.temperatures == controlled.temperatures
    assert plain.batch_sizes[0] is None
    assert controlled.batch_sizes[0] is not None
    assert controlled.batch_sizes[0] < 400
    sampler = mintmc.ParallelTempering(controlled, control=mintmc.Taylor())
    tree = mintmc.sample(posterior, sampler, init=np.zeros(2), draws=500, warmup=300, chains=2, progress=False)
    assert float(tree["ladder"]["log_ratio_noise"].max()) < 4
