"""Leave-one-out estimates, and models compared by them; ArviZ finds them.

What is left to us: the draws of a group ``log_likelihood`` may be fewer than those of the posterior, and the relative
efficiency that Pareto smoothing asks for (ESS over number) must be that of the draws that it smooths.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc import check
from mintmc.result.reading import draws_group
from mintmc.result.tempered import warn_if_tempered

if TYPE_CHECKING:
    import pandas
    import xarray

_HOW = "use mintmc.add_log_likelihood(tree, posterior)"


def loo(tree: xarray.DataTree, **settings: Any) -> Any:
    """``arviz_stats.loo`` of a tree with a group ``log_likelihood``, which may have fewer draws than the posterior.

    Parameters
    ----------
    tree
        What ``add_log_likelihood`` returned.
    settings
        Of ``arviz_stats.loo``: ``pointwise``, ``var_name``, ``reff``...

    Examples
    --------
    See ``add_log_likelihood``.
    """
    from arviz_stats import loo as of_arviz

    _check(tree, "tree")
    warn_if_tempered(tree, "loo")
    settings.setdefault("reff", relative_efficiency(tree))
    return of_arviz(tree, **settings)


def compare(trees: Mapping[str, xarray.DataTree], **settings: Any) -> pandas.DataFrame:
    """Compare models of the same observations by their leave-one-out estimates: the table of ``arviz_stats.compare``.

    Parameters
    ----------
    trees
        Runs by name, each with a group ``log_likelihood`` (``add_log_likelihood``).
    settings
        Of ``arviz_stats.compare``: ``method``, ``var_name``.

    Examples
    --------
    >>> import mintmc
    >>> for tree, posterior in ((thin, thin_tails), (heavy, heavy_tails)):  # doctest: +SKIP
    ...     mintmc.add_log_likelihood(tree, posterior)
    >>> mintmc.compare({"normal": thin, "student": heavy})  # doctest: +SKIP
    """
    from arviz_stats import compare as of_arviz

    if not isinstance(trees, Mapping) or len(trees) < 2:
        raise TypeError(f"trees must be a dict of at least two trees by name, got {check.shown(trees)}")
    for name, tree in trees.items():
        _check(tree, f"trees[{name!r}]")
        warn_if_tempered(tree, f"compare, {name!r}")
    rows = {name: tree["log_likelihood"].sizes.get("obs") for name, tree in trees.items()}
    if len(set(rows.values())) > 1:
        raise ValueError(f"trees must be models of the same observations, got {rows} rows")
    variable = {"var_name": settings["var_name"]} if "var_name" in settings else {}
    # Without the weights of every draw and row: they are not compared, and take much memory.
    found = {name: replace(_loo(tree, **variable), log_weights=None) for name, tree in trees.items()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The inplace keyword")  # ArviZ's own use of pandas, not the user's
        table: pandas.DataFrame = of_arviz(found, **settings)
    return table


def relative_efficiency(tree: xarray.DataTree) -> float:
    """ESS over number of the draws whose log-likelihoods a tree holds, the mean over parameters, as ArviZ has it."""
    from arviz_stats import ess
    from xarray import DataTree

    used = tree["log_likelihood"].to_dataset()
    draws = tree[draws_group(tree)].to_dataset()
    if draws.sizes["chain"] == 1:
        return 1.0
    thinned = draws.isel(draw=np.isin(draws["draw"].values, used["draw"].values)).compute()
    if thinned.sizes["draw"] < 4:  # too few to tell
        return 1.0
    with np.errstate(all="ignore"):
        found = ess(DataTree.from_dict({"posterior": thinned}), method="mean")
    effective = np.concatenate([variable.values.ravel() for variable in found.data_vars.values()])
    mean = float(np.nanmean(effective)) / (thinned.sizes["chain"] * thinned.sizes["draw"])
    return mean if np.isfinite(mean) and mean > 0 else 1.0


def _loo(tree: Any, **settings: Any) -> Any:
    from arviz_stats import loo as of_arviz

    return of_arviz(tree, pointwise=True, reff=relative_efficiency(tree), **settings)


def _check(tree: Any, name: str) -> None:
    """Refuse a tree without log-likelihoods."""
    try:
        check.tree(tree)
    except TypeError as error:
        raise TypeError(f"{name}{str(error).removeprefix('tree')}") from None
    if "log_likelihood" not in tree.children:
        groups = sorted(map(str, tree.children))
        raise ValueError(f"{name} must have a group log_likelihood ({_HOW}), got {groups}")
    draws_group(tree)
