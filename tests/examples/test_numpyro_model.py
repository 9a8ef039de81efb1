"""The example runs, and finds the parameters that its data were made with."""

import numpy as np

from numpyro_model import TRUTH, main


def test_the_example_finds_the_truth():
    draws = main(n=5000, draws=500).posterior
    assert sorted(draws.data_vars) == ["freedom", "length", "scale", "slope"]
    assert draws["slope"].dims == ("chain", "draw", "feature")
    for name, truth in TRUTH.items():
        mean, sd = draws[name].mean(("chain", "draw")), draws[name].std(("chain", "draw"))
        assert (np.abs(mean - truth) < 4 * sd).all()  # 4 posterior standard deviations
