"""Draws at a temperature other than 1 are not draws of the posterior: whoever uses them as such is told."""

from __future__ import annotations

import warnings
from typing import Any

from mintmc.result.reading import draws_group


class TemperedDraws(UserWarning):
    """Draws at a temperature other than 1 were used where draws of the posterior are meant."""


def is_tempered(tree: Any) -> bool:
    """Whether the draws of a tree come from another law than the posterior."""
    return draws_group(tree) != "posterior"


def said(tree: Any) -> str:
    """What the draws of such a tree are, in words."""
    temperature = tree.attrs.get("temperature", tree[draws_group(tree)].attrs.get("temperature"))
    at = "a temperature other than 1" if temperature is None else f"temperature {float(temperature):.6g}"
    return f"draws at {at}, not draws of the posterior"


def warn_if_tempered(tree: Any, what: str) -> None:
    """Say that ``what`` was made of draws that are not the posterior's."""
    if is_tempered(tree):
        warnings.warn(f"{what}: these are {said(tree)}", TemperedDraws, stacklevel=3)


def refuse_tempered(tree: Any, what: str, allow_tempered: bool) -> None:
    """Refuse to make ``what`` of draws that are not the posterior's, or only say so where that is allowed."""
    if is_tempered(tree) and not allow_tempered:
        wanted = f"draws at T = 1 for {what} (or pass allow_tempered=True)"
        raise ValueError(f"tree must have {wanted}, got {said(tree)}")
    if is_tempered(tree):
        warnings.warn(f"{what}: these are {said(tree)}", TemperedDraws, stacklevel=3)
