"""Draws and their statistics on the host: arrays that are filled stretch by stretch and handed over part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mintmc.statistics import Info, Statistic, unpacked

if TYPE_CHECKING:
    import xarray


KEPT = ("draws", "state")
"""Statistics of which every draw's value waits to be taken."""


@dataclass(frozen=True)
class Draws:
    """Arrays with leading axes (chain, draw): parameters, and statistics by name."""

    theta: np.ndarray
    statistics: dict[str, np.ndarray]

    @classmethod
    def empty(
        cls, chains: int, draws: int, statistics: Sequence[Statistic], record: Info, touched: int | None
    ) -> Draws:
        """Room for draws like ``record``, of which only some statistics are kept one by one.

        ``touched`` is what a draw reads if that is always the same.
        """
        theta = jax.eval_shape(lambda: unpacked(statistics, _zeros(record))[0])
        shapes = shapes_of(statistics, record).items()
        wanted = [(each, shape) for each, shape in shapes if each.kept in KEPT]
        kept = {each.name: np.empty((chains, draws, *shape), each.dtype) for each, shape in wanted}
        if touched is not None:
            kept["data_touched"] = np.full((chains, draws), touched, np.int64)
        return cls(np.empty((chains, draws, theta.shape[-1]), theta.dtype), kept)

    @property
    def room(self) -> int:
        """Draws of each chain that there is room for."""
        result: int = self.theta.shape[1]
        return result

    def write(self, chain: int, first: int, theta: np.ndarray, values: Info, statistics: Sequence[Statistic]) -> None:
        """Copy a stretch of one chain, from draw ``first`` on."""
        here = chain, slice(first, first + len(theta))
        self.theta[here] = theta
        for each in statistics:
            if each.kept in KEPT:
                self.statistics[each.name][here] = each.on_host(values[each.name])

    def between(self, first: int, last: int) -> Draws:
        """Some of the draws."""
        part = slice(first, last)
        return Draws(self.theta[:, part], {name: values[:, part] for name, values in self.statistics.items()})


def shapes_of(statistics: Sequence[Statistic], record: Info) -> dict[Statistic, tuple[int, ...]]:
    """The shape of each statistic of one draw, on the host; ``record`` is what a program returns, or like it."""
    values = jax.eval_shape(lambda: unpacked(statistics, _zeros(record))[1])
    return {each: values[each.name].shape[1:] if each.dims else () for each in statistics}


def _zeros(record: Info) -> Info:
    result: Info = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), record)
    return result


class Part(NamedTuple):
    """What a run hands over: draws since it was last asked, and whatever else it has to show."""

    first: int  # the number of the first of these draws
    draws: Draws
    shown: tuple[Statistic, ...]  # the statistics that belong to draws
    groups: dict[str, xarray.Dataset]  # further groups of the tree, such as "ladder"
