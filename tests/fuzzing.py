"""What the fuzz test passes where something else is meant, and how it judges the answer."""

import re
import signal
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas

import mintmc
from mintmc import check


class Hostile:
    """An object that answers every question with an error."""

    def _refuse(self, *args):
        raise RuntimeError("ask me nothing")

    __repr__ = __str__ = __float__ = __index__ = __int__ = __bool__ = __eq__ = __len__ = __iter__ = _refuse
    __array__ = __fspath__ = __getitem__ = __call__ = __hash__ = _refuse


class NoNumber:
    """An object that claims to be a number and is none."""

    def __float__(self):
        raise ValueError("not today")

    __index__ = __float__


POOL = [
    *(0, 1, -1, 2, 3, 2.5, 0.5, 1e308, -1e308, 5e-324, np.nan, np.inf, -np.inf),
    *(10**400, -(10**400), 10**5000, 2**31, 2**63, 2**40, True, False, 1j, None),
    *(np.float32(0.5), np.float64("nan"), np.int64(3), np.uint64(2**63), np.bool(True), np.float16(0.5)),
    *(np.longdouble(0.5), np.complex64(1), np.datetime64("2020-01-01"), np.timedelta64(3, "s"), np.str_("word")),
    *(Decimal("0.5"), Decimal("NaN"), Decimal("sNaN"), Decimal("1e999"), Fraction(1, 2), Fraction(10**400)),
    *(np.array(0.5), np.array(3), np.array([0.5]), np.array([1.0, 2.0]), np.zeros((2, 2)), np.zeros(0)),
    *(np.zeros((3, 0)), np.arange(10**6), np.array(["a", "b"]), np.array([None, 1]), np.array([1j, 2])),
    *(np.zeros(3, np.float16), np.zeros(3, np.longdouble), np.array([1, 2], "m8[s]"), np.array([1, 2], "M8[s]")),
    *(jnp.float32(0.5), jnp.int32(3), jnp.arange(3.0), jnp.ones(2, jnp.bfloat16), jax.random.key(0)),
    *("", "word", "posterior", "x" * 5000, "a\0b", "\ud800", "s3://bucket/run.zarr", "/dev/null/x.npy", b"bytes"),
    *(Path("s3://bucket/run"), Path("."), Path("no such file.npy")),
    *([], (), {}, set(), [1, 2], [1.0, 2.0, 3.0], (1, None), [[1], [2, 3]], ["a"], {"a": 1.0}, {1: 0.0, "a": 0.0}),
    *({"a": "b"}, range(3), range(10**12), [np.nan, 1.0], [10**400, 1], {"x": np.zeros(3), "y": np.zeros(2)}),
    *(object(), int, mintmc.MINT, mintmc, len, lambda: None, lambda *args: None, lambda *args: (0.0, 1.0)),
    *(lambda *args: "word", lambda *args: float(args[0]), lambda *args: args[99], lambda *args: jnp.zeros(2)),
    *(Hostile(), NoNumber(), pandas.DataFrame({"x": [1.0, 2.0]}), pandas.Series([1.0, 2.0])),
    *(mintmc.RandomWalk, mintmc.RandomWalk(), mintmc.Ladder([1, 2]), mintmc.PerChain(np.zeros(2))),
    mintmc.Posterior.from_density(lambda x: -(x**2)),
]
RELATED = {
    # Whose names may be told instead: those of functions that cannot do with a value, and of what it is passed on as.
    "init": {"log_likelihood", "log_density"},
    "params": {"log_likelihood", "init"},
    "data": {"log_likelihood"},
    "transform": {"data"},
    "posterior": {"model"},
}


def unclear(error, argument, given):
    """What is wrong with the answer to a mistake in one of the arguments given; None if nothing is."""
    if not isinstance(error, (ValueError, TypeError, OSError, ImportError)) or isinstance(error, UnicodeError):
        return f"a {type(error).__name__}"
    message, value = str(error), given[argument]
    if len(message) > 1000 or "\n" in message.strip():
        return "more than a line"
    if isinstance(value, Path) and message.startswith(f"{value} must"):
        return None  # what is wrong with a file
    names = {argument} | RELATED.get(argument, set())
    if not any(re.search(rf"\b{name}\b", message) for name in names):
        return "no word of the argument"
    got = message.partition(" got ")[2].lower()
    if got and callable(value):
        return None  # of a function, what it returns or raises is told
    # What is wrong may be another argument, seen from this one: "rings must be ... with truncate=True, got ...".
    told = [given[name] for name in given if re.search(rf"\b{name}\b", message)]
    ways = [word.lower() for each in (value, *told) for word in _ways_to_tell(each)]
    if not any(way in got or f"{argument}={way}" in message.lower() for way in ways):
        return "no word of the value"
    return None


def _ways_to_tell(value):
    """How a message may show a value: whole, by its kind, or by one of its parts."""
    words = {check.shown(value), type(value).__name__, getattr(value, "__name__", None)}
    words |= {"neither"} if value is None else set()
    for convert in (
        str,
        lambda value: f"{float(value):g}",
        lambda value: f"dtype {np.asarray(value).dtype}"[:9],  # an int32 may have become an int64
        lambda value: str(np.shape(value)),
        lambda value: str(sum(np.size(leaf) for leaf in jax.tree.leaves(value))),
    ):
        try:
            words.add(convert(value))
        except (RuntimeError, TypeError, ValueError, ArithmeticError, MemoryError, Warning):
            continue
    if isinstance(value, mintmc.Posterior):
        words.add("a density without data")
    if isinstance(value, mintmc.PerChain):
        words |= _ways_to_tell(value.params)
    if isinstance(value, dict):
        words |= {repr(key) for key in value}
        value = list(value.values())
    if isinstance(value, (list, tuple, range, pandas.Series)) or getattr(value, "ndim", 0):
        words |= {"[]", "()"} if len(value) == 0 else set()
        for part in list(value[:3]):
            words |= _ways_to_tell(part)
    return words - {None, ""}


@contextmanager
def deadline(seconds):
    """Nothing may hang."""

    def stop(*args):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
