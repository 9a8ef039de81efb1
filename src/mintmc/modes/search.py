"""The log target on all data, as a search for its mode asks for it, counted in passes."""

from __future__ import annotations

from threading import Lock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.control.taylor import Expansion, expand
from mintmc.energy import Density, Tempered
from mintmc.flat import FlatTarget


class NoModeError(ValueError):
    """There is no mode to be found from here."""


class NotConvergedError(NoModeError):
    """The search ended somewhere, but not in a mode."""


class Search:
    """What a search knows: the best state so far, and what was read to know it."""

    def __init__(self, flat: FlatTarget, max_passes: int):
        self.posterior, self.unravel, self.max_passes = flat.posterior, flat.unravel, max_passes
        model, target = flat.model, Tempered(flat.model, 1.0)
        self.target = target
        self.rows_read, self.passes, self._lock = 0, 0.0, Lock()
        self.best: Array = jnp.zeros(flat.dim, flat.dtype)
        self._lowest = np.inf
        self._density = flat.compiled(("density",), lambda: jax.jit(model.density))
        self._gradient = flat.compiled(("full gradient",), lambda: jax.jit(target.full_gradient))
        self._own_gradient = flat.compiled(("own gradient",), lambda: jax.jit(target.without_data_gradient))
        self._expand = flat.compiled(("expand", 2), lambda: jax.jit(lambda at, rows: expand(model, at, rows, 2)))

    def density(self, theta: Array) -> Density:
        """The log density of a state."""
        return self._noted(theta, self._counted(self._density(theta, self.posterior.rows)))

    def gradient(self, theta: Array) -> tuple[Density, Array]:
        """The same with its gradient."""
        density, gradient = self._counted(self._gradient(theta, self.posterior.rows))
        return self._noted(theta, density), gradient

    def expansion(self, theta: Array) -> tuple[Expansion, np.ndarray]:
        """The expansion of the log-likelihood, and the gradient of the log target."""
        own = np.asarray(self._own_gradient(theta), float)
        if self.posterior.data is None:
            zero = jnp.zeros((theta.size, theta.size), theta.dtype)
            return Expansion(theta, jnp.zeros_like(theta), zero), own
        expansion = self._counted(self._expand(theta, self.posterior.rows))
        return expansion, np.asarray(expansion.gradient, float) + own

    def first(self, theta: Array) -> Density:
        """The density of the state to start from, which must have one."""
        here = self.density(theta)
        if not np.isfinite(here.energy()):
            raise NoModeError(
                f"init must have a finite log density, got {-float(here.energy())} at {self.shown(theta)}"
            )
        return here

    def gain(self, here: Density, there: Density) -> float:
        """How much larger the log density is there."""
        return float(self.target.log_ratio(here, there))

    def shown(self, theta: Array) -> str:
        """A state, for a message."""
        return check.shown(jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), self.unravel(theta)))

    def named(self, direction: np.ndarray) -> str:
        """The parameter that a direction is mostly about."""
        names = []
        for path, leaf in jax.tree_util.tree_leaves_with_path(self.unravel(jnp.zeros(direction.size))):
            name = jax.tree_util.keystr(path, simple=True, separator=".") or "theta"
            names += [f"{name}{list(i) if i else ''}" for i in np.ndindex(np.shape(leaf))]
        return names[int(np.abs(direction).argmax())]

    def energy(self, theta: Any) -> float:
        """That of a state, less its log Jacobian: what a search makes smaller."""
        return _full_energy(self.density(jnp.asarray(theta, self.best.dtype)))

    def _noted(self, theta: Array, density: Density) -> Density:
        """Remember the best state so far."""
        energy = _full_energy(density)
        if energy < self._lowest:
            self.best, self._lowest = theta, energy
        return density

    def _counted(self, result: Any) -> Any:
        jax.block_until_ready(result)
        if self.posterior.data is not None:
            self.posterior.data.check_reads()
        with self._lock:
            self.rows_read += self.posterior.n
            self.passes += 1
        if self.passes > self.max_passes:
            raise NotConvergedError(
                f"max_passes must be larger: no mode was found in so many passes, got {self.max_passes}"
            )
        return result


def _full_energy(density: Density) -> float:
    return float(density.energy()) - (0.0 if density.jacobian is None else float(density.jacobian))
