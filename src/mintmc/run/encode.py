"""Settings and params as JSON and back: what a store needs to go on with a run without being told again."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import jax
import numpy as np

import mintmc.kernels.bounds
import mintmc.kernels.schedule
import mintmc.ladder.ladder
import mintmc.ladder.rings
import mintmc.proposals
import mintmc.samplers

_HOMES = (
    mintmc.samplers,
    mintmc.proposals,
    mintmc.ladder.ladder,
    mintmc.ladder.rings,
    mintmc.kernels.bounds,
    mintmc.kernels.schedule,
)


def encode(value: Any) -> Any:
    """A value as JSON. What has no JSON form (a function, say) is written as how it prints, and cannot be read back.

    Examples
    --------
    >>> encode((1, {"a": 2.5}))
    {'tuple': [1, {'dict': {'a': 2.5}}]}
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        settings = {field.name: encode(getattr(value, field.name)) for field in fields(value)}
        return {"settings": type(value).__name__, "fields": settings}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: encode(part) for key, part in value.items()}}
    if type(value) in (list, tuple):
        return {type(value).__name__: [encode(part) for part in value]}
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        array = np.asarray(value)
        return {"array": array.ravel().tolist(), "shape": list(array.shape), "dtype": str(array.dtype)}
    return {"other": getattr(value, "__qualname__", None) or repr(value)}


def decode(coded: Any) -> Any:
    """The value that was encoded.

    Examples
    --------
    >>> decode(encode({"mean": (1.0, None)}))
    {'mean': (1.0, None)}
    """
    if not isinstance(coded, dict):
        return coded
    if "settings" in coded:
        kind = next(getattr(home, coded["settings"]) for home in _HOMES if hasattr(home, coded["settings"]))
        return kind(**{name: decode(part) for name, part in coded["fields"].items()})
    if "dict" in coded:
        return {key: decode(part) for key, part in coded["dict"].items()}
    if "list" in coded:
        return [decode(part) for part in coded["list"]]
    if "tuple" in coded:
        return tuple(decode(part) for part in coded["tuple"])
    if "array" in coded:
        return np.array(coded["array"], coded["dtype"]).reshape(coded["shape"])
    raise ValueError(f"cannot be read back from a store: {coded['other']}")
