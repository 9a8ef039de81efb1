"""What a user reads of a draw: params by name, what is computed from them, and names for the axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mintmc import check
from mintmc.params import Params, named


@dataclass(frozen=True)
class Shown:
    """How params are shown in a tree."""

    deterministics: Callable[[Params], Mapping[str, Any]] | None = None
    dims: Mapping[str, Sequence[str]] = field(default_factory=dict)
    coords: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, deterministics: Any, dims: Any, coords: Any) -> Shown:
        """From what a user wrote."""
        if deterministics is not None:
            check.function("deterministics", deterministics)
        for name, given in (("dims", dims), ("coords", coords)):
            if given is not None and not isinstance(given, Mapping):
                raise TypeError(f"{name} must be a dict, got {check.shown(given)}")
        axes = {name: _axes(name, given) for name, given in (dims or {}).items()}
        return cls(deterministics, axes, {name: _names(name, values) for name, values in (coords or {}).items()})

    def values(self, params: Params) -> dict[str, Any]:
        """What is shown of params, by name."""
        computed = {} if self.deterministics is None else self.deterministics(params)
        return {**dict(named(params)), **{name: jnp.asarray(value) for name, value in computed.items()}}

    def check(self, argument: str, params: Params) -> None:
        """Refuse names that do not fit params, without running anything."""
        shapes = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, params))
        if self.deterministics is not None:
            computed = check.returned("deterministics", self.deterministics, shapes)
            if not isinstance(computed, dict) or not all(isinstance(name, str) for name in computed):
                raise ValueError(f"deterministics must return a dict of arrays by name, got {check.form(computed)}")
            if both := sorted(set(computed) & {name for name, _ in named(params)}):
                raise ValueError(f"deterministics must have names of their own, got {both[0]!r}: a parameter")
        known: dict[str, Any] = jax.eval_shape(self.values, shapes)
        for name, axes in self.dims.items():
            if name not in known:
                raise ValueError(f"dims must name parameters of {argument}, {sorted(known)}, got {name!r}")
            if len(axes) != len(known[name].shape):
                raise ValueError(
                    f"dims[{name!r}] must name its {len(known[name].shape)} axes, shape {known[name].shape}, got {axes}"
                )
            for axis, size in zip(axes, known[name].shape, strict=True):
                if axis in self.coords and len(self.coords[axis]) != size:
                    raise ValueError(
                        f"coords[{axis!r}] must have {size} names, one for each along {name!r}, got "
                        f"{len(self.coords[axis])}"
                    )


def _axes(name: str, given: Any) -> list[str]:
    """The names of the axes of a parameter."""
    axes: list[Any] = [given] if isinstance(given, str) else list(given) if isinstance(given, (list, tuple)) else [None]
    if not all(isinstance(axis, str) for axis in axes):
        raise TypeError(f"dims[{name!r}] must be a name or a list of names, got {check.shown(given)}")
    return axes


def _names(name: str, given: Any) -> np.ndarray:
    """The names along an axis."""
    try:
        names = np.asarray(given)
    except Exception:  # ragged, or an object with ideas of its own
        names = np.zeros(())
    if names.ndim != 1 or names.dtype.kind not in "iufUSM":
        raise TypeError(f"coords[{name!r}] must be a list of names or numbers, got {check.shown(given)}")
    return names
