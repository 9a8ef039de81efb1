"""Checks of what a user passes in: run once, outside ``jit``, before anything compiles.

Every message names the argument, says what is allowed, and ends with the value:
``batch_size must be in [1, n=1000], got 5000``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any


def integer(name: str, value: Any, low: int, high: int | None = None, high_name: str = "") -> int:
    """Check a whole number in ``[low, high]`` and return it as an ``int``."""
    allowed = f"at least {low}" if high is None else f"in [{low}, {high_name and high_name + '='}{high}]"
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number {allowed}, got {value!r}") from None
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number {allowed}, got {value!r}")
    if number < low or (high is not None and number > high):
        raise ValueError(f"{name} must be {allowed}, got {number}")
    return number


def number(
    name: str, value: Any, low: float, high: float = math.inf, *, closed: tuple[bool, bool] = (False, False)
) -> float:
    """Check a finite number in an interval (open unless ``closed`` says otherwise)."""
    allowed = f"{'[' if closed[0] else '('}{low:g}, {high:g}{']' if closed[1] else ')'}"
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number in {allowed}, got {value!r}")
    real = float(value)
    above = real >= low if closed[0] else real > low
    below = real <= high if closed[1] else real < high
    if not (math.isfinite(real) and above and below):
        raise ValueError(f"{name} must be in {allowed}, got {real:g}")
    return real


def choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Check that a value is one of a few words."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def function(name: str, value: Any) -> Any:
    """Check that a value can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function, got {value!r}")
    return value


def flag(name: str, value: Any) -> bool:
    """Check a switch."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def scalar(name: str, given: Any, *args: Any) -> None:
    """Check, without running it, that a function returns one number for these arguments."""
    import jax
    import jax.numpy as jnp

    result = jax.eval_shape(given, *jax.tree.map(jnp.asarray, args))
    if getattr(result, "shape", None) != ():
        raise ValueError(f"{name} must return a scalar, got {result}")
