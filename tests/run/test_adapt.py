import numpy as np
import pytest

from mintmc.run.adapt import window_ends


@pytest.mark.parametrize("warmup", [0, 10, 100, 1000, 5000])
def test_windows_grow_and_leave_time_for_the_last_step_size(warmup):
    ends = np.flatnonzero(window_ends(warmup))
    if warmup < 100:
        assert len(ends) == 0
        return
    assert ends[-1] == int(0.9 * warmup) - 1
    assert np.all(np.diff(np.diff(ends)) >= 0)
