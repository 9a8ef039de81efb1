"""Newton's method to a mode, and the check that it is one.

Steps are P^-1 g, P the negative Hessian, halved until the density grows. Where P has eigenvalues of the wrong sign,
L-BFGS goes ahead for a while (gradients are cheaper than Hessians, and far from a mode they are worth as much), and
then steps along those eigenvectors go uphill, too. A saddle point is left along its most negative direction.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import minimize

from mintmc.control.laplace import curvature
from mintmc.control.taylor import Expansion
from mintmc.energy import Density
from mintmc.modes.search import NoModeError, NotConvergedError, Search

_HALVINGS = 25
_DESCENTS, _STEPS = 4, 100
"""Stretches of L-BFGS, and steps of each, before Newton's method goes on from where the curvature is not a peak's."""
_SADDLE = 1e-4
"""Relative curvature of the wrong sign that is none of rounding's."""
_LEAST_FALL = 0.05
"""Of the log density at one standard deviation; a parabola falls by 0.5."""


class End(NamedTuple):
    """Where a search ended."""

    theta: Array
    density: Density
    left: float  # distance to the mode, in standard deviations
    precision: np.ndarray | None
    expansion: Expansion | None


class _Curvature(NamedTuple):
    """P in units that make its diagonal 1 or -1: eigenvalues, eigenvectors, and these units."""

    values: np.ndarray
    vectors: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, precision: np.ndarray) -> _Curvature:
        diagonal = np.abs(np.diagonal(precision))
        scale = np.sqrt(np.where(diagonal > 0, diagonal, max(diagonal.max(), 1.0)))
        return cls(*np.linalg.eigh(precision / np.outer(scale, scale)), scale)

    @property
    def bent(self) -> np.ndarray:
        """Turned round where it is of the wrong sign, and never flatter than rounding can tell."""
        size = np.abs(self.values)
        result: np.ndarray = np.maximum(size, 1e-6 * size.max() + 1e-300)
        return result

    def is_peak(self, eps: float) -> bool:
        """Whether it is that of a peak in all directions, rounding apart."""
        return bool(self.values[0] > len(self.values) * eps * self.values[-1])

    def left(self, gradient: np.ndarray) -> float:
        """How far the top of the parabola is, in standard deviations."""
        return float(np.sqrt(np.mean((self.vectors.T @ (gradient / self.scale)) ** 2 / self.bent)))

    def step(self, gradient: np.ndarray) -> np.ndarray:
        """To the top of the parabola."""
        result: np.ndarray = (self.vectors @ (self.vectors.T @ (gradient / self.scale) / self.bent)) / self.scale
        return result

    def along(self, j: int) -> np.ndarray:
        """One standard deviation along an eigenvector."""
        result: np.ndarray = self.vectors[:, j] / np.sqrt(self.bent[j]) / self.scale
        return result

    def length(self, vector: np.ndarray) -> float:
        """Of a vector, in standard deviations."""
        return float(np.sqrt(((self.vectors.T @ (vector * self.scale)) ** 2 * self.bent).sum()))


def newton(search: Search, theta: Array, tolerance: float, checks: bool = True) -> End:
    """Newton's method with a line search, to the mode; without ``checks`` that it is one."""
    here, eps, descents = search.first(theta), float(np.finfo(theta.dtype).eps), 0
    while True:
        expansion, gradient = search.expansion(theta)
        precision = curvature(search.target, expansion)
        _check_finite(search, theta, gradient, precision)
        shape = _Curvature.of(precision)
        left, is_peak = shape.left(gradient), shape.is_peak(eps)
        if left <= tolerance and (is_peak or not checks):
            break
        if not is_peak and left > tolerance and descents < _DESCENTS:
            descents += 1
            theta = jnp.asarray(lbfgs(search, theta, here, _STEPS).x, theta.dtype)
            here = search.density(theta)
            continue
        moved = _moved(search, theta, here, shape, gradient, is_near=left <= tolerance)
        if moved is None and is_peak and left <= 100 * tolerance:
            break  # as near as rounding lets it come
        if moved is None:
            raise NotConvergedError(
                f"init must lead to a mode, got stuck at {search.shown(theta)}, {left:.3g} standard deviations from "
                "where the gradient points"
            )
        theta, here = moved
    if checks:
        _check_falls(search, theta, here, shape)
    return End(theta, here, left, precision if checks else None, expansion)


