"""Parameters by name, one number each, and which of them mix worst."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc import check
from mintmc.result.mixing import mixing
from mintmc.result.reading import draws_group, thinned

if TYPE_CHECKING:
    import pandas

_LONGEST = 24
"""Name of a parameter beside an axis."""


def parameters(tree: Any) -> int:
    """How many numbers a draw has."""
    dataset = tree[draws_group(tree)].to_dataset()
    per_number = dataset.sizes["chain"] * dataset.sizes["draw"]
    return int(sum(variable.size for variable in dataset.data_vars.values()) // max(per_number, 1))


def worst(tree: Any, most: int, names: Sequence[str] | None = None) -> pandas.DataFrame:
    """The parameters with the smallest bulk ESS: mean, spread, ESS and R-hat of each, the worst first.

    Of a long run every so many draws are judged, as ``diagnose`` does.
    """
    from pandas import DataFrame

    dataset = thinned(tree[draws_group(tree)], *(names or ()))
    draws = stacked(dataset)
    columns = {
        "mean": draws.mean(axis=(0, 1)),
        "sd": draws.std(axis=(0, 1), ddof=1),
        **dict(zip(("ess_bulk", "ess_tail", "r_hat"), mixing(draws), strict=True)),
    }
    table = DataFrame(columns, index=list(labels(dataset)))
    chosen = table.iloc[np.argsort(table["ess_bulk"].to_numpy(), kind="stable")[:most]]
    return chosen.round({"ess_bulk": 0, "ess_tail": 0, "r_hat": 3})


def stacked(dataset: Any) -> np.ndarray:
    """All variables of a dataset as one array (chain, draw, parameter)."""
    arrays = [variable.transpose("chain", "draw", ...).values for variable in dataset.data_vars.values()]
    return np.concatenate([array.reshape(*array.shape[:2], -1) for array in arrays], axis=2)


def labels(dataset: Any) -> Iterator[str]:
    """Names of those parameters, in that order: ``mean``, ``slope[age]``, ``theta[0, 3]``."""
    for name, variable in dataset.data_vars.items():
        dims = [dim for dim in variable.dims if dim not in ("chain", "draw")]
        along = [
            variable[dim].values.tolist() if dim in variable.coords else range(variable.sizes[dim]) for dim in dims
        ]
        for at in product(*along):
            yield f"{name}[{', '.join(map(str, at))}]" if dims else str(name)


def shortened(name: str) -> str:
    """A name that fits beside an axis.

    Examples
    --------
    >>> shortened("effect_of_the_country_of_birth[peru]")
    'effect_of_the_c…th[peru]'
    """
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 9]}…{name[-8:]}"


def known_names(tree: Any, var_names: Any) -> list[str]:
    """Names of parameters of a tree, checked."""
    names = [var_names] if isinstance(var_names, str) else check.listed("var_names", var_names, "a list of names")
    known = sorted(map(str, tree[draws_group(tree)].data_vars))
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise ValueError(f"var_names must be among {', '.join(known)}, got {check.shown(name)}")
    if not names:
        raise ValueError(f"var_names must name at least one parameter, got {check.shown(var_names)}")
    return names
