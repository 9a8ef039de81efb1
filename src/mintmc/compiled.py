"""When are two programs the same: values that a program was built from, compared by what they are.

A second run with the same posterior, sampler and shapes must not compile again. Settings are frozen dataclasses and
named tuples of numbers, arrays and functions: numbers are compared by value, arrays by content, and functions and other
objects by identity (a posterior makes them once, and keeps them).

A process keeps the programs that were used last, no more than a few hundred: every one takes some of the memory maps
that the system allows a process, and without any left it ends in a crash.
"""

from __future__ import annotations

import hashlib
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from threading import Lock
from typing import Any

import jax
import numpy as np

MOST_KEPT = 256
"""Of about 65,000 memory maps that Linux allows, a program takes up to a hundred."""


class Recent:
    """Which programs were used last, of all posteriors of a process."""

    def __init__(self, most: int):
        self._most = most
        self._order: OrderedDict[tuple[int, Any], weakref.ref[Any]] = OrderedDict()
        self._lock = Lock()

    def used(self, owner: Any, programs: dict[Any, Any], key: Any) -> None:
        """Note a use, and let go of what was not used for the longest time; ``programs`` are those of ``owner``."""
        with self._lock:
            self._order[id(programs), key] = weakref.ref(owner)
            self._order.move_to_end((id(programs), key))
            while len(self._order) > self._most:
                (_, oldest), holder = self._order.popitem(last=False)
                if (found := holder()) is not None:
                    found.forget(oldest)

    def clear(self) -> None:
        """Let go of all."""
        with self._lock:
            for (_, key), holder in self._order.items():
                if (found := holder()) is not None:
                    found.forget(key)
            self._order.clear()


RECENT = Recent(MOST_KEPT)


class Same:
    """An object that is equal to itself alone; it is kept alive, so that no other takes its place."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def identity(value: Any) -> Any:
    """Something hashable that is equal for values that make the same program.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> identity(mintmc.RandomWalk()) == identity(mintmc.RandomWalk())
    True
    >>> identity((1.0, np.arange(3))) == identity((1.0, np.arange(4)))
    False
    """
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.dtype)):
        return (type(value), value) if not isinstance(value, float) else (float, value.hex())
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        if isinstance(value, jax.core.Tracer):
            return Same(value)
        array = np.asarray(value)
        return ("array", array.shape, str(array.dtype), hashlib.sha256(array.tobytes()).digest())
    if isinstance(value, Mapping):
        return (type(value), tuple((key, identity(part)) for key, part in value.items()))
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(identity(part) for part in value))
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value), tuple(identity(getattr(value, field.name)) for field in fields(value)))
    return Same(value)


class ByContent:
    """For settings that hold arrays: two are equal if they make the same program.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> mintmc.TunaMH(np.ones(3)) == mintmc.TunaMH(np.ones(3)), mintmc.TunaMH(np.ones(3)) == mintmc.TunaMH(np.ones(4))
    (True, False)
    """

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and identity(other) == identity(self)

    def __hash__(self) -> int:
        return hash(identity(self))


def shapes_and_types(tree: Any) -> Any:
    """The form of a pytree of arrays: a program that was compiled takes arguments of one form only."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((np.shape(leaf), str(leaf.dtype)) for leaf in leaves)
