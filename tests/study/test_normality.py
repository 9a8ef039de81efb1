import numpy as np
import pytest

import mintmc


def posterior_of(x):
    return mintmc.Posterior(lambda scale, x: scale * x, x)


def test_t_of_many_small_terms_is_normal():
    x = np.random.default_rng(0).uniform(size=20_000)
    result = mintmc.normality(posterior_of(x), 1.0, batch_size=1000)
    assert len(result.t) == 5000
    # Standard errors for 5000 normal values: 0.035 and 0.069.
    assert abs(result.skewness) < 4 * 0.035
    assert abs(result.excess_kurtosis) < 4 * 0.069
    assert result.t.std() == pytest.approx(result.deviation, rel=0.04)
    assert abs(result.t.mean()) < 4 * result.deviation / np.sqrt(5000)


def test_t_of_a_few_heavy_terms_is_not():
    x = np.random.default_rng(0).pareto(2.5, size=20_000)
    result = mintmc.normality(posterior_of(x), 1.0, batch_size=50)
    assert result.skewness > 10 * 0.035
    assert "skewness" in str(result)


def test_differences_are_looked_at_if_another_state_is_given():
    x = np.random.default_rng(0).uniform(size=5000)
    near = mintmc.normality(posterior_of(x), 1.0, batch_size=100, other=0.99)
    far = mintmc.normality(posterior_of(x), 1.0, batch_size=100)
    assert near.deviation == pytest.approx(0.01 * far.deviation, rel=1e-3)


def test_it_draws_a_picture(tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    result = mintmc.normality(posterior_of(np.arange(100.0)), 1.0, batch_size=10, batches=100)
    axes = result.plot()
    assert axes.get_xlabel()
    axes.figure.savefig(tmp_path / "normality.png")
    matplotlib.pyplot.close(axes.figure)
