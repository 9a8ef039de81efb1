"""Tails that are heavier than those of the normal distribution around a mode: measured, and spoken against."""

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.control import laplace
from mintmc.modes.search import Search
from mintmc.modes.tails import slowest_fall


def student(degrees):
    return mintmc.Posterior.from_density(lambda x: -0.5 * (degrees + 1) * jnp.sum(jnp.log1p(x**2 / degrees)))


def fall_of(posterior, at):
    flat = posterior.flat(at)
    search = Search(flat, 1000)
    return slowest_fall(flat, search.target, laplace(search.target, search.expansion(flat.ravel(at))[0]))


@pytest.mark.parametrize("degrees", [3, 7, 50])
def test_the_fall_of_a_students_t_is_the_exact_one(degrees):
    # Curvature (degrees + 1) / degrees at 0: three standard deviations are 9 degrees / (degrees + 1), squared.
    exact = 0.5 * (degrees + 1) * np.log1p(9 / (degrees + 1)) / 4.5
    assert fall_of(student(degrees), jnp.zeros(2))[0] == pytest.approx(exact, rel=1e-3)


def test_a_normal_falls_as_it_should_on_data_too_and_rows_are_counted():
    x = np.random.default_rng(0).normal(size=50).astype(np.float32)
    posterior = mintmc.Posterior(lambda p, x: -0.5 * (x - p["a"] - 2 * p["b"]) ** 2, x, lambda p: -0.5 * p["b"] ** 2)
    # Strongly correlated: a direction of the parameters alone would say nothing.
    fall, rows_read = fall_of(posterior, {"a": jnp.float32(x.mean()), "b": jnp.float32(0)})
    assert fall == pytest.approx(1, rel=1e-3)
    assert rows_read == 50 * (1 + 2 * 2)


def run(posterior, out=None, draws=1000):
    sampler = mintmc.MetropolisHastings(mintmc.Autoregressive())
    return mintmc.sample(posterior, sampler, init=0.0, draws=draws, seed=2, out=out, progress=False)


@pytest.mark.parametrize("degrees", [3, 200])
def test_a_run_that_is_too_narrow_is_spoken_against_and_a_right_one_is_not(degrees):
    tree = run(student(degrees))
    verdict = mintmc.diagnose(tree)
    spread = float(tree.posterior["theta"].std()) / np.sqrt(degrees / (degrees - 2))
    if degrees == 3:
        # R-hat and ESS see nothing: without the look at the tails this run would be trusted.
        assert spread < 0.7
        assert [warning for warning in verdict.warnings if "tails are heavier" not in warning] == []
        assert not verdict.trusted
    else:
        assert abs(spread - 1) < 0.05
        assert verdict.trusted


@pytest.mark.slow
def test_what_was_seen_of_the_tails_survives_a_store(tmp_path):
    out = tmp_path / "run.zarr"
    run(student(3), out, draws=50)
    tree = run(student(3), out, draws=80)
    assert tree.attrs["slowest_fall"] == pytest.approx(0.52, abs=0.01)
