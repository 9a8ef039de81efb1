"""A posterior as a function of flat vectors: what kernels and runs work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np
from jax import Array

from mintmc.compiled import RECENT
from mintmc.energy import Model
from mintmc.params import Params, raveled, variables
from mintmc.shown import Shown
from mintmc.transforms import Coordinates

_AT_A_TIME = 2**14
"""Draws whose params are found together: so many that it is worth it, so few that it takes no memory."""


@dataclass(frozen=True, eq=False)
class FlatTarget:
    """A posterior as a function of flat vectors, without bounds.

    It keeps what was compiled for it, so that a second run of the same kind compiles nothing.
    """

    posterior: Any  # the Posterior that it is a view of
    model: Model
    as_free: Callable[[Array], Params]  # from flat vectors to params without bounds
    unravel: Callable[[Array], Params]  # from flat vectors to params
    coordinates: Coordinates
    presented: Shown
    dim: int
    dtype: Any
    _programs: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        """The number of observations."""
        return self.model.n

    @property
    def is_plain(self) -> bool:
        """Whether params are what chains move: nothing is constrained."""
        return not self.coordinates.transforms

    def ravel(self, params: Params) -> Array:
        """A flat vector from params."""
        return raveled(self.coordinates.free(params))

    @property
    def names(self) -> list[str]:
        """The names of parameters, in the order in which flat vectors hold them."""
        return list(self.free(np.zeros((1, self.dim), self.dtype)))

    def free(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """What chains move, by the names of parameters: arrays (..., shape) from flat vectors (..., d)."""
        return variables(theta, self.as_free)

    def shown(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """What a user reads, by name: params as they were written, and what is computed from them."""
        if self.is_plain and self.presented.deterministics is None:
            return self.free(theta)
        flat = theta.reshape(-1, theta.shape[-1])
        one = lambda theta: self.presented.values(self.unravel(theta))  # noqa: E731
        each = self.compiled(("shown",), lambda: jax.jit(jax.vmap(one)))
        blocks = [jax.tree.map(np.asarray, each(flat[at : at + _AT_A_TIME])) for at in range(0, len(flat), _AT_A_TIME)]
        empty = jax.eval_shape(each, jax.ShapeDtypeStruct((0, flat.shape[1]), flat.dtype))
        whole = {
            name: np.concatenate([block[name] for block in blocks]) if blocks else np.zeros(like.shape, like.dtype)
            for name, like in empty.items()
        }
        names = self.names
        ordered = [*names, *(name for name in whole if name not in names)]
        return {name: whole[name].reshape(*theta.shape[:-1], *whole[name].shape[1:]) for name in ordered}

    @property
    def dims(self) -> Mapping[str, Any]:
        """The names of the axes of what is shown, where a user gave some."""
        return self.presented.dims

    @property
    def coords(self) -> Mapping[str, Any]:
        """The names along these axes."""
        return self.presented.coords

    def compiled(self, key: Any, build: Callable[[], Any]) -> Any:
        """What ``build`` returned when it was first asked for under this key, if that is not too long ago."""
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = build()
        RECENT.used(self, self._programs, key)
        return found

    def forget(self, key: Any) -> None:
        """Let go of what was compiled under a key."""
        self._programs.pop(key, None)

    def shared_by(self, sharers: int) -> FlatTarget:
        """The same, each of whose full passes so many devices make together."""
        if sharers == self.model.sharers:
            return self
        model = replace(self.model, sharers=sharers)
        result: FlatTarget = self.compiled(("shared", sharers), lambda: replace(self, model=model, _programs={}))
        return result
