"""How long a stretch of a chain is: about the same time, within what one call may record."""

_SECONDS = 0.4
FIRST = 16
"""Draws of the first stretch."""


def record_capacity(dim: int) -> int:
    """Draws that one stretch records at most."""
    return max(64, min(2**16, 2**21 // (dim + 8)))


def next_size(size: int, seconds: float, capacity: int) -> int:
    """Draws of the next stretch, from what the last one took."""
    fitting = int(size * _SECONDS / max(seconds, 1e-6))
    return max(1, min(capacity, 8 * size, fitting))
