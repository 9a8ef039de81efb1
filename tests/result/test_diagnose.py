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
    assert "R-hat" not in mintmc.diagnose(tree).numbers
