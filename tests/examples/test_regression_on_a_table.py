"""The regression of the example finds the coefficients that its table was made with."""

import numpy as np

from regression_on_a_table import TRUTH, fit, visits


def test_it_finds_the_truth(tmp_path):
    visits(20_000).to_parquet(tmp_path / "visits.parquet")
    tree = fit(tmp_path / "visits.parquet", draws=500, warmup=300, chains=2, progress=False)
    beta = tree.posterior["beta"].stack(draws=("chain", "draw")).sel(term=list(TRUTH))
    # The mean of a posterior is as far from the truth as its draws are from their mean.
    z = (beta.mean("draws") - list(TRUTH.values())) / beta.std("draws")
    assert np.abs(z).max() < 4
    assert int(tree.sample_stats.bound_violations.sum()) == 0
