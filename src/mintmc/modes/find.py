"""The mode of a posterior: few passes over all data, and an end that is measured in posterior standard deviations.

Newton's method on the log target f, damped by a line search, with the exact Hessian summed over all rows
(``control/taylor.py``): from where a random part of the rows has its mode (n^(3/4) of them, scaled up to n), the
remaining way is so short that two passes are the rule. Where the curvature has the wrong sign in some direction, far
from a mode or near a saddle point, L-BFGS goes ahead, and after it Newton's method with those curvatures turned round.
Many parameters (d > 1000) take L-BFGS throughout.

It ends where

    sqrt(g'P^-1 g / d) <= tolerance,        g = grad f,  P = -Hessian of f,

the distance to the mode of the local parabola, in standard deviations of the posterior. Whether that is a mode is
checked: P must be positive definite, and the density must fall in all directions that are checked, at one standard
deviation. Where the data are separable it does not: the mode is at infinity.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import minimize

from mintmc import check
from mintmc.control.laplace import Laplace, curvature, laplace
from mintmc.control.taylor import Expansion, expand
from mintmc.data import ArrayData, DiskData
from mintmc.energy import Density, Tempered
from mintmc.posterior import Params, Posterior, check_counted, flatten

_NEWTON_DIM = 1000
"""More parameters than these take L-BFGS: a Hessian would cost as much as d gradients."""
_FEW_ROWS = 20_000
"""Data of fewer rows are worked on as a whole from the first step on."""
_ENOUGH = 50
"""Rows a parameter that a part of the data must have."""
_NEAR = 1.0
"""Standard deviations (of its own posterior) from its mode at which a part of the data has done its service."""
_HALVINGS = 25
_DESCENTS, _STEPS = 4, 100
"""Stretches of L-BFGS, and steps of each, before Newton's method goes on from where the curvature is not a peak's."""
_SADDLE = 1e-4
"""Relative curvature of the wrong sign that is none of rounding's."""
_LEAST_FALL = 0.05
"""Of the log density at one standard deviation; a parabola falls by 0.5."""


@dataclass(frozen=True)
class Mode:
    """A mode of a posterior.

    ``gradient`` is what is left of it, in posterior standard deviations; ``covariance`` the inverse of ``precision``,
    the negative Hessian of the log posterior, over the flat parameters (None where they are too many).
    """

    params: Params
    energy: float
    passes: float  # over all data: gradients, Hessians, densities
    gradient: float
    precision: np.ndarray | None
    covariance: np.ndarray | None
    expansion: Expansion | None = None
    rows_read: int = 0


def find_mode(
    posterior: Posterior,
    init: Params,
    *,
    tolerance: float = 0.01,
    max_passes: int = 2000,
    seed: int = 0,
) -> Mode:
    """Find the mode of a posterior from ``init``.

    Parameters
    ----------
    posterior
        Its log-likelihood and log prior must be twice differentiable. The mode is that of the density over params, the
        log Jacobian included.
    init
        Params to start from.
    tolerance
        Distance to the mode at which to end, in posterior standard deviations.
    max_passes
        Passes over all data after which to give up, with an error.
    seed
        Of the random part of the rows that a large data set is begun with.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(3.0, 2.0, size=1000)
    >>> posterior = mintmc.Posterior(lambda mean, x: -0.5 * ((x - mean) / 2) ** 2, x)
    >>> mode = mintmc.find_mode(posterior, 0.0)
    >>> bool(abs(mode.params - x.mean()) < 1e-3), round(float(mode.covariance[0, 0]), 6)
    (True, 0.004)
    """
    check.instance("posterior", posterior, Posterior, "a mintmc.Posterior")
    check.number("tolerance", tolerance, 0)
    check.integer("max_passes", max_passes, 1)
    check.integer("seed", seed, 0, 2**32 - 1)
    theta, unravel = flatten(init, "init")
    posterior.check_functions(init, "init")
    return mode_of(posterior, theta, unravel, tolerance=tolerance, max_passes=max_passes, seed=seed)


