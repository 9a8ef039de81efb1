import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from truth import gaussian_data, gaussian_log_likelihood


@pytest.fixture(scope="module")
def posterior():
    return mintmc.Posterior(gaussian_log_likelihood, gaussian_data(10_000))


def report_of(posterior, draws=4000, **settings):
    init = settings.pop("init", 0.0)
    sampler = mintmc.MINT(batch_size=100, **({"alpha": 0.5} | settings))
    tree = mintmc.sample(posterior, sampler, init=init, draws=draws, chains=4, progress=False)
    return mintmc.diagnose(tree)


def test_a_good_run_is_trusted(posterior):
    report = report_of(posterior)
    assert report.trusted
    assert "Nothing speaks against this run." in str(report)
    assert report.numbers["ess_per_million"] > 0


def test_a_short_run_is_not(posterior):
    assert any("ESS is below" in warning for warning in report_of(posterior, draws=50).warnings)


def test_chains_that_disagree_are_said(posterior):
    stuck = mintmc.RandomWalk(step_size=1e-5)
    report = report_of(posterior, proposal=stuck, init=mintmc.PerChain(np.linspace(-1, 1, 4)))
    assert any("R-hat" in warning for warning in report.warnings)


def test_large_noise_is_said_with_advice(posterior):
    # With the penalty, moves as noisy as these would not be made, and would not count.
    report = report_of(posterior, alpha=0.99, penalty=False, proposal=mintmc.RandomWalk(step_size=0.5))
    assert report.numbers["noise_mean"] > 4
    assert any("use a larger batch or a smaller alpha" in warning for warning in report.warnings)


def test_one_chain_has_no_rhat(posterior):
    tree = mintmc.sample(
        posterior, mintmc.MINT(batch_size=100, alpha=0.5), init=0.0, draws=4000, chains=1, progress=False
    )
    assert "rhat" not in mintmc.diagnose(tree).numbers


@pytest.mark.parametrize("step_size", [None, 30.0])
def test_a_chain_that_arrives_after_its_warm_up_is_told_to_warm_up_longer(step_size):
    # A narrow well in a wide plain: the step that suits the plain is 300 times too large for the well.
    def log_density(t):
        return jnp.logaddexp(-0.5 * (t / 30) ** 2, 30 - 0.5 * (t / 0.1) ** 2)

    sampler = mintmc.MetropolisHastings(mintmc.RandomWalk(step_size=step_size))
    starts = mintmc.PerChain(np.array([40.0, 60.0]))
    density = mintmc.Posterior.from_density(log_density)
    tree = mintmc.sample(density, sampler, init=starts, draws=20_000, warmup=100, chains=2, progress=False)
    (warning,) = (said for said in mintmc.diagnose(tree).warnings if "accepts only" in said)
    assert ("use a longer warm-up" in warning) == (step_size is None)
    assert ("use a smaller step" in warning) == (step_size is not None)


def test_a_long_run_is_judged_in_little_memory():
    density = mintmc.Posterior.from_density(lambda t: -0.5 * jnp.sum(t**2))
    sampler = mintmc.MetropolisHastings(mintmc.RandomWalk(step_size=1.0))
    tree = mintmc.sample(density, sampler, init=jnp.zeros(2), draws=1_500_000, warmup=0, chains=2, progress=False)
    mintmc.diagnose(tree.isel(draw=slice(100)))  # whatever is imported by then is not counted
    tracemalloc.start()
    report = mintmc.diagnose(tree)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert report.trusted
    # Statistics of 3,000,000 draws are 12 MB each, and their copies took 39; the 100,000 that are judged take 7.4 MB.
    assert peak < 15e6
    assert report.numbers["acceptance"] == pytest.approx(float(tree.sample_stats.acceptance_rate.mean()), abs=0.01)
