"""What the figure of docs/scaling.md shows: the order of an expansion is how fast its noise grows with distance."""

import numpy as np
import pytest

from mintmc.experiments import control_noise
from mintmc.experiments.control_noise import DISTANCES, Scale


@pytest.mark.slow
def test_noise_grows_with_the_order_that_is_left(tmp_path, monkeypatch):
    monkeypatch.setitem(control_noise.SCALES, "quick", Scale(20_000, 5000, 8))
    figure = control_noise.reproduce("quick", tmp_path, progress=False)
    assert figure.exists()
    assert (tmp_path / "control-noise.md").exists()
    found = control_noise.variances(control_noise.logistic(20_000), Scale(20_000, 5000, 8))
    # Differences grow like r, residuals of order 1 like r^2, of order 2 like r^3: variances like their squares. Between
    # 1 and 5 standard deviations neither rounding nor the flat tails of the logistic function show.
    near, far = np.searchsorted(DISTANCES, [0.9, 5.0])
    growth = np.log(DISTANCES[far] / DISTANCES[near])
    for order, power in ((0, 2), (1, 4), (2, 6)):
        slope = np.log(found[order][far] / found[order][near]) / growth
        assert slope == pytest.approx(power, abs=0.5)
