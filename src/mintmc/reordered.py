"""Whether the program that is being traced may add numbers up in any order, and so as vectors.

Only programs that say so are compiled that way (``compile_program``). Two things then no longer hold. What rounding
took from a sum cannot be known, so no full pass is such a program. And what stands in two kernels, each of which
computes it anew, may differ there in its last digit: a decision must be made once (``apart``), or a state could take
its parameters from one end of a move and what is remembered of them from the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ALLOWED = ContextVar("_ALLOWED", default=False)


def may_reorder() -> bool:
    """Whether sums may be added up in any order."""
    return _ALLOWED.get()


@contextmanager
def reordering(is_allowed: bool) -> Iterator[None]:
    """Trace a program that may, or may not."""
    before = _ALLOWED.set(is_allowed)
    try:
        yield
    finally:
        _ALLOWED.reset(before)
