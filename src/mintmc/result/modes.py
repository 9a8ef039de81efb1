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
from mintmc.result.labels import MOST_MODES, clustered, labelled
from mintmc.result.reading import draws_group
from mintmc.result.regional import Shares, regional
from mintmc.result.rung_energies import kept_rungs

if TYPE_CHECKING:
    import xarray

BATCHES = 20
METHODS = ("counting", "regional")


class Agreement(NamedTuple):
    """How far chains disagree on the weights of modes."""

    chi_square: float
    freedom: int
    p_value: float  # how likely chains that agree are to differ so much


def mode_weights(
    tree: xarray.DataTree,
    label: Callable[[Any], Any] | None = None,
    count: int | None = None,
    seed: int = 0,
    method: str = "counting",
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
    method
        "counting" takes the share of draws in each mode. "regional" takes that of the hottest rung on all data, and
        follows each mode down the ladder by energies alone: with fewer draws than would have to find their way down,
        and without the noise of who happened to. It needs a ladder with ``keep_rungs=True``, at least two rungs on all
        data, and labels that are a fixed function of the state; the hottest rung must visit every mode.

    Returns
    -------
    xarray.Dataset
        ``weight`` and ``error`` (mode), ``chain_weight`` and ``chain_error`` (chain, mode), ``label`` (chain, draw) of
        the draws at T = 1, and the cluster's ``centre`` (mode, parameter) if found by k-means.

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
    known = count if count is None else check.integer("count", count, 1, most=MOST_MODES)
    seed = check.integer("seed", seed, 0, 2**32 - 1)
    is_regional = check.choice("method", method, METHODS) == "regional"
    energies, states = kept_rungs(tree) if is_regional else (None, None)
    parts = [draws] if states is None else [states.isel(rung=rung) for rung in range(states.sizes["rung"])]
    centres = {}
    if label is not None:
        labels = labelled(parts, check.function("label", label), known)
    elif known is not None:
        labels, centre = clustered(parts, known, seed)
        centres = {"centre": (("mode", "parameter"), centre)}
    elif "modes" in tree.children:
        labels, known = np.asarray(tree["sample_stats"]["mode"])[None], tree["modes"].sizes["mode"]
    else:
        raise ValueError("label or count must be given, got neither")
    known = known or int(labels.max()) + 1
    found = _counted(labels[0], known) if energies is None else regional(energies, labels, known)
    means = batch_means(found.of_draws).reshape(-1, known)
    return xarray.Dataset(
        {
            "weight": ("mode", found.weight),
            "error": ("mode", _error(tree, means, found.chain_weight)),
            "chain_weight": (("chain", "mode"), found.chain_weight),
            "chain_error": (("chain", "mode"), standard_error(batch_means(found.of_chains).swapaxes(0, 1))),
            "label": (("chain", "draw"), labels[0]),
            **centres,
        },
        {"mode": np.arange(known), "chain": np.arange(labels.shape[1])},
    )


def _counted(labels: np.ndarray, modes: int) -> Shares:
    """The shares of draws in each mode."""
    inside = labels[..., None] == np.arange(modes)
    return Shares(inside.mean(axis=(0, 1)), inside.mean(axis=1), inside, inside)


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
    if len(found) > MOST_MODES or (found != np.round(found)).any():
        raise ValueError(f"labels must be whole numbers, at most {MOST_MODES} of them, got {check.shown(given)}")
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
