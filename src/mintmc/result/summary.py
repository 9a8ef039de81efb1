"""The table of means, spreads, ESS and R-hat of a run; ArviZ makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc import check
from mintmc.result.mixing import errors, mixing
from mintmc.result.reading import draws_group
from mintmc.result.tempered import warn_if_tempered
from mintmc.result.worst import known_names, stacked

if TYPE_CHECKING:
    import pandas
    import xarray

_DRAWS = ("posterior", "tempered_posterior")
_MANY = 40
"""Parameters from which on they are taken together: the same numbers, but a thousand of them in a second."""


def summary(tree: xarray.DataTree, **settings: Any) -> pandas.DataFrame:
    """The table of ``arviz_stats.summary`` for the draws of a run, whatever their temperature.

    Draws at T > 1 are not draws of the posterior: a warning says so, and so does ``table.attrs["temperature"]``.

    Parameters
    ----------
    tree
        What ``sample`` returned.
    settings
        Of ``arviz_stats.summary``: ``var_names``, ``kind``, ``ci_prob``, ``round_to``... Without ``round_to`` numbers
        have the decimals that show a standard deviation to three digits: with many observations it is small.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(size=1000)
    >>> posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    >>> tree = mintmc.sample(posterior, mintmc.MetropolisHastings(), init=0.0, progress=False)
    >>> table = mintmc.summary(tree, round_to=None)
    >>> list(table.index), bool(table.loc["theta", "r_hat"] < 1.05)
    (['theta'], True)
    """
    from arviz_stats import summary as of_arviz

    group = settings.pop("group", None) or draws_group(check.tree(tree))
    check.tree(tree, group)
    if group == "tempered_posterior":
        warn_if_tempered(tree, "summary")
    if settings.get("var_names") is not None and "filter_vars" not in settings and group in _DRAWS:
        settings["var_names"] = known_names(tree, settings["var_names"])
    table = _of_many(tree, group, settings)
    if table is None:
        table = of_arviz(tree, group=group, **{"round_to": "none", **settings})
    if "round_to" not in settings and "sd" in getattr(table, "columns", ()):
        table = _rounded(table)
    if "temperature" in tree.attrs:
        table.attrs["temperature"] = float(tree.attrs["temperature"])
    return table


def _of_many(tree: Any, group: str, settings: dict[str, Any]) -> pandas.DataFrame | None:
    """The same table where there are many parameters, which ArviZ takes one by one; None if it is left to ArviZ."""
    from arviz_stats import summary as of_arviz

    if (
        group not in _DRAWS
        or not set(settings) <= {"var_names", "round_to"}
        or settings.get("round_to", "none") != "none"
    ):
        return None
    names = settings.get("var_names")
    dataset = tree[group].to_dataset() if names is None else tree[group].to_dataset()[names]
    if sum(variable[{"chain": 0, "draw": 0}].size for variable in dataset.data_vars.values()) < _MANY:
        return None
    draws = stacked(dataset).astype(np.float64)
    table: pandas.DataFrame = of_arviz(tree, group=group, var_names=names, kind="stats", round_to="none")
    if len(table) != draws.shape[2]:
        return None
    columns = ("ess_bulk", "ess_tail", "r_hat", "mcse_mean", "mcse_sd")
    return table.assign(**dict(zip(columns, (*mixing(draws), *errors(draws)), strict=True)))


def decimals(table: pandas.DataFrame) -> dict[str, list[int]]:
    """How many decimals to show, by column: those that a row's deviation asks for; counts and R-hat have their own."""
    with np.errstate(divide="ignore", invalid="ignore"):
        digits = 2 - np.floor(np.log10(table["sd"].to_numpy(float)))
    places = np.where(np.isfinite(digits), np.clip(digits, 0, 15), 3).astype(int)
    fixed = {"ess_bulk": 0, "ess_tail": 0, "ess_mean": 0, "r_hat": 3}
    return {
        str(name): [int(fixed.get(str(name), 1 + own if str(name).startswith("mcse") else own)) for own in places]
        for name in table.columns
    }


def _rounded(table: pandas.DataFrame) -> pandas.DataFrame:
    shown = table.copy()
    for name, each in decimals(table).items():
        values = table[name].to_numpy(float)
        shown[name] = [round(value, places) for value, places in zip(values, each, strict=True)]
    return shown
