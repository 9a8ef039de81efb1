"""From the variables of a tree back to params: one draw of them, or a function of every draw.

A tree holds one variable for each leaf of params, named by its path. ``sample`` writes down how dicts, lists, tuples
and bare arrays are put together from them; classes of a user's own (a network) are known by an example, ``like``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from mintmc import check
from mintmc.data import named_leaves
from mintmc.params import Params, is_params, named
from mintmc.result.reading import PARAMS, draws_group
from mintmc.result.tempered import warn_if_tempered
from mintmc.store.encode import decode

if TYPE_CHECKING:
    import xarray

_NUMBERS_AT_A_TIME = 2**22
"""Of params that a block of draws holds."""
_DRAWS_AT_A_TIME = 1024
_BYTES_KEPT = 2**28
"""Draws that take no more than this are read once; of larger ones a block is read whenever it is needed."""


@dataclass(frozen=True)
class Draws:
    """Some draws of every chain, as params."""

    dataset: Any  # variables (chain, draw, ...), one for each leaf
    leaves: tuple[tuple[str, Any], ...]  # their names, and types where an example says so, in the order of the leaves
    structure: Any
    sampled: int  # how many draws of each chain there are in the tree

    @classmethod
    def of(cls, tree: Any, like: Params = None, draws: int | None = None) -> Draws:
        """Those of a tree: all, or ``draws`` of every chain, evenly spaced."""
        part = tree[draws_group(check.tree(tree))].to_dataset()
        if not (part.sizes.get("chain", 0) and part.sizes.get("draw", 0)):
            raise ValueError(f"tree must have draws, got sizes {dict(part.sizes)}")
        example = _form(tree, part) if like is None else _checked(like, tree, part)
        leaves = tuple((name, _float_type(leaf)) for name, leaf in named(example))
        found = cls(part[[name for name, _ in leaves]], leaves, jax.tree.structure(example), part.sizes["draw"])
        return found if draws is None else found.thinned(draws)

    def thinned(self, draws: int) -> Draws:
        """So many of every chain."""
        draws = check.integer("draws", draws, 1, self.count, "the draws of a chain")
        if draws == self.count:
            return self
        at = np.arange(draws) * self.count // draws
        return replace(self, dataset=self.dataset.isel(draw=at))

    @property
    def chains(self) -> int:
        """How many chains there are."""
        return int(self.dataset.sizes["chain"])

    @property
    def count(self) -> int:
        """How many draws each has."""
        return int(self.dataset.sizes["draw"])

    @property
    def numbers(self) -> int:
        """How many numbers one draw is made of."""
        return int(sum(leaf.size for leaf in self.dataset.data_vars.values()) // (self.chains * self.count))

    @property
    def shapes(self) -> Params:
        """Params as programs are told of them."""
        one = self.dataset.isel(chain=0, draw=0)
        shapes = [
            jax.ShapeDtypeStruct(one[name].shape, jax.dtypes.canonicalize_dtype(dtype or one[name].dtype))
            for name, dtype in self.leaves
        ]
        return jax.tree.unflatten(self.structure, shapes)

    def kept(self) -> Draws:
        """The same, in memory if they are few: a store would be read again and again."""
        few = self.dataset.nbytes <= _BYTES_KEPT
        return replace(self, dataset=self.dataset.compute()) if few else self

    def block(self, first: int, last: int) -> Params:
        """Params of these draws of all chains, one chain after the other, along one leading axis."""
        part = self.dataset.isel(draw=slice(first, last))

        def leaf(name: str, dtype: Any) -> np.ndarray:
            values: np.ndarray = part[name].transpose("chain", "draw", ...).values
            values = values.reshape(-1, *values.shape[2:])
            return values.astype(jax.dtypes.canonicalize_dtype(dtype or values.dtype), copy=False)

        return jax.tree.unflatten(self.structure, [leaf(name, dtype) for name, dtype in self.leaves])


def stretches(count: int, size: int) -> Iterator[tuple[int, int]]:
    """From where to where blocks of one size go; the last is moved up to end at the end."""
    size = min(size, count)
    for at in range(0, count, size):
        first = min(at, count - size)
        yield first, first + size


def params_at(tree: xarray.DataTree, chain: int, draw: int, like: Params = None) -> Params:
    """The params of one draw, as ``init`` was written: what the functions of a posterior take.

    Parameters
    ----------
    tree
        What ``sample`` returned.
    chain, draw
        Which one, counted from 0; a negative number counts from the end.
    like
        Params of the same form, such as ``init``. Dicts, lists, tuples and bare arrays need none; a class of your own
        does.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(1.0, 1.0, size=100)
    >>> posterior = mintmc.Posterior(lambda p, x: -0.5 * (x - p["layers"][0]) ** 2, x)
    >>> tree = mintmc.sample(posterior, mintmc.MetropolisHastings(), init={"layers": [1.0]}, progress=False)
    >>> params = mintmc.params_at(tree, chain=0, draw=-1)
    >>> list(params), len(params["layers"])
    (['layers'], 1)
    >>> mintmc.map_draws(tree, lambda p: p["layers"][0] ** 2).shape
    (4, 1000)
    """
    draws = Draws.of(tree, like)
    chain = check.integer("chain", chain, -draws.chains, draws.chains - 1) % draws.chains
    draw = check.integer("draw", draw, -draws.count, draws.count - 1) % draws.count
    one = replace(draws, dataset=draws.dataset.isel(chain=[chain], draw=[draw]))
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), one.block(0, 1))


def map_draws(
    tree: xarray.DataTree,
    function: Callable[[Params], Any],
    *,
    like: Params = None,
    draws: int | None = None,
    batch: int | None = None,
) -> Any:
    """A function of every draw: ``params -> arrays`` gives arrays (chain, draw, ...), in the form that it returns.

    It is compiled, and applied to a block of draws at once.

    Parameters
    ----------
    tree
        What ``sample`` returned.
    function
        ``params -> arrays``, written with ``jax.numpy``: an array, or a pytree of them.
    like
        Params of the same form, such as ``init``, if they are of a class of your own.
    draws
        So many of every chain, evenly spaced; None is all.
    batch
        How many draws to work on at once; None lets their size decide.

    Examples
    --------
    See ``params_at``.
    """
    check.function("function", function)
    if batch is not None:
        check.integer("batch", batch, 1)
    found = Draws.of(tree, like, draws)
    like_params = f"params, {check.form(found.shapes)}"
    returned = check.returned("function", function, found.shapes, takes=like_params)
    if not all(isinstance(leaf, (bool, int, float)) or hasattr(leaf, "dtype") for leaf in jax.tree.leaves(returned)):
        raise ValueError(f"function must return arrays, got {check.form(returned)}")
    warn_if_tempered(tree, "map_draws")
    chains, count = found.chains, found.count
    batch = batch or min(_DRAWS_AT_A_TIME, _NUMBERS_AT_A_TIME // max(found.numbers, _numbers(returned)))
    program = jax.jit(jax.vmap(lambda params: jax.tree.map(jnp.asarray, function(params))))
    whole: list[np.ndarray] = []
    for first, last in stretches(count, max(1, batch // chains)):
        results, structure = jax.tree.flatten(program(found.block(first, last)))
        results = [np.asarray(result).reshape(chains, last - first, *result.shape[1:]) for result in results]
        whole = whole or [np.empty((chains, count, *result.shape[2:]), result.dtype) for result in results]
        for values, result in zip(whole, results, strict=True):
            values[:, first:last] = result
    return jax.tree.unflatten(structure, whole)


def _numbers(shapes: Any) -> int:
    return max(1, sum(int(np.prod(np.shape(leaf))) for leaf in jax.tree.leaves(shapes)))


def _form(tree: Any, part: Any) -> Params:
    """Params with names for leaves, from what a tree says of them."""
    if PARAMS in tree.attrs:
        return decode(json.loads(tree.attrs[PARAMS]))
    names = [str(name) for name in (tree["start"].data_vars if "start" in tree.children else part.data_vars)]
    # Of other names it cannot be told whether they are keys, or were made from keys and numbers.
    if unclear := [name for name in names if "." in name or name.startswith("theta") or name not in part]:
        wanted = "be given, params like init: the tree does not say what its variables are parts of"
        raise ValueError(f"like must {wanted}, got None and a variable {unclear[0]!r}")
    return {name: name for name in names}


def _float_type(leaf: Any) -> Any:
    """The type that an example asks for; a whole number in it means a float."""
    dtype = getattr(leaf, "dtype", None)
    return dtype if dtype in (np.float32, np.float64) else None


def _checked(like: Params, tree: Any, part: Any) -> Params:
    """An example of params, whose leaves must be variables of the tree."""
    if not is_params(like):
        raise TypeError(f"like must be params, a pytree of arrays such as init, got {check.shown(like)}")
    if not named_leaves(like, "like"):
        raise ValueError(f"like must hold at least one array, got {check.shown(like)}")
    leaves = dict(named(like))
    known = {str(name) for name in (tree["start"].data_vars if "start" in tree.children else leaves)}
    if set(leaves) != known or not all(name in part for name in known):
        wanted = ", ".join(sorted(known & set(part.data_vars) or map(str, part.data_vars)))
        raise ValueError(f"like must have the parameters of the tree, {wanted}, got {check.form(like)}")
    for name, leaf in leaves.items():
        shape = part[name].transpose("chain", "draw", ...).shape[2:]
        if (given := _shape(name, leaf)) != shape:
            raise ValueError(f"like must have {name!r} of shape {shape}, as the tree does, got shape {given}")
    return like


def _shape(name: str, leaf: Any) -> tuple[int, ...]:
    """Of an array, or of what stands for one."""
    try:
        array = leaf if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else np.asarray(leaf)
        if not jnp.issubdtype(array.dtype, jnp.number):
            raise TypeError
        return tuple(array.shape)
    except Exception:  # an object with ideas of its own
        raise TypeError(f"like must have an array of floats for {name!r}, got {check.shown(leaf)}") from None
