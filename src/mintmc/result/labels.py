"""Which mode every draw belongs to: as a user says, by clusters, or as a run with leaps has recorded it.

What is labelled comes in parts, datasets of draws (chain, draw, ...): the draws of a run, or those of each rung, the
coldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mintmc import check

MOST_MODES = 2**16
"""Far more than draws can tell apart."""


def labelled(parts: Sequence[Any], label: Callable[[Any], Any], count: int | None) -> np.ndarray:
    """By a function of all draws of a part: (part, chain, draw)."""
    return np.stack([_of_part(part, label, count) for part in parts])


def _of_part(draws: Any, label: Callable[[Any], Any], count: int | None) -> np.ndarray:
    shape = (draws.sizes["chain"], draws.sizes["draw"])
    params = {name: values.transpose("chain", "draw", ...).values for name, values in draws.data_vars.items()}
    found = check.called("label", label, params["theta"] if list(params) == ["theta"] else params)
    try:
        labels = np.asarray(found)
    except Exception:  # ragged, or an object with ideas of its own
        raise TypeError(f"label must return an array of whole numbers, got {check.shown(found)}") from None
    if labels.shape != shape:
        raise ValueError(f"label must return one number for each (chain, draw), shape {shape}, got {labels.shape}")
    if labels.dtype.kind not in "biu":
        raise TypeError(f"label must return whole numbers, got dtype {labels.dtype}")
    highest = MOST_MODES if count is None else count
    if labels.min() < 0 or labels.max() >= highest:
        below = "" if count is None else f" and below count={count}"
        raise ValueError(f"label must return numbers from 0{below}, got {labels.min()} to {labels.max()}")
    return labels.astype(int)


def clustered(parts: Sequence[Any], count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """By the nearest of ``count`` centres, which k-means finds among the draws of the first part; and these centres."""
    try:
        from sklearn.cluster import KMeans
    except ImportError:
        raise ImportError("mode_weights by k-means needs scikit-learn: pip install 'mintmc[kmeans]'") from None
    shape = (parts[0].sizes["chain"], parts[0].sizes["draw"])
    check.integer("count", count, 1, shape[0] * shape[1], "number of draws")
    thetas = [_flat(part) for part in parts]
    found = KMeans(count, n_init=10, random_state=seed).fit(thetas[0])
    # The numbers of clusters are arbitrary: from the lowest centre to the highest they are not.
    order = np.lexsort(found.cluster_centers_.T[::-1])
    numbers = [found.labels_, *(found.predict(theta) for theta in thetas[1:])]
    return np.argsort(order)[np.stack(numbers)].reshape(len(parts), *shape), found.cluster_centers_[order]


def _flat(draws: Any) -> np.ndarray:
    """All parameters of all draws, (number, d)."""
    leaves = [values.transpose("chain", "draw", ...).values for values in draws.data_vars.values()]
    number = leaves[0].shape[0] * leaves[0].shape[1]
    return np.concatenate([leaf.reshape(number, -1) for leaf in leaves], axis=-1, dtype=np.float64)
