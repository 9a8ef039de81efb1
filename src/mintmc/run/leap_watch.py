"""What there is to see of a run with leaps: group ``modes`` of the tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from mintmc.flat import FlatTarget
from mintmc.result.bridge import PROPOSED
from mintmc.run.beside import Watcher
from mintmc.run.draws import Draws
from mintmc.run.survey import Survey
from mintmc.statistics import Info


class LeapWatcher(Watcher):
    """Visits to every mode, and leaps between every two of them."""

    def __init__(self, survey: Survey, chains: int, target: FlatTarget):
        self.survey, self.target = survey, target
        places = survey.places
        self.visits = np.zeros((chains, places))
        self.tried, self.rates = np.zeros((chains, places, places)), np.zeros((chains, places, places))

    def begin(self, states: list[Any]) -> list[int]:
        """Nothing is read."""
        return [0] * len(states)

    def note(self, chain: int, state: Any, values: Info | None) -> None:
        """Count the draws of a stretch."""
        if values is None:
            return
        np.add.at(self.visits[chain], values["mode"], 1)
        pairs = (values["leap_from"], values["leap_to"])
        np.add.at(self.tried[chain], pairs, 1)
        np.add.at(self.rates[chain], pairs, values["leap_rate"])

    def checkpoint(self) -> Any:
        """The counts."""
        return self.visits, self.tried, self.rates

    def restore(self, checkpoint: Any) -> None:
        """Go on from a checkpoint."""
        self.visits, self.tried, self.rates = checkpoint

    def facts(self, totals: dict[str, np.ndarray]) -> dict[str, Any]:
        """Nothing beside the group."""
        return {}

    def groups(self, draws: Draws, totals: dict[str, np.ndarray], steps: int) -> dict[str, Any]:
        """Group ``modes``."""
        import xarray

        survey, known = self.survey, slice(self.survey.known)
        chains = len(self.visits)
        shares = self.visits[:, known] / np.maximum(self.visits.sum(axis=1, keepdims=True), 1)
        with np.errstate(invalid="ignore"):
            rates = self.rates.sum(axis=0)[known, known] / self.tried.sum(axis=0)[known, known]
        named: dict[str, Any] = {
            "weight": (("mode",), shares.mean(axis=0)),
            "chain_weight": (("chain", "mode"), shares),
            "fitted_weight": (("mode",), survey.fitted_weights()),
            "energy": (("mode",), survey.energy[known]),
            "starts": (("mode",), survey.starts[known]),
            "leap_rate": (("mode", "to_mode"), rates),
            "leaps": (("mode", "to_mode"), self.tried.sum(axis=0)[known, known]),
        }
        if survey.chart is None:
            named |= {name: (("proposal",), row) for name, row in zip(PROPOSED, survey.proposed, strict=True)}
        mean = np.asarray(survey.landscape.mean)[known]
        scale = np.sqrt((np.asarray(survey.landscape.factor) ** 2).sum(axis=2))[known]
        for prefix, flat in (("end", survey.ends[known].astype(mean.dtype)), ("mean", mean), ("scale", scale)):
            for name, values in self.target.free(flat).items():
                dims = [f"{name}_dim_{axis}" for axis in range(values.ndim - 1)]
                named[f"{prefix}_{name}"] = (("mode", *dims), values)
        numbers = np.arange(survey.known)
        coords = {"mode": numbers, "to_mode": numbers, "chain": np.arange(chains)}
        return {"modes": xarray.Dataset(named, coords)}
