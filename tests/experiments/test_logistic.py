import json

import jax
import numpy as np
import pytest

import mintmc
from mintmc.experiments.logistic import experiment as logistic
from mintmc.experiments.logistic import mnist
from mintmc.experiments.logistic import table as logistic_table


def test_the_digits_are_all_there():
    digits = mnist.load()
    assert digits.x.shape == (13_007, 784)
    assert digits.x_test.shape == (2163, 784)
    assert (int((digits.y > 0).sum()), int((digits.y_test > 0).sum())) == (6742, 1135)
    assert (digits.x.min(), digits.x.max()) == (0.0, 1.0)


@pytest.mark.slow
def test_mint_with_the_settings_of_the_paper_has_its_acceptance_and_its_step():
    posterior = mnist.posterior(flat_prior=False)
    walk = mintmc.RandomWalk(step_size=logistic.TEMPERED_STEP)
    sampler = mintmc.MINT(logistic.BATCH, alpha=logistic.ALPHA, temper="likelihood", proposal=walk)
    tree = mintmc.sample(
        posterior, sampler, init=np.zeros(784), draws=15_000, warmup=500, chains=4, seed=1, progress=False
    )
    assert 0.3 < float(tree["sample_stats"]["acceptance_rate"].mean()) < 0.4
    curve = logistic.curve(tree)
    assert curve.step == pytest.approx(1.71, abs=0.02)
    # The running average after 100 passes of the paper's count (one batch a step, 13,007 steps) is right on 98.5% of
    # the images: 98.48% to 98.51% over ten runs, so four runs are judged in standard errors.
    last = np.flatnonzero(curve.passes.mean(axis=0) <= 200)[-1]
    error = curve.average[:, last].std(ddof=1) / 2
    assert curve.average[:, last].mean() > 0.985 - 2 * error
    assert error < 0.002
    # A first draw of 97% takes less than 5% of what 500 steps of MCMC read.
    assert np.median(curve.touched_to_97) < 0.05 * 500 * posterior.n


def test_a_growing_batch_stays_small_where_seita_says_so():
    # Table 1: 125.4 rows for Barker's test at K = 100 and steps of 0.05, over 5,000 draws.
    posterior = mnist.posterior(flat_prior=True)
    # Without the published rules it reads on until the variance of so few telling images is known: 944 rows.
    sampler = mintmc.BarkerMH(100, temperature=logistic_table.TEMPERATURE, proposal=logistic_table.WALK, published=True)

    def start(key):
        return 0.03 * jax.random.normal(key, (784,))

    tree = mintmc.sample(posterior, sampler, init=start, draws=5000, warmup=0, chains=2, seed=2, progress=False)
    batch = float(tree["sample_stats"]["data_touched"].mean()) / 2
    assert batch == pytest.approx(125.4, rel=0.2)


@pytest.mark.slow
def test_reproduce_writes_figure_numbers_and_page(tmp_path, monkeypatch):
    tiny = logistic.Scale(2, 300, 5, 5, logistic_table.Scale(2, 12))
    monkeypatch.setitem(logistic.SCALES, "quick", tiny)
    figure = logistic.reproduce("quick", tmp_path, progress=False)
    assert figure.stat().st_size > 10_000
    numbers = json.loads((tmp_path / "logistic.json").read_text())
    assert numbers["facts"]["MINT: mean batch"] == 100
    page = (tmp_path / "logistic.md").read_text()
    for name in ("MHMINIBATCH", "AustereMH(NC)", "AustereMH(C)", "MHSUBLHD"):
        assert name in page
