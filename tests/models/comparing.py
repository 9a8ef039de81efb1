"""Two sets of draws, in units of their Monte Carlo standard errors."""

import numpy as np
from arviz_stats.base import array_stats


def worst(ours, theirs):
    """The largest distance between means and between standard deviations, of draws (chain, draw, k)."""
    largest = 0.0
    for k in range(ours.shape[-1]):
        for method, moment in (("mean", np.mean), ("sd", np.std)):
            each = [draws[..., k].astype(float) for draws in (ours, theirs)]
            error = np.hypot(*(array_stats.mcse(draws, method=method) for draws in each))
            largest = max(largest, abs(moment(each[0]) - moment(each[1])) / error)
    return largest
