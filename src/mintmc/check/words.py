"""Any value, pytree or error in one short line: a message must neither flood nor fail because of what it is about."""

from __future__ import annotations

import math
import reprlib
from typing import Any

import jax
import numpy as np

_LONGEST = 160
_MOST_SHOWN = 20


class _Short(reprlib.Repr):
    """Any value in a few words."""

    def __init__(self) -> None:
        super().__init__()
        self.maxother = self.maxstring = _LONGEST

    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, int) and abs(x) >= 10**30:  # Python itself refuses to print a very long one
            return f"about {'-' * (x < 0)}10^{round((abs(x).bit_length() - 1) * math.log10(2))}"
        if isinstance(x, (np.ndarray, jax.Array)) and x.size > _MOST_SHOWN:
            return f"an array of {x.dtype} and shape {x.shape}"
        return super().repr1(x, level)


def shown(value: Any) -> str:
    """A value in one short line, whatever it is.

    Examples
    --------
    >>> shown(10**400), shown([1.5, 2]), shown("x" * 1000)[:5]
    ('about 10^400', '[1.5, 2]', "'xxxx")
    """
    try:
        text = " ".join(_Short().repr(value).split())
    except Exception:  # a repr may do anything
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def form(tree: Any) -> str:
    """The arrays of a pytree by type and shape.

    Examples
    --------
    >>> form({"mean": np.zeros(2), "name": None})
    "{'mean': float64[2], 'name': None}"
    """

    class Word(str):
        __repr__ = str.__str__

    def word(leaf: Any) -> Word:
        is_array = hasattr(leaf, "dtype") and hasattr(leaf, "shape")
        return Word(f"{leaf.dtype}{list(leaf.shape)}" if is_array else shown(leaf))

    return shown(jax.tree.map(word, tree))


def named(function: Any) -> str:
    """A function by its name, anything else that can be called by its kind.

    Examples
    --------
    >>> named(len), named(reprlib.Repr())
    ('len', 'Repr')
    """
    return str(getattr(function, "__name__", None) or type(function).__name__)


def first_line(error: Exception) -> str:
    """What was raised, in one short line."""
    text = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {text[0][:_LONGEST]}".removesuffix(": ")
