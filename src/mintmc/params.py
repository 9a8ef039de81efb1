"""Parameters as a user writes them, a pytree of float arrays, and as one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from mintmc import check
from mintmc.data import named_leaves
from mintmc.data.array import native

_LARGEST = 2**63
Params = Any
"""A pytree of float arrays: one point of the parameter space."""


def flatten(params: Params, name: str) -> tuple[Array, Callable[[Array], Params]]:
    """Params as one float vector, and the function that undoes it."""
    leaves = named_leaves(params, name)
    if not leaves:
        raise ValueError(f"{name} must hold at least one array of floats, got {check.shown(params)}")
    for path, leaf in leaves:
        try:
            array = np.asarray(leaf)
        except Exception:  # an object with ideas of its own
            raise TypeError(f"{name}{path} must be an array of floats, got {check.shown(leaf)}") from None
        if array.dtype not in (np.float32, np.float64):
            wanted = "float32 or float64" if array.dtype.kind == "f" else "an array of floats"
            raise TypeError(f"{name}{path} must be {wanted}, got {_described(leaf, array)}")
        if array.size == 0:
            raise ValueError(f"{name}{path} must not be empty, got shape {array.shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name}{path} must be finite, got {check.shown(leaf)}")
        if not np.isfinite(native(array)).all():
            raise ValueError(f"{name}{path} must fit {native(array).dtype}, got {check.shown(leaf)}")
    return ravel_pytree(jax.tree.map(jnp.asarray, params))


def named(params: Params) -> list[tuple[str, Any]]:
    """The leaves of params with their names: keys with dots between them, ``theta`` before what has only a number."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
    return [
        (name if name and not name[0].isdigit() else f"theta{name and '_' + name}", leaf)
        for name, (_, leaf) in zip(names, leaves, strict=True)
    ]


def variables(theta: np.ndarray, unravel: Callable[..., Any]) -> dict[str, np.ndarray]:
    """Flat vectors (..., d) as one named array for each leaf of params: ``theta`` if params is a bare array."""
    example = jax.eval_shape(lambda: unravel(jnp.zeros(theta.shape[-1:], theta.dtype)))
    parts, at = {}, 0
    for name, leaf in named(example):
        size = int(np.prod(leaf.shape))
        parts[name] = theta[..., at : at + size].reshape(*theta.shape[:-1], *leaf.shape)
        at += size
    return parts


def as_floats(params: Params, name: str = "init") -> Params:
    """Params with whole numbers made floats: ``{"b": 0}`` means 0.0. Those that no float is near stay."""
    named_leaves(params, name)  # refuses what is no pytree
    return jax.tree.map(lambda leaf: np.asarray(leaf, float) if _is_whole(leaf) else leaf, params)


def _is_whole(leaf: Any) -> bool:
    if isinstance(leaf, int):
        return not isinstance(leaf, bool) and abs(leaf) < _LARGEST
    kind = getattr(leaf, "dtype", None)
    return isinstance(kind, np.dtype) and kind.kind in "iu"


def is_params(given: Any) -> bool:
    """Whether it is a pytree rather than a function: a network may be both, and then it is params."""
    return not callable(given) or not jax.tree_util.all_leaves([given])


def check_alike(name: str, given: Params, params: Params, like: str = "init") -> None:
    """Refuse params of another structure than others have."""
    if jax.tree.map(np.shape, given) != jax.tree.map(np.shape, params):
        raise ValueError(f"{name} must have the form of {like}, {check.form(params)}, got {check.form(given)}")


def form_of(leaf: Any) -> tuple[tuple[int, ...], str]:
    """Shape and type of an array, as programs see it."""
    array = np.asarray(leaf)
    return array.shape, str(jax.dtypes.canonicalize_dtype(array.dtype))


def raveled(params: Params) -> Array:
    """Params as one vector."""
    return ravel_pytree(jax.tree.map(jnp.asarray, params))[0]


def _described(leaf: Any, array: np.ndarray) -> str:
    return check.shown(leaf) if array.dtype.kind in "OUS" else f"dtype {array.dtype}"
