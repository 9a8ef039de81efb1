"""Checks of what a user passes in: run once, outside ``jit``, before anything compiles.

Every message names the argument, says what is allowed, and ends with the value in a short form:
``batch_size must be in [1, n=1000], got 5000``. What has no business where it is passed (an array for a word, an
object whose ``repr`` fails) must end in such a message too, never in an error of its own.
"""

from mintmc.check.functions import called, floats, of_its_row, returned, scalar
from mintmc.check.places import folder, path, tree
from mintmc.check.values import (
    LARGEST,
    LARGEST_COUNT,
    array,
    choice,
    flag,
    function,
    instance,
    integer,
    listed,
    number,
    plain,
)
from mintmc.check.words import first_line, form, named, shown

__all__ = [
    "LARGEST",
    "LARGEST_COUNT",
    "array",
    "called",
    "choice",
    "first_line",
    "flag",
    "floats",
    "folder",
    "form",
    "function",
    "instance",
    "integer",
    "listed",
    "named",
    "number",
    "of_its_row",
    "path",
    "plain",
    "returned",
    "scalar",
    "shown",
    "tree",
]