def mode_of(
    posterior: Posterior,
    theta: Array,
    unravel: Callable[[Array], Params],
    *,
    tolerance: float = 0.01,
    max_passes: int = 2000,
    seed: int = 0,
    order: int = 2,
    is_patient: bool = True,
) -> Mode:
    """The same from a flat vector.

    If not ``is_patient``, what was reached will do where a search ends in a saddle, a flat valley, or for want of
    passes: a Mode without covariance.
    """
    check_counted(posterior)
    if order == 2 and theta.size <= _NEWTON_DIM:
        check_hessian_fits(theta.size)
        begun = _begin(posterior, theta, unravel, max_passes, seed)
        search = _Search(posterior, unravel, theta.size, max_passes)
        if begun is not None:
            search.rows_read, search.passes = begun.rows_read, begun.rows_read / posterior.n
        try:
            return _newton(search, theta if begun is None else begun.best, tolerance)
        except NotConvergedError:
            if is_patient:
                raise
            search.max_passes = 2**31
            expansion, _ = search.expansion(search.best)
            return _made(search, search.best, search.density(search.best), np.nan, None, expansion)
    return _quasi_newton(_Search(posterior, unravel, theta.size, max_passes), theta, tolerance)


def check_hessian_fits(dim: int) -> None:
    """Refuse a Hessian that would take more than a quarter of the machine's memory."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**34
    needed = 6 * 8 * dim**2  # in float64: itself, its eigenvectors, a few copies
    if needed > memory / 4:
        raise ValueError(
            f"order must be 1 for {dim:,} parameters: their Hessian would take {needed / 2**30:.1f} GB (a gradient, "
            f"all that order=1 needs, takes {8 * dim / 2**20:.1f} MB), got 2"
        )


class _Search:
    """The log target on all data, and what was read to know it."""

    def __init__(self, posterior: Posterior, unravel: Callable, dim: int, max_passes: int):
        self.posterior, self.unravel, self.max_passes = posterior, unravel, max_passes
        flat = posterior.flat(unravel(jnp.zeros(dim)))
        self.model = flat.model
        self.target = Tempered(self.model, 1.0)
        self.rows_read = 0
        self.passes = 0.0
        self.best: Array = jnp.zeros(dim)
        self._lowest = np.inf
        functions: dict[str, Callable] = {
            "density": self.model.density,
            "gradient": self.target.full_gradient,
            "own gradient": self.target.without_data_gradient,
            "expansion": partial(expand, self.model),
        }
        programs = (flat.compiled(("mode", name), partial(jax.jit, f)) for name, f in functions.items())
        self._density, self._gradient, self._own_gradient, self._expand = programs

    def density(self, theta: Array) -> Density:
        return self._noted(theta, self._counted(self._density(theta, self.posterior.rows)))

    def gradient(self, theta: Array) -> tuple[Density, Array]:
        density, gradient = self._counted(self._gradient(theta, self.posterior.rows))
        return self._noted(theta, density), gradient

    def _noted(self, theta: Array, density: Density) -> Density:
        """Remember the best state so far."""
        energy = float(density.energy()) - float(density.jacobian or 0)
        if energy < self._lowest:
            self.best, self._lowest = theta, energy
        return density

    def expansion(self, theta: Array) -> tuple[Expansion, np.ndarray]:
        """The expansion of the log-likelihood, and the gradient of the log target."""
        if self.posterior.data is None:
            zero = jnp.zeros((theta.size, theta.size), theta.dtype)
            return Expansion(theta, jnp.zeros_like(theta), zero), self.own_gradient(theta)
        expansion = self._counted(self._expand(theta, self.posterior.rows))
        return expansion, np.asarray(expansion.gradient, float) + self.own_gradient(theta)

    def own_gradient(self, theta: Array) -> np.ndarray:
        return np.asarray(self._own_gradient(theta), float)

    def _counted(self, result: Any) -> Any:
        jax.block_until_ready(result)
        if isinstance(self.posterior.data, DiskData):
            self.posterior.data.check_reads()
        self.rows_read += self.posterior.n
        self.passes += 1
        if self.passes > self.max_passes:
            raise NotConvergedError(
                f"max_passes must be larger: no mode was found in so many passes, got {self.max_passes}"
            )
        return result


def _begin(posterior: Posterior, theta: Array, unravel: Callable, max_passes: int, seed: int) -> _Search | None:
    """Come near on a random part of the rows, each of which counts for several."""
    data, n = posterior.data, posterior.n
    size = max(int(n**0.75), _ENOUGH * theta.size)
    if data is None or n < max(_FEW_ROWS, 4 * size):
        return None
    rng = np.random.default_rng(seed)
    chosen = np.unique(rng.integers(0, n, size))
    rows = jax.tree.map(np.asarray, data.take(chosen))
    weight, log_likelihood = n / len(chosen), check.function("log_likelihood", posterior.log_likelihood)
    part = Posterior(
        lambda params, datum: weight * log_likelihood(params, datum),
        ArrayData(rows),
        posterior.log_prior,
        log_jacobian=posterior.log_jacobian,
    )
    search = _Search(part, unravel, theta.size, max_passes)
    try:
        # Its standard deviations are those of n rows, its mode is sqrt(n / size) of them away: no need to be exact.
        mode = _newton(search, theta, _NEAR, checks=False)
        search.best = flatten(mode.params, "params")[0]
    except NoModeError:
        return None  # all data may have one where a part has none
    return search


class NoModeError(ValueError):
    """There is no mode to be found from here."""


class NotConvergedError(NoModeError):
    """The search ended somewhere, but not in a mode."""


def _newton(search: _Search, theta: Array, tolerance: float, checks: bool = True) -> Mode:
    """Newton's method with a line search, to the mode."""
    here = _finite(search, theta)
    descents = 0
    while True:
        expansion, gradient = search.expansion(theta)
        precision = curvature(search.target, expansion)
        if not (np.isfinite(gradient).all() and np.isfinite(precision).all()):
            what = "gradient" if not np.isfinite(gradient).all() else "second derivatives"
            at = _at(search, theta)
            raise NoModeError(f"log_likelihood and log_prior must have finite {what}, got others at {at}")
        values, vectors, scale = _eigen(precision)
        slopes = vectors.T @ (gradient / scale)
        is_peak = values[0] > len(values) * np.finfo(theta.dtype).eps * values[-1]
        # Turned round where it is of the wrong sign, and never flatter than rounding can tell.
        bent = np.maximum(np.abs(values), 1e-6 * np.abs(values).max() + 1e-300)
        left = np.sqrt(np.mean(slopes**2 / bent))
        if left <= tolerance and (is_peak or not checks):
            break
        if not is_peak and left > tolerance and descents < _DESCENTS:
            # Gradients are cheaper than Hessians, and far from a mode they are worth as much.
            descents += 1
            theta = _descend(search, theta)
            here = search.density(theta)
            continue
        if left <= tolerance:
            # On top of a saddle, to one side along its steepest way down; a ridge has none.
            least = _rounding(here)
            off = vectors[:, 0] / np.sqrt(bent[0]) / scale
            moved = _line_search(search, theta, here, off, gradient, least) if values[0] < -_SADDLE else None
            if moved is None:
                _not_curved(values, vectors, search, theta)
        else:
            direction = (vectors @ (slopes / bent)) / scale
            moved = _line_search(search, theta, here, direction, gradient, -_rounding(here))
        if moved is None:
            if is_peak and left <= 100 * tolerance:
                break  # as near as rounding lets it come
            raise NotConvergedError(
                f"init must lead to a mode, got stuck at {_at(search, theta)}, {left:.3g} standard deviations from "
                "where the gradient points"
            )
        theta, here = moved
    if not checks:
        return _made(search, theta, here, left, None, expansion)
    _check_falls(search, theta, here, values, vectors, scale)
    return _made(search, theta, here, left, precision, expansion)


