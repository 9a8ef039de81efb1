"""What happened on the rungs of a ladder: groups ``ladder`` and ``rungs`` of the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc.flat import FlatTarget

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class LadderFacts:
    """Numbers of a run on a ladder; leading axes (rung, chain) unless said otherwise."""

    temperatures: Sequence[float]
    batch_sizes: Sequence[int]
    energy: np.ndarray  # (rung, chain, draw), of what is tempered, above that of the reference
    rates: dict[str, np.ndarray]
    round_trips: np.ndarray | None = None  # (chain,)
    replica: np.ndarray | None = None  # (rung, chain, draw)
    ring_occupancy: np.ndarray | None = None  # (rung, chain, ring), shares
    ring_edges: np.ndarray | None = None  # (rung, chain, edge), above the reference
    landmarks: dict[str, np.ndarray] = field(default_factory=dict)  # (chain,) or (chain, parameter)
    attributes: dict[str, Any] = field(default_factory=dict)


def ladder_group(facts: LadderFacts) -> xarray.Dataset:
    """The group of the tree."""
    import xarray

    named = {
        "temperature": (("rung",), np.asarray(facts.temperatures)),
        "batch_size": (("rung",), np.asarray(facts.batch_sizes)),
        "energy": (("rung", "chain", "draw"), facts.energy),
        **{name: (("rung", "chain"), values) for name, values in facts.rates.items()},
        "round_trips": (("chain",), facts.round_trips),
        "replica": (("rung", "chain", "draw"), facts.replica),
        "ring_occupancy": (("rung", "chain", "ring"), facts.ring_occupancy),
        "ring_edges": (("rung", "chain", "edge"), facts.ring_edges),
        **{name: (("chain", "parameter")[: values.ndim], values) for name, values in facts.landmarks.items()},
    }
    known = {name: entry for name, entry in named.items() if entry[1] is not None}
    rungs, chains, draws = facts.energy.shape
    coords = {"rung": np.arange(rungs), "chain": np.arange(chains), "draw": np.arange(draws)}
    return xarray.Dataset(known, coords, facts.attributes)


def rungs_group(target: FlatTarget, theta: np.ndarray) -> xarray.Dataset:
    """The states of all rungs (rung, chain, draw, d), with the names and axes that draws have."""
    import xarray

    of_all, named = ("rung", "chain", "draw"), {}
    for name, values in target.shown(theta).items():
        own = target.dims.get(name) or [f"{name}_dim_{axis}" for axis in range(values.ndim - len(of_all))]
        named[name] = ((*of_all, *own), values)
    found = xarray.Dataset(named)
    axes = {str(dim): np.arange(size) for dim, size in found.sizes.items()}
    return found.assign_coords({dim: target.coords.get(dim, numbers) for dim, numbers in axes.items()})
