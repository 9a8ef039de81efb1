"""How much weight the draws give to each mode, and whether the chains agree on it.

Chains that seldom cross from mode to mode may look healthy in every parameter and disagree on the weights. With w_cj
the share of chain c in mode j, w_j that of all chains and n_c the chain's effective number of draws,

    X^2 = sum_c n_c sum_j (w_cj - w_j)^2 / w_j

is about chi-square with (chains - 1) (modes - 1) degrees of freedom if they agree. The n_c are estimated, by batch
means, so it is judged as an F statistic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mintmc import check
from mintmc.result.reading import draws_group

if TYPE_CHECKING:
    import xarray

BATCHES = 20
_MOST_MODES = 2**16
"""Far more than draws can tell apart."""


class Agreement(NamedTuple):
    """How far chains disagree on the weights of modes."""

    chi_square: float
    freedom: int
    p_value: float  # how likely chains that agree are to differ so much


def mode_weights(
    tree: xarray.DataTree, label: Callable[[Any], Any] | None = None, count: int | None = None, seed: int = 0
) -> xarray.Dataset:
    """Weights of modes, of each chain and of all of them, with standard errors from batch means.

    The error of all chains is that of their spread if it is larger: an equi-energy chain jumps to states that its
    ladder remembers, so its draws may agree with each other and not with the truth. Chains that share their rings are
    one ladder, whose error is not known (NaN).

    Parameters
    ----------
    tree
        What ``sample`` returned.
    label
        The mode of every draw, as whole numbers from 0: a function of all draws, an array with leading axes (chain,
        draw), or a dict of such arrays where params is a dict. None finds ``count`` clusters by k-means; of a run with
        leaps, which knows its modes, neither is needed.
    count
        Number of modes; with ``label`` it may be left out, and modes beyond the last one visited are then unknown.
    seed
        Of k-means.

    Returns
    -------
    xarray.Dataset
        ``weight`` and ``error`` (mode), ``chain_weight`` and ``chain_error`` (chain, mode), ``label`` (chain, draw),
        and the cluster's ``centre`` (mode, parameter) if found by k-means.

    Examples
    --------
    >>> import jax.numpy as jnp, mintmc
    >>> from mintmc.result.modes import mode_weights
    >>> two_modes = mintmc.Posterior.from_density(lambda x: jnp.logaddexp(-0.5 * (x - 9) ** 2, -0.5 * (x + 9) ** 2))
    >>> sampler = mintmc.EquiEnergy(mintmc.Ladder.geometric(hottest=50, rungs=4))
    >>> tree = mintmc.sample(two_modes, sampler, init=9.0, draws=2000, warmup=500, chains=2, progress=False)
    >>> weights = mode_weights(tree, label=lambda x: x > 0)
    >>> weights.weight.shape, weights.chain_weight.shape, round(float(weights.weight.sum()), 6)
    ((2,), (2, 2), 1.0)
    """
    import xarray

    draws = check.tree(tree)[draws_group(tree)]
    known = count if count is None else check.integer("count", count, 1, most=_MOST_MODES)
    seed = check.integer("seed", seed, 0, 2**32 - 1)
    centres = {}
    if label is not None:
        labels = _labelled(draws, check.function("label", label), known)
    elif known is not None:
        labels, centre = _clustered(draws, known, seed)
        centres = {"centre": (("mode", "parameter"), centre)}
    elif "modes" in tree.children:
        labels, known = np.asarray(tree["sample_stats"]["mode"]), tree["modes"].sizes["mode"]
    else:
        raise ValueError("label or count must be given, got neither")
    known = known or int(labels.max()) + 1
    inside = labels[..., None] == np.arange(known)
    means, weights = batch_means(inside), inside.mean(axis=1)
    return xarray.Dataset(
        {
            "weight": ("mode", inside.mean(axis=(0, 1))),
            "error": ("mode", _error(tree, means.reshape(-1, known), weights)),
            "chain_weight": (("chain", "mode"), weights),
            "chain_error": (("chain", "mode"), standard_error(means.swapaxes(0, 1))),
            "label": (("chain", "draw"), labels),
            **centres,
        },
        {"mode": np.arange(known), "chain": np.arange(len(labels))},
    )


def _error(tree: Any, means: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The standard error of the weights of all chains, from means of stretches and from the spread of the chains."""
    from scipy.stats import norm, t

    within, between, chains = standard_error(means), standard_error(weights), len(weights)
    groups = tree["ladder"].attrs.get("ring_groups") if "ladder" in tree.children else None
    if groups is None:
        return np.asarray(np.maximum(within, between))
    if groups == 1:
        return np.full_like(within, np.nan)
    # Of rings only the spread of the chains tells, and a few chains tell it badly: as wide as Student's t.
    return np.asarray(np.maximum(within, between * t.isf(norm.sf(1), chains - 1)))