def _line_search(
    search: _Search, theta: Array, here: Density, direction: np.ndarray, gradient: np.ndarray, least: float
) -> tuple[Array, Density] | None:
    """The farthest of a few points along a direction that is better, by ``least`` at least; None if there is none.

    ``least`` is below 0 where a gain that rounding of the rows' sums could hide is not asked for.
    """
    slope = max(float(gradient @ direction), 0.0)
    for halving in range(_HALVINGS):
        step = 0.5**halving
        there = jnp.asarray(np.asarray(theta, float) + step * direction, theta.dtype)
        if bool((there == theta).all()):
            return None
        density = search.density(there)
        gain = float(search.target.log_ratio(here, density))
        if np.isfinite(gain) and gain >= 1e-4 * step * slope + least:
            return there, density
    return None


def _rounding(density: Density) -> float:
    """What may be wrong in a difference of two such densities."""
    likelihood = float(jnp.abs(density.likelihood))
    return 1e-3 + 1e-9 * likelihood if density.likelihood.dtype == jnp.float32 else 1e-9 * (1 + likelihood)


def _lbfgs(search: _Search, theta: Array, first: Density, steps: int) -> Any:
    """Steps of L-BFGS on the energy above that of a first state."""

    def energy(at: np.ndarray) -> tuple[float, np.ndarray]:
        density, gradient = search.gradient(jnp.asarray(at, theta.dtype))
        value = -float(search.target.log_ratio(first, density))
        return (value if np.isfinite(value) else np.inf), -np.asarray(gradient, float)

    options = {"maxiter": steps, "maxcor": 20, "ftol": 0}
    return minimize(energy, np.asarray(theta, float), jac=True, method="L-BFGS-B", options=options)


