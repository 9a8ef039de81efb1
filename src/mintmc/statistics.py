"""What is recorded of a step: a statistic declares its name, shape, type and how the steps of a draw reduce, once.

A kernel (or an acceptance test) declares its statistics where it computes them; a step returns their values by name.
The programs that run it, the arrays on the host, the totals of a run and the tree all follow the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mintmc import count

Info = dict[str, Any]
"""What happened in one step, by the names of the statistics that its kernel declares: recorded, never fed back."""

_REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "mean": lambda before, now: before + now,
    "sum": lambda before, now: before + now,
    "last": lambda before, now: now,
    "all": lambda before, now: before & now,
    "any": lambda before, now: before | now,
}


@dataclass(frozen=True)
class Statistic:
    """One number, or one array of numbers, that is known of every step.

    Parameters
    ----------
    name
        Its name in the tree.
    dims
        Its dimensions beside chain and draw.
    dtype
        On the host. Sums of int64 are exact: steps that run under ``jit`` carry them in two words.
    unit
        What it is counted in, for readers of the tree.
    over
        How the steps of a thinned draw reduce to one value: "mean", "sum", "last", or "all" or "any" (of flags).
    kept
        "draws" keeps one value a draw (group ``sample_stats``), "total" the sum over the run, "state" one value a draw
        for what the run shows besides (a ladder's rungs), and "watched" nothing: the run looks at it, and forgets it.
    on_host
        What makes the value as the tree has it of the value as the step returns it.
    """

    name: str
    dims: tuple[str, ...] = ()
    dtype: Any = np.float32
    unit: str = ""
    over: str = "mean"
    kept: str = "draws"
    on_host: Callable[[Any], Any] = np.asarray

    @property
    def is_wide(self) -> bool:
        """Whether its sums may need more than 32 bits."""
        return self.over == "sum" and np.dtype(self.dtype) == np.int64

    @property
    def is_packed(self) -> bool:
        """Whether it is one float or flag, which is written beside the parameters: one write instead of many."""
        return not self.dims and np.dtype(self.dtype).kind in "fb" and self.on_host is np.asarray


ACCEPTED = Statistic("accepted", dtype=bool, over="last")
ACCEPTANCE_RATE = Statistic("acceptance_rate", unit="probability")
LOG_RATIO_NOISE = Statistic("log_ratio_noise", unit="variance of the log ratio, over batches")
IS_DEFINED = Statistic("is_defined", dtype=bool, over="all", kept="total")
DATA_TOUCHED = Statistic("data_touched", dtype=np.int64, unit="rows", over="sum", on_host=count.total)
ENERGY = Statistic("energy", dtype=np.float64, unit="nats", over="last", on_host=lambda density: density.energy())

DECIDED = (ACCEPTED, ACCEPTANCE_RATE, LOG_RATIO_NOISE, IS_DEFINED)
"""What every decision about a move says of itself."""


def counted(name: str, unit: str = "rows", dims: tuple[str, ...] = (), kept: str = "draws") -> Statistic:
    """A count of each step, summed over the steps of a draw."""
    return Statistic(name, dims, np.int32, unit, over="sum", kept=kept)


def nothing(statistics: Sequence[Statistic], info: Info) -> Info:
    """What sums carry before the first step of a draw, whose report has these shapes."""
    begun = {}
    for each in statistics:
        if each.name in info:
            full = partial(jnp.full_like, fill_value=each.over == "all")
            begun[each.name] = count.nothing() if each.is_wide else jax.tree.map(full, info[each.name])
    return begun


def merge(statistics: Sequence[Statistic], before: Info, now: Info) -> Info:
    """The sums after one more step."""
    merged = {}
    for each in statistics:
        if each.name in now:
            add = count.add if each.is_wide else _REDUCTIONS[each.over]
            merged[each.name] = add(before[each.name], now[each.name])
    return merged


def reduce(statistics: Sequence[Statistic], sums: Info, steps: int) -> Info:
    """What is reported of a draw of so many steps."""
    means = [each.name for each in statistics if each.over == "mean" and each.name in sums]
    return sums if steps == 1 else sums | {name: sums[name] / steps for name in means}


def total(each: Statistic, values: Any, steps: int) -> np.ndarray:
    """The sum of a statistic over draws of so many steps each, of which a mean says the mean over its steps."""
    summed = np.asarray(values).sum(axis=0, dtype=float)
    result: np.ndarray = summed * steps if each.over == "mean" else summed
    return result


def packed(statistics: Sequence[Statistic], theta: Any, info: Info) -> Info:
    """A draw as it is written: parameters and plain statistics as one vector, the others by name."""
    names = [each.name for each in statistics if each.is_packed]
    numbers = jnp.stack([info[name] for name in names]).astype(theta.dtype)
    rest = {each.name: info[each.name] for each in statistics if not each.is_packed and each.name in info}
    return {"numbers": jnp.concatenate([theta, numbers]), **rest}


def unpacked(statistics: Sequence[Statistic], record: Info) -> tuple[Any, Info]:
    """Parameters and statistics of draws that were packed, as they were written."""
    plain = [each.name for each in statistics if each.is_packed]
    dim = record["numbers"].shape[-1] - len(plain)
    numbers = {name: record["numbers"][..., dim + i] for i, name in enumerate(plain)}
    rest = {name: value for name, value in record.items() if name != "numbers"}
    return record["numbers"][..., :dim], numbers | rest