def relative_variance(weights: Any) -> float:
    """How far k weights are from being equal, k * sum (w - 1/k)^2: 0 if they are, k - 1 if one has all.

    Examples
    --------
    >>> from mintmc.result.modes import relative_variance
    >>> relative_variance([0.25, 0.75]), relative_variance([0.0, 1.0])
    (0.25, 1.0)
    """
    w = check.array("weights", weights)
    if w.size == 0 or (w < 0).any() or (w > 1 + 1e-6).any():  # sums of float32 may exceed 1
        raise ValueError(f"weights must be one number or more in [0, 1], got {check.shown(weights)}")
    return float(w.size * np.sum((w - 1 / w.size) ** 2))


def agreement(labels: Any) -> Agreement:
    """Whether chains agree on the weights of modes; ``labels`` are whole numbers (chain, draw).

    Examples
    --------
    >>> import numpy as np
    >>> from mintmc.result.modes import agreement
    >>> labels = np.random.default_rng(0).integers(0, 3, size=(4, 1000))
    >>> agreement(labels).p_value > 0.01
    True
    """
    from scipy.stats import f

    given, labels = labels, check.array("labels", labels)
    if labels.ndim != 2:
        raise ValueError(f"labels must have axes (chain, draw), got shape {labels.shape}")
    if labels.shape[0] == 0 or labels.shape[1] < 2:
        raise ValueError(f"labels must have at least 2 draws of a chain, got shape {labels.shape}")
    found = np.unique(labels)
    if len(found) > _MOST_MODES or (found != np.round(found)).any():
        raise ValueError(f"labels must be whole numbers, at most {_MOST_MODES} of them, got {check.shown(given)}")
    inside = labels[..., None] == found
    chains, draws, modes = inside.shape
    freedom = (chains - 1) * (modes - 1)
    if freedom == 0:
        return Agreement(0.0, 0, 1.0)
    means, weights, pooled = batch_means(inside), inside.mean(axis=1), inside.mean(axis=(0, 1))
    variance = (means.var(axis=1, ddof=1) / means.shape[1]).sum(axis=1)
    # A chain that never leaves its mode has no variance: it is taken at its word.
    effective = np.clip(np.sum(pooled * (1 - pooled)) / np.maximum(variance, 1e-30), 1, draws)
    chi_square = float(effective @ np.sum((weights - pooled) ** 2 / pooled, axis=1))
    p_value = f.sf(chi_square / freedom, freedom, chains * (means.shape[1] - 1))
    return Agreement(chi_square, freedom, float(p_value))


def batch_means(values: np.ndarray) -> np.ndarray:
    """Means of (chain, draw, ...) over up to 20 stretches of draws: (chain, stretch, ...)."""
    chains, draws, *others = values.shape
    if draws < 2:
        raise ValueError(f"tree must have at least 2 draws for standard errors, got {draws}")
    length = max(1, draws // BATCHES)
    stretches = draws // length
    result: np.ndarray = values[:, : stretches * length].reshape(chains, stretches, length, *others).mean(axis=2)
    return result


def standard_error(means: np.ndarray) -> np.ndarray:
    """The standard error of a mean over the first axis; 0 if there is nothing to tell it from."""
    return means.std(axis=0, ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.zeros(means.shape[1:])


def _labelled(draws: Any, label: Callable[[Any], Any], count: int | None) -> np.ndarray:
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
    highest = _MOST_MODES if count is None else count
    if labels.min() < 0 or labels.max() >= highest:
        below = "" if count is None else f" and below count={count}"
        raise ValueError(f"label must return numbers from 0{below}, got {labels.min()} to {labels.max()}")
    return labels.astype(int)


def _clustered(draws: Any, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    try:
        from sklearn.cluster import KMeans
    except ImportError:
        raise ImportError("mode_weights by k-means needs scikit-learn: pip install 'mintmc[kmeans]'") from None
    shape = (draws.sizes["chain"], draws.sizes["draw"])
    check.integer("count", count, 1, shape[0] * shape[1], "number of draws")
    parts = [values.transpose("chain", "draw", ...).values.reshape(*shape, -1) for values in draws.data_vars.values()]
    theta = np.concatenate(parts, axis=-1, dtype=np.float64).reshape(shape[0] * shape[1], -1)
    found = KMeans(count, n_init=10, random_state=seed).fit(theta)
    # The numbers of clusters are arbitrary: from the lowest centre to the highest they are not.
    order = np.lexsort(found.cluster_centers_.T[::-1])
    return np.argsort(order)[found.labels_].reshape(shape), found.cluster_centers_[order]