def _descend(search: _Search, theta: Array) -> Array:
    """A stretch of L-BFGS, wherever it leads."""
    return jnp.asarray(_lbfgs(search, theta, search.density(theta), _STEPS).x, theta.dtype)


def _quasi_newton(search: _Search, theta: Array, tolerance: float) -> Mode:
    """L-BFGS, for many parameters; how far the mode is, is told by what it learned of the curvature."""
    first = _finite(search, theta)
    at, left = np.asarray(theta, float), np.inf
    for _ in range(20):
        # Started anew where it stops on account of rounding, as long as that helps.
        found = _lbfgs(search, jnp.asarray(at, theta.dtype), first, 500)
        gradient = found.jac
        before, left = left, float(np.sqrt(max(gradient @ found.hess_inv.dot(gradient), 0) / gradient.size))
        at = found.x
        if left <= tolerance:
            break
        if not left < before:
            raise NotConvergedError(
                f"init must lead to a mode, got stuck {left:.3g} standard deviations from where the gradient points"
            )
    end = jnp.asarray(at, theta.dtype)
    return _made(search, end, search.density(end), left, None, None)


def _made(search, theta, here, left, precision, expansion) -> Mode:
    covariance = None
    if precision is not None and expansion is not None and (normal := laplace(search.target, expansion)) is not None:
        covariance = _inverse(normal)
    params, energy = search.unravel(theta), float(here.energy())
    return Mode(params, energy, search.passes, float(left), precision, covariance, expansion, search.rows_read)


def _inverse(normal: Laplace) -> np.ndarray:
    factor = np.asarray(normal.factor, float)
    return factor @ factor.T


def _eigen(precision: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues and vectors of P in units that make its diagonal 1 or -1, and these units."""
    diagonal = np.abs(np.diagonal(precision))
    scale = np.sqrt(np.where(diagonal > 0, diagonal, max(diagonal.max(), 1.0)))
    values, vectors = np.linalg.eigh(precision / np.outer(scale, scale))
    return values, vectors, scale


def _finite(search: _Search, theta: Array) -> Density:
    here = search.density(theta)
    if not np.isfinite(here.energy()):
        raise NoModeError(f"init must have a finite log density, got {-float(here.energy())} at {_at(search, theta)}")
    return here


def _check_falls(search, theta, here, values, vectors, scale) -> None:
    """The density must fall at a standard deviation, along the flattest directions and along theta itself."""
    outwards = np.asarray(theta, float)
    flattest = [vectors[:, j] / np.sqrt(values[j]) / scale for j in range(min(2, len(values)))]
    length = np.sqrt(((vectors.T @ (outwards * scale)) ** 2 * values).sum())
    if length > 0 and len(values) > 1:
        flattest.append(outwards / length)
    for direction in flattest:
        for sign in (1, -1):
            there = jnp.asarray(outwards + sign * direction, theta.dtype)
            fall = -float(search.target.log_ratio(here, search.density(there)))
            if fall < _LEAST_FALL - _rounding(here):
                raise NoModeError(
                    "posterior must have a mode: its density hardly falls (by a factor of "
                    f"{np.exp(-fall):.3g}, a normal one by 0.607) one standard deviation away from where the gradient "
                    f"vanishes, in the direction of {_named(search, direction)}: a mode at infinity (separable data?) "
                    f"or a ridge; give a proper prior, got {_at(search, theta)}"
                )


def _not_curved(values, vectors, search, theta) -> NoReturn:
    raise NotConvergedError(
        f"init must lead to a mode, got a saddle point or a ridge: the density is not curved (relative curvature "
        f"{values[0]:.2g}) in the direction of {_named(search, vectors[:, 0])} at {_at(search, theta)}"
    )


def _named(search: _Search, direction: np.ndarray) -> str:
    """The parameter that a direction is mostly about."""
    index = int(np.abs(direction).argmax())
    names = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(search.unravel(jnp.zeros(direction.size))):
        name = jax.tree_util.keystr(path, simple=True, separator=".") or "theta"
        names += [f"{name}{list(i) if i else ''}" for i in np.ndindex(np.shape(leaf))]
    return names[index]


def _at(search: _Search, theta: Array) -> str:
    return check.shown(jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), search.unravel(theta)))
