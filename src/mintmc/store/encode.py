"""Settings and params as JSON and back: what a store needs to go on with a run without being told again.

A store may come from elsewhere, so nothing that it names is imported or called but the classes of settings that
installed packages list under the entry points ``mintmc.samplers``.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import jax
import numpy as np

GROUP = "mintmc.samplers"
"""The entry points under which packages, this one too, list the classes of settings that a store may name."""
_MOST_NUMBERS = 2**16
"""Of an array that is written down; of a larger one a hash is."""


@cache
def listed() -> dict[str, EntryPoint]:
    """All that a store may ask for, by name; what this package lists comes before what others do.

    Examples
    --------
    >>> listed()["MINT"].value
    'mintmc.samplers:MINT'
    """
    ours_last = sorted(entry_points(group=GROUP), key=lambda entry: entry.value.startswith("mintmc."))
    return {entry.name: entry for entry in ours_last}


def listed_class(name: Any) -> type:
    """A class of settings by its name; refuses what nobody lists."""
    entry = listed().get(name) if isinstance(name, str) else None
    if entry is None:
        raise ValueError(f"cannot be read back from a store: {name}, which no package lists under {GROUP}")
    try:
        found = entry.load()
    except Exception as error:  # a package of others may fail in any way
        raise ValueError(f"cannot be read back from a store: {name}, as {entry.value} fails: {error}") from error
    if not is_dataclass(found) or not isinstance(found, type):
        raise ValueError(f"cannot be read back from a store: {name}, which is no class of settings")
    return found


def encode(value: Any) -> Any:
    """A value as JSON. What has no short JSON form (a function, a large array) is only named, and cannot be read back.

    Examples
    --------
    >>> encode((1, {"a": 2.5}))
    {'tuple': [1, {'dict': {'a': 2.5}}]}
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        settings = {field.name: encode(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__, **settings}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: encode(part) for key, part in value.items()}}
    if type(value) in (list, tuple):
        return {type(value).__name__: [encode(part) for part in value]}
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        array = np.asarray(value)
        if array.size > _MOST_NUMBERS:
            digest = hashlib.sha256(array.tobytes()).hexdigest()[:16]
            return {"other": f"array of shape {array.shape} and type {array.dtype}, {digest}"}
        return {"array": array.ravel().tolist(), "shape": list(array.shape), "dtype": str(array.dtype)}
    return {"other": getattr(value, "__qualname__", None) or repr(value)}


def decode(coded: Any) -> Any:
    """The value that was encoded; ValueError if it cannot be had back.

    Examples
    --------
    >>> decode(encode({"mean": (1.0, None)}))
    {'mean': (1.0, None)}
    """
    if not isinstance(coded, dict):
        return coded
    try:
        return _decoded(coded)
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"cannot be read back from a store: {error}") from error


def _decoded(coded: dict[str, Any]) -> Any:
    if "kind" in coded:
        settings = {name: decode(part) for name, part in coded.items() if name != "kind"}
        return listed_class(coded["kind"])(**settings)
    if "dict" in coded:
        return {key: decode(part) for key, part in coded["dict"].items()}
    if "list" in coded:
        return [decode(part) for part in coded["list"]]
    if "tuple" in coded:
        return tuple(decode(part) for part in coded["tuple"])
    if "array" in coded:
        if np.dtype(coded["dtype"]).kind not in "biufc":
            raise ValueError(f"cannot be read back from a store: an array of {coded['dtype']}")
        return np.array(coded["array"], coded["dtype"]).reshape(coded["shape"])
    raise ValueError(f"cannot be read back from a store: {coded.get('other')}")


def is_readable(coded: Any) -> bool:
    """Whether the value that was encoded can be had back.

    Examples
    --------
    >>> is_readable(encode((1, 2.5))), is_readable(encode({"f": print}))
    (True, False)
    """
    try:
        decode(coded)
    except ValueError:
        return False
    return True
