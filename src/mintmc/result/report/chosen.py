"""What a page shows of the draws: every so many of a long run, and of many parameters the worst."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc.result.diagnosis import Diagnosis
from mintmc.result.reading import draws_group, judged_every, thinned
from mintmc.result.summary import summary
from mintmc.result.tempered import TemperedDraws

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Draws:
    """Draws that a page is made of, and the table of them."""

    values: np.ndarray  # (chain, draw, parameter)
    every: int  # which of the run's draws they are
    table: pandas.DataFrame  # a row for each parameter, by its name
    worst: np.ndarray  # numbers of parameters, from the worst R-hat and ESS to the best

    @property
    def names(self) -> list[str]:
        """One for each parameter, such as ``slope[age]``."""
        return [str(name) for name in self.table.index]

    def number(self, column: str, parameter: int) -> float:
        """A number of the table; NaN if there is none."""
        return float(self.table[column].iloc[parameter]) if column in self.table else np.nan


@dataclass(frozen=True)
class Told:
    """All that a page tells of: a run, what speaks against it, and its draws."""

    tree: Any
    diagnosis: Diagnosis
    draws: Draws
    record: dict[str, str]  # what a store knows of its run; empty where there is none


def choose(tree: Any) -> Draws:
    """The draws by which a run is judged, and so the same numbers."""
    from xarray import DataTree

    group = draws_group(tree)
    dataset, every = thinned(tree[group]), judged_every(tree[group].to_dataset())
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", TemperedDraws)  # the page says it better
        table = summary(DataTree.from_dict({group: dataset}), round_to="none")
    parts = [values.transpose("chain", "draw", ...).values for values in dataset.data_vars.values()]
    values = np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts], axis=-1, dtype=np.float64)
    return Draws(np.where(np.isfinite(values), values, np.nan), every, table, _worst(table))


def _worst(table: pandas.DataFrame) -> np.ndarray:
    """By R-hat, and by ESS among equals; what has neither comes first: it never changed."""
    rhat = table["r_hat"].to_numpy(float) if "r_hat" in table else np.ones(len(table))
    least = np.minimum(table["ess_bulk"].to_numpy(float), table["ess_tail"].to_numpy(float))
    return np.lexsort((np.nan_to_num(least, nan=0.0), -np.nan_to_num(rhat, nan=np.inf, posinf=np.inf).round(2)))
