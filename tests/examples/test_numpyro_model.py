"""The example runs, and finds the slopes that its data were made with."""

import numpy as np
import pytest

from numpyro_model import SLOPE, main


@pytest.mark.slow
def test_the_example_finds_the_truth():
    draws = main(n=5000, draws=500)[0].posterior
    assert sorted(draws.data_vars) == ["odds", "scale", "slope"]
    assert draws["slope"].dims == ("chain", "draw", "feature")
    mean, sd = draws["slope"].mean(("chain", "draw")), draws["slope"].std(("chain", "draw"))
    assert (np.abs(mean - SLOPE) < 4 * sd).all()  # 4 posterior standard deviations
    assert (draws["scale"] > 0).all()
