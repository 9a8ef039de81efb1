"""Stores as tests make, break and compare them."""

import os

import numpy as np
import xarray

from mintmc.result.reading import draws_group
from mintmc.store import chunks
from mintmc.store.run_store import RunStore

CHAINS, PARTS, PER_PART = 2, 2, 40


def part_of(first, draws=PER_PART):
    """A tree like that of a run: draws that know their number, a statistic, and something that is not a draw."""
    number = np.broadcast_to(np.arange(first, first + draws), (CHAINS, draws)).astype(float)
    coords = {"chain": np.arange(CHAINS), "draw": np.arange(first, first + draws)}
    theta = xarray.Dataset({"theta": (("chain", "draw", "d"), np.stack([number, -number], -1))}, coords)
    stats = xarray.Dataset({"energy": (("chain", "draw"), number)}, coords)
    ladder = xarray.Dataset({"rate": (("rung",), np.full(3, float(first)))})
    return xarray.DataTree.from_dict({"posterior": theta, "sample_stats": stats, "ladder": ladder})


def write(path, parts=PARTS):
    """Go on with the store until all parts are there, as a run does."""
    store = RunStore(path)
    while (done := 0 if store.done is None else store.done["drawn"]) < parts * PER_PART:
        tree = part_of(done)
        store.append(tree)
        store.commit({"seed": 1}, {"drawn": done + PER_PART}, [np.arange(done + PER_PART), np.array(1.5)])


class FaultAt:
    """Counts every write, rename and fsync, and fails at one of them."""

    def __init__(self, monkeypatch, at, error):
        self.count, self.at, self.error = 0, at, error
        for owner, name in ((chunks, "write"), (os, "replace"), (os, "fsync"), (np, "savez")):
            monkeypatch.setattr(owner, name, self.wrap(getattr(owner, name)))

    def wrap(self, function):
        def wrapped(*args, **kwargs):
            self.count += 1
            if self.count == self.at:
                raise self.error
            return function(*args, **kwargs)

        return wrapped


def arrays(tree):
    """Everything that depends on the draws."""
    found = {}
    for group in (draws_group(tree), "sample_stats", "ladder", "rungs"):
        if group in tree.children:
            found |= {f"{group}.{name}": values for name, values in tree[group].data_vars.items()}
    return found


def assert_same(one, other):
    one, other = arrays(one), arrays(other)
    assert one.keys() == other.keys()
    for name, values in one.items():
        if "draw" in values.dims:
            np.testing.assert_array_equal(values, other[name], err_msg=name)
        else:  # means over all draws, added up in other portions
            np.testing.assert_allclose(values, other[name], rtol=1e-12, err_msg=name)
