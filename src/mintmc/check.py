"""Checks of what a user passes in: run once, outside ``jit``, before anything compiles.

Every message names the argument, says what is allowed, and ends with the value in a short form:
``batch_size must be in [1, n=1000], got 5000``. What has no business where it is passed (an array for a word, an
object whose ``repr`` fails) must end in such a message too, never in an error of its own.
"""

from __future__ import annotations

import math
import os
import re
import reprlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any

import jax
import numpy as np

LARGEST = 2**63 - 1
"""The largest whole number that may be passed where nothing smaller is the limit."""
LARGEST_COUNT = 2**31 - 1
"""The largest number of steps, rows or places: compiled programs count them in 32 bits."""
_LONGEST = 160
_MOST_SHOWN = 20
_MOST_LISTED = 2**20
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


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


def array(name: str, value: Any, what: str = "an array of numbers", dims: Sequence[int] = ()) -> np.ndarray:
    """Check an array of finite real numbers, of one of ``dims`` dimensions, and return it in float64."""
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
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite, got {shown(value)}")
    return found


def listed(name: str, value: Any, what: str = "a sequence") -> list:
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


def path(name: str, value: Any) -> Path:
    """Check a local path; it need not exist."""
    try:
        text = os.fspath(value)
        if isinstance(value, bytes) or not isinstance(text, str):
            raise TypeError
    except Exception:  # no path at all, or an object with ideas of its own
        raise TypeError(f"{name} must be a path, a string or a pathlib.Path, got {shown(value)}") from None
    if _REMOTE.match(text):
        raise ValueError(f"{name} must be a local path (remote stores are not supported), got {shown(value)}")
    try:
        if not text:
            raise ValueError("nothing")
        os.lstat(text)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # too long, NUL or half a character in it, not to be read
        reason = getattr(error, "strerror", None) or error
        kind = PermissionError if isinstance(error, PermissionError) else ValueError
        raise kind(f"{name} must be a path that the system accepts, got {shown(value)} ({reason})") from None
    return Path(text)


def folder(name: str, value: Any) -> Path:
    """Check the path of a folder that can be made, or is there."""
    place = path(name, value)
    if not os.path.lexists(place):
        around = next(parent for parent in place.absolute().parents if os.path.lexists(parent))
        if not around.is_dir():
            raise ValueError(f"{name} must be in a folder, got {shown(value)}, where {around} is a file")
        if not os.access(around, os.W_OK):
            raise PermissionError(f"{name} must be where you may write, got {shown(value)}")
    return place


def tree(value: Any, *groups: str, attributes: Sequence[str] = ()) -> Any:
    """Check what ``mintmc.sample`` returned, or another tree with such groups and attributes."""
    from xarray import DataTree

    if not isinstance(value, DataTree):
        raise TypeError(f"tree must be what mintmc.sample returned, an xarray.DataTree, got {shown(value)}")
    for group in groups:
        if group not in value.children:
            raise ValueError(f"tree must have a group {group}, got {sorted(map(str, value.children))}")
    for attribute in attributes:
        if attribute not in value.attrs:
            raise ValueError(f"tree must be what mintmc.sample returned, got one without attribute {attribute}")
    return value


def called(name: str, given: Callable, *args: Any) -> Any:
    """What a user's function returns; an error of its own is told as one of the argument."""
    try:
        return given(*args)
    except Exception as error:  # whatever a user's function may raise
        raise ValueError(f"{name} must work for {form(args)}, got {first_line(error)}") from error


def returned(name: str, given: Callable, *args: Any, takes: str = "") -> Any:
    """What a user's function returns for arguments like these, found by tracing it: types and shapes, no numbers.

    ``takes`` says in words what it is called with; by default, the form of the arguments.
    """
    found: list[Any] = []

    def traced(*args: Any) -> None:
        try:
            found.append(jax.tree.map(_kind, given(*args)))
        except jax.errors.JAXTypeError as error:
            wanted = "be written with jax.numpy, so that JAX can trace it"
            raise TypeError(f"{name} must {wanted}, got {first_line(error)}") from error
        except Exception as error:  # whatever a user's function may raise
            wanted = takes or " and ".join(map(form, args))
            raise ValueError(f"{name} must work for {wanted}, got {first_line(error)}") from error

    jax.eval_shape(traced, *args)
    return found[0]


def _kind(leaf: Any) -> Any:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else leaf


def first_line(error: Exception) -> str:
    """What was raised, in one short line."""
    text = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {text[0][:_LONGEST]}".removesuffix(": ")


def scalar(name: str, given: Callable, *args: Any, takes: str = "") -> None:
    """Check, without running it, that a function returns one float for arguments like these."""
    result = returned(name, given, *args, takes=takes)
    after = f" for {takes}" if takes else ""
    if isinstance(result, (int, float)) and not isinstance(result, bool):
        return
    if not isinstance(result, jax.ShapeDtypeStruct) or result.shape != ():
        got = f"shape {result.shape}" if isinstance(result, jax.ShapeDtypeStruct) else form(result)
        raise ValueError(f"{name} must return a scalar, got {got}{after}")
    if not jax.numpy.issubdtype(result.dtype, jax.numpy.floating):
        raise TypeError(f"{name} must return a float, got dtype {result.dtype}{after}")
