"""Numbers, words, arrays, lists: what settings are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import jax
import numpy as np

from mintmc.check.words import shown

LARGEST = 2**63 - 1
"""The largest whole number that may be passed where nothing smaller is the limit."""
LARGEST_COUNT = 2**31 - 1
"""The largest number of steps, rows or places: compiled programs count them in 32 bits."""
_MOST_LISTED = 2**20


def plain(settings: Any) -> None:
    """Store numbers of any kind (of NumPy or JAX, decimal, a fraction) as Python's in a frozen dataclass."""
    for name, value in vars(settings).items():
        if (number := _plain(value)) is not value:
            object.__setattr__(settings, name, number)


def _plain(value: Any) -> Any:
    """Python's own number for one of any kind; anything else as it is."""
    try:
        if isinstance(value, jax.core.Tracer):
            return value
        if isinstance(value, (np.ndarray, jax.Array)) and value.ndim == 0:
            value = np.asarray(value)[()]
        if isinstance(value, np.generic) and value.dtype.kind in "biu":
            return value.item()
        if isinstance(value, (np.floating, Decimal)) or (isinstance(value, Real) and not isinstance(value, int)):
            return float(value)
    except (TypeError, ValueError, ArithmeticError):  # keys of JAX, signalling NaNs, fractions beyond all floats
        pass
    return value


def integer(
    name: str, value: Any, low: int, high: int | None = None, high_name: str = "", *, most: int = LARGEST
) -> int:
    """Check a whole number in ``[low, high]`` and return it as an ``int``.

    ``most`` is a limit so far off that only who exceeds it is told.
    """
    allowed = f"at least {low}" if high is None else f"in [{low}, {high_name and high_name + '='}{high}]"
    whole = _plain(value)
    if isinstance(whole, bool) or not isinstance(whole, int):
        raise TypeError(f"{name} must be a whole number {allowed}, got {shown(value)}")
    if whole < low or (high is not None and whole > high):
        raise ValueError(f"{name} must be {allowed}, got {shown(whole)}")
    if whole > most:
        raise ValueError(f"{name} must be in [{low}, {most}], got {shown(whole)}")
    return int(whole)


def number(
    name: str, value: Any, low: float, high: float = math.inf, *, closed: tuple[bool, bool] = (False, False)
) -> float:
    """Check a finite number in an interval (open unless ``closed`` says otherwise)."""
    allowed = f"{'[' if closed[0] else '('}{low:g}, {high:g}{']' if closed[1] else ')'}"
    given = _plain(value)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f"{name} must be a number in {allowed}, got {shown(value)}")
    try:
        real = float(given)
    except OverflowError:
        raise ValueError(f"{name} must be in {allowed}, got {shown(given)}") from None
    above = real >= low if closed[0] else real > low
    below = real <= high if closed[1] else real < high
    if not (math.isfinite(real) and above and below):
        raise ValueError(f"{name} must be in {allowed}, got {real:g}")
    return real


def array(
    name: str, value: Any, what: str = "an array of numbers", dims: Sequence[int] = (), *, finite: bool = True
) -> np.ndarray:
    """Check an array of real numbers, of one of ``dims`` dimensions, and return it in float64."""
    try:
        found = np.asarray(value)
    except Exception:  # ragged, or an object with ideas of its own
        raise TypeError(f"{name} must be {what}, got {shown(value)}") from None
    if found.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be {what}, got {shown(value)}")
    if dims and found.ndim not in dims:
        raise ValueError(f"{name} must be {what}, got {shown(value)}")
    with np.errstate(all="ignore"):
        found = found.astype(np.float64)
    if finite and not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite, got {shown(value)}")
    return found


def listed(name: str, value: Any, what: str = "a sequence") -> list[Any]:
    """Check what has a few elements one after the other, and return them."""
    try:
        if isinstance(value, (str, bytes, dict, set)) or len(value) > _MOST_LISTED:
            raise TypeError
        return list(value)
    except Exception:  # no sequence, or an object with ideas of its own
        raise TypeError(f"{name} must be {what}, got {shown(value)}") from None


def choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Check that a value is one of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {shown(value)}")
    return value


def function(name: str, value: Any) -> Any:
    """Check that a value can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function, got {shown(value)}")
    return value


def flag(name: str, value: Any) -> bool:
    """Check a switch."""
    given = _plain(value)
    if not isinstance(given, bool):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return given


def instance(name: str, value: Any, kind: type | tuple[type, ...], what: str) -> Any:
    """Check that a value is of a kind, described by ``what``; the class itself is not."""
    if isinstance(value, type):
        raise TypeError(f"{name} must be {what}, got the class {value.__name__}: call it")
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {what}, got {shown(value)}")
    return value
