"""A function of every draw and every row: arrays (chain, draw, obs, ...), a block of both at a time.

Memory holds one block of draws and rows, and the result, unless that is written to disk as it is made. A random
function is given a key of its own for every chain, draw and row, so that neither blocks nor thinning change what it
draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from mintmc import check
from mintmc.data import ArrayData, DiskData
from mintmc.result.arrays import Layout, filled
from mintmc.result.draws import Draws, stretches

if TYPE_CHECKING:
    import xarray

MOST_BYTES = 200_000_000
"""Of an array that is made without being asked for more, or kept in memory."""
_PURPOSE = 2**16
"""Folded into the seed first, so that a run of the same seed has used none of the keys."""
_NUMBERS_AT_A_TIME = 2**20
_NUMBERS_OF_PARAMS = 2**24
_PARAMS_COUNTED = 4096
"""What a row needs on its way grows with the number of parameters, but not for ever."""


@dataclass(frozen=True)
class OverRows:
    """What to compute of every draw and row."""

    each: Callable[..., Mapping[str, Any]]  # (params, rows, key of the draw, numbers of the rows) -> arrays (row, ...)
    variables: Mapping[str, Any]  # what one row gives by name, as programs are told of it
    rows: ArrayData | DiskData

    def chosen(self, draws: Draws, wanted: int | None, out: Path | None) -> Draws:
        """The draws to compute it of: so many as were asked for, or as fit."""
        per_draw = draws.chains * self._bytes
        if wanted is None and per_draw > MOST_BYTES:
            size = f"{per_draw / 1e6:,.0f} MB"
            raise ValueError(f"draws must be given, and out, where one draw of each chain takes {size}, got None")
        if wanted is None:
            return draws.thinned(min(MOST_BYTES // per_draw, draws.count))
        draws = draws.thinned(wanted)
        if out is None and per_draw * draws.count > MOST_BYTES:
            size, most = (f"{number / 1e6:,.0f} MB" for number in (per_draw * draws.count, MOST_BYTES))
            raise ValueError(f"out must be a path for an array of {size} (in memory at most {most}), got None")
        return draws

    def computed(
        self, group: str, draws: Draws, attributes: Mapping[str, Any], *, out: Path | None, seed: int, batch: int | None
    ) -> xarray.Dataset:
        """The dataset: in memory, or at ``out``."""
        draws = draws.kept()
        shapes = {
            name: jax.ShapeDtypeStruct((draws.chains, draws.count, self.rows.n, *like.shape), like.dtype)
            for name, like in self.variables.items()
        }
        coords = {name: draws.dataset[name].values for name in ("chain", "draw")}
        coords["obs"] = np.arange(self.rows.n)
        said = {**attributes, "draws_of_each_chain": draws.count, "draws_of_each_chain_sampled": draws.sampled}
        return filled(Layout(group, shapes, coords, said), self._fill(draws, seed, batch), out)

    def block(self, draws: Draws, batch: int | None) -> tuple[int, int]:
        """Rows, and draws of each chain, to work on at once: ``batch`` of both together, over all chains."""
        needed = max(self.rows.numbers_per_row, self._numbers, min(draws.numbers, _PARAMS_COUNTED))
        together = batch or max(1, _NUMBERS_AT_A_TIME // needed)
        rows = max(1, min(self.rows.n, together // draws.chains))
        most = _NUMBERS_OF_PARAMS // draws.numbers
        return rows, min(draws.count, max(1, min(most, together // rows) // draws.chains))

    @property
    def _numbers(self) -> int:
        return sum(int(np.prod(like.shape)) for like in self.variables.values())

    @property
    def _bytes(self) -> int:
        """What the result takes for one draw."""
        one = sum(int(np.prod(like.shape)) * like.dtype.itemsize for like in self.variables.values())
        return int(max(1, one * self.rows.n))

    def _fill(self, draws: Draws, seed: int, batch: int | None) -> Callable[[Mapping[str, np.ndarray], int, int], None]:
        base = jax.random.fold_in(jax.random.key(seed), _PURPOSE)
        rows_at_once, draws_at_once = self.block(draws, batch)
        chains, numbers = (draws.dataset[name].values.astype(np.uint32) for name in ("chain", "draw"))

        def one(params: Any, chain: Any, draw: Any, rows: Any, numbers: Any) -> Any:
            key = jax.random.fold_in(jax.random.fold_in(base, chain), draw)
            return self.each(params, rows, key, numbers)

        program = jax.jit(jax.vmap(one, (0, 0, 0, None, None)))

        def fill(arrays: Mapping[str, np.ndarray], begin: int, end: int) -> None:
            for first_row, last_row in stretches(end - begin, rows_at_once):
                rows = self.rows.read(begin + first_row, begin + last_row)
                which = np.arange(begin + first_row, begin + last_row, dtype=np.uint32)
                for first, last in stretches(draws.count, draws_at_once):
                    chain, draw = np.repeat(chains, last - first), np.tile(numbers[first:last], draws.chains)
                    found = program(draws.block(first, last), chain, draw, rows, which)
                    for name, values in found.items():
                        shaped = np.asarray(values).reshape(draws.chains, last - first, *values.shape[1:])
                        arrays[name][:, first:last, first_row:last_row] = shaped

        return fill


def by_row(function: Callable[..., Any], name: str, is_random: bool) -> Callable[..., Mapping[str, Any]]:
    """A user's function of params and one row, and of a key if it is random, as one of many rows."""

    def one(params: Any, row: Any, key: Any, number: Any) -> Mapping[str, Any]:
        found = function(params, row, jax.random.fold_in(key, number)) if is_random else function(params, row)
        return named_arrays(found, name)

    return jax.vmap(one, (None, 0, None, 0))


def named_arrays(found: Any, name: str) -> dict[str, Any]:
    """What a function returned, by name: a dict as it is, an array under ``name``."""
    parts = found if isinstance(found, dict) else {name: found}
    return {key: jax.numpy.asarray(part) for key, part in parts.items()}


def returned_by_row(
    function: Callable[..., Any], name: str, seed: int | None, draws: Draws, rows: Any
) -> dict[str, Any]:
    """What a function gives for one row, without running it; refuses one that gives no arrays."""
    row = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), rows.read(0, 1))
    key = () if seed is None else (jax.eval_shape(lambda: jax.random.key(0)),)
    with_key = "and no key" if seed is None else "and a key"
    takes = f"params, {check.form(draws.shapes)}, a row, {check.form(row)}, {with_key} (as {seed=})"
    found = check.returned("function", function, draws.shapes, row, *key, takes=takes)
    parts = found if isinstance(found, dict) else {name: found}
    if not parts or not all(_is_named_array(key_of, part) for key_of, part in parts.items()):
        raise ValueError(f"function must return an array, or a dict of arrays by name, got {check.form(found)}")
    result: dict[str, Any] = jax.eval_shape(lambda: named_arrays(jax.tree.map(_zeros, found), name))
    return result


def _is_named_array(name: Any, part: Any) -> bool:
    is_array = isinstance(part, (bool, int, float)) or hasattr(part, "dtype")
    return isinstance(name, str) and name not in ("chain", "draw", "obs") and is_array


def _zeros(leaf: Any) -> Any:
    return jax.numpy.zeros(leaf.shape, leaf.dtype) if hasattr(leaf, "dtype") else leaf