def lbfgs(search: Search, theta: Array, first: Density, steps: int) -> Any:
    """Steps of L-BFGS on the energy above that of a first state."""

    def energy(at: np.ndarray) -> tuple[float, np.ndarray]:
        density, gradient = search.gradient(jnp.asarray(at, theta.dtype))
        value = -search.gain(first, density)
        return (value if np.isfinite(value) else np.inf), -np.asarray(gradient, float)

    options = {"maxiter": steps, "maxcor": 20, "ftol": 0}
    return minimize(energy, np.asarray(theta, float), jac=True, method="L-BFGS-B", options=options)


def quasi_newton(search: Search, theta: Array, tolerance: float) -> End:
    """L-BFGS, for many parameters; how far the mode is, is told by what it learned of the curvature."""
    first, left = search.first(theta), np.inf
    for _ in range(20):
        # Started anew where it stops on account of rounding, as long as that helps.
        found = lbfgs(search, theta, first, 500)
        before, left = left, float(np.sqrt(max(found.jac @ found.hess_inv.dot(found.jac), 0) / found.jac.size))
        theta = jnp.asarray(found.x, theta.dtype)
        if left <= tolerance or (not left < before and left <= 10 * tolerance):
            break  # there, or as near as rounding lets it come
        if not left < before:
            raise NotConvergedError(
                f"init must lead to a mode, got stuck {left:.3g} standard deviations from where the gradient points"
            )
    return End(theta, search.density(theta), left, None, None)


def _moved(
    search: Search, theta: Array, here: Density, shape: _Curvature, gradient: np.ndarray, is_near: bool
) -> tuple[Array, Density] | None:
    """A better state; where the gradient has vanished (``is_near``), off the top of a saddle to one side."""
    if not is_near:
        # A gain that rounding of the rows' sums could hide is not asked for.
        return _line_search(search, theta, here, shape.step(gradient), gradient, -_rounding(here))
    moved = None
    if shape.values[0] < -_SADDLE:
        moved = _line_search(search, theta, here, shape.along(0), gradient, _rounding(here))
    return _not_curved(search, theta, shape) if moved is None else moved


def _line_search(
    search: Search, theta: Array, here: Density, direction: np.ndarray, gradient: np.ndarray, least: float
) -> tuple[Array, Density] | None:
    """The farthest of a few points along a direction that is better, by ``least`` at least; None if there is none."""
    slope = max(float(gradient @ direction), 0.0)
    for halving in range(_HALVINGS):
        step = 0.5**halving
        there = jnp.asarray(np.asarray(theta, float) + step * direction, theta.dtype)
        if bool((there == theta).all()):
            return None
        density = search.density(there)
        gain = search.gain(here, density)
        if np.isfinite(gain) and gain >= 1e-4 * step * slope + least:
            return there, density
    return None


def _rounding(density: Density) -> float:
    """What may be wrong in a difference of two such densities."""
    likelihood = float(jnp.abs(density.likelihood))
    return 1e-3 + 1e-9 * likelihood if density.likelihood.dtype == jnp.float32 else 1e-9 * (1 + likelihood)


def _check_finite(search: Search, theta: Array, gradient: np.ndarray, precision: np.ndarray) -> None:
    for what, values in (("gradient", gradient), ("second derivatives", precision)):
        if not np.isfinite(values).all():
            at = search.shown(theta)
            raise NoModeError(f"log_likelihood and log_prior must have finite {what}, got others at {at}")


def _check_falls(search: Search, theta: Array, here: Density, shape: _Curvature) -> None:
    """The density must fall at a standard deviation, along the flattest directions and along theta itself."""
    outwards = np.asarray(theta, float)
    directions = [shape.along(j) for j in range(min(2, theta.size))]
    if theta.size > 1 and (length := shape.length(outwards)) > 0:
        directions.append(outwards / length)
    for direction in (*directions, *(-direction for direction in directions)):
        fall = -search.gain(here, search.density(jnp.asarray(outwards + direction, theta.dtype)))
        if fall < _LEAST_FALL - _rounding(here):
            raise NoModeError(
                f"posterior must have a mode: its density hardly falls (by a factor of {np.exp(-fall):.3g}, a normal "
                "one by 0.607) one standard deviation away from where the gradient vanishes, in the direction of "
                f"{search.named(direction)}: a mode at infinity (separable data?) or a ridge; give a proper prior, got "
                f"{search.shown(theta)}"
            )


def _not_curved(search: Search, theta: Array, shape: _Curvature) -> NoReturn:
    raise NotConvergedError(
        "init must lead to a mode, got a saddle point or a ridge: the density is not curved (relative curvature "
        f"{shape.values[0]:.2g}) in the direction of {search.named(shape.vectors[:, 0])} at {search.shown(theta)}"
    )
