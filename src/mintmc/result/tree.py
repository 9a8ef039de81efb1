"""From arrays of draws to the tree that ArviZ reads. The only file that knows ArviZ's layout.

Draws at T = 1 go to group ``posterior``, at any other temperature to ``tempered_posterior``, so that nobody takes
one for the other.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from mintmc.flat import FlatTarget
from mintmc.params import named
from mintmc.result.reading import PARAMS
from mintmc.store.encode import encode

if TYPE_CHECKING:
    import xarray

_LONGEST_NAME = 200
"""Bytes; a file's name may have 255."""


@dataclass(frozen=True)
class RunFacts:
    """How the draws were made."""

    sampler: Any
    n: int
    temperature: float
    seed: int
    warmup: int
    thin: int
    timings: dict[str, float]
    starts: np.ndarray  # (chain, d): where chains started
    others: dict[str, Any]


def build_tree(
    theta: np.ndarray,
    statistics: Mapping[str, np.ndarray],
    units: Mapping[str, str],
    groups: Mapping[str, xarray.Dataset],
    target: FlatTarget,
    facts: RunFacts,
    first: int = 0,
) -> xarray.DataTree:
    """The tree of a run, or of a part of it that begins at draw ``first``.

    Parameters
    ----------
    theta, statistics, units
        Draws (chain, draw, d), what is known of each by name, and what that is counted in.
    groups
        Further groups, as they are.
    target
        What was sampled: it knows the names.
    facts
        How the draws were made.
    first
        The number of the first draw.
    """
    from arviz_base import from_dict
    from xarray import DataTree

    group = "posterior" if facts.temperature == 1 else "tempered_posterior"
    with warnings.catch_warnings():
        # A part of a run may have fewer draws than there are chains.
        warnings.filterwarnings("ignore", message="Found chain dimension to be longer than draw")
        tree = from_dict({group: target.shown(theta)}, coords=target.coords, dims=target.dims)
        # Where a parameter is constrained the chain moved elsewhere: what is judged is what moved.
        moved = {} if target.is_plain else {"unconstrained_posterior": target.free(theta)}
        parts = {**moved, "sample_stats": dict(statistics), "start": target.free(facts.starts[:, None])}
        for name, part in from_dict(parts).children.items():
            tree[name] = part
    attributes = _attributes(facts)
    tree.attrs.update(attributes | form_of_params(target))
    for name in (group, *moved, "sample_stats"):
        # What is found out at the end belongs to the whole.
        tree[name].attrs.update({key: value for key, value in attributes.items() if "audit" not in key})
    for name, unit in units.items():
        tree["sample_stats"][name].attrs["unit"] = unit
    tree["start"] = tree["start"].isel(draw=0, drop=True)
    for name, dataset in groups.items():
        tree[name] = DataTree(dataset)
    if first:
        for part in tree.children.values():
            if "draw" in part.coords:
                part.coords["draw"] = part.coords["draw"] + first
    return tree


def form_of_params(target: FlatTarget) -> dict[str, str]:
    """How params are put together from variables, as an attribute; nothing where a class of the user's own does it."""
    zeros = jax.ShapeDtypeStruct((target.dim,), target.dtype)
    params = jax.eval_shape(target.as_free, zeros)
    if not _is_plain(params):
        return {}
    names = [name for name, _ in named(params)]
    return {PARAMS: json.dumps(encode(jax.tree.unflatten(jax.tree.structure(params), names)))}


def _is_plain(params: Any) -> bool:
    """Whether only dicts by words, lists and tuples hold the arrays: what JSON can say."""
    if type(params) is dict:
        return all(isinstance(key, str) and _is_plain(part) for key, part in params.items())
    if type(params) in (list, tuple):
        return all(map(_is_plain, params))
    return params is None or isinstance(params, jax.ShapeDtypeStruct)


def check_names(argument: str, params: Any) -> None:
    """Refuse params whose names cannot all be variables of one tree, and files of one store."""
    taken = {"chain": "a dimension of the tree", "draw": "a dimension of the tree"}
    leaves = named(params)
    for name, leaf in leaves:
        taken |= {f"{name}_dim_{axis}": f"a dimension of {name!r}" for axis in range(np.ndim(leaf))}
    for name, _ in leaves:
        if name in taken:
            raise ValueError(
                f"{argument} must name each parameter once, and as nothing else, got {name!r}: {taken[name]}"
            )
        taken[name] = "another parameter"
        encoded = name.encode("utf-8", "replace")
        is_whole = encoded.decode() == name and name.isprintable() and len(encoded) <= _LONGEST_NAME
        if not is_whole or "/" in name or "\\" in name or name == "zarr.json" or not name.strip(". "):
            raise ValueError(
                f"{argument} must name each parameter with printable characters other than slashes, at most "
                f"{_LONGEST_NAME} bytes, got {name!r}"
            )


def _attributes(facts: RunFacts) -> dict[str, Any]:
    return {
        "inference_library": "mintmc",
        "inference_library_version": version("mintmc"),
        "jax_version": jax.__version__,
        "sampler": type(facts.sampler).__name__,
        "sampler_settings": json.dumps(encode(facts.sampler)),
        "n": facts.n,
        "temperature": facts.temperature,
        "seed": facts.seed,
        "tuning_steps": facts.warmup,
        "thin": facts.thin,
        **{f"{name}_time": seconds for name, seconds in facts.timings.items()},
        **facts.others,
    }
