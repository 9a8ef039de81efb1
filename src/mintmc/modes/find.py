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
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.control.laplace import laplace
from mintmc.control.taylor import Expansion
from mintmc.data import ArrayData
from mintmc.flat import FlatTarget
from mintmc.modes.newton import End, newton, quasi_newton
from mintmc.modes.search import NoModeError, NotConvergedError, Search
from mintmc.params import Params, as_floats
from mintmc.posterior import Posterior, check_counted

_NEWTON_DIM = 1000
"""More parameters than these take L-BFGS: a Hessian would cost as much as d gradients."""
_FEW_ROWS = 20_000
"""Data of fewer rows are worked on as a whole from the first step on."""
_ENOUGH = 50
"""Rows a parameter that a part of the data must have."""
_NEAR = 1.0
"""Standard deviations (of its own posterior) from its mode at which a part of the data has done its service."""


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
        Distance to the mode at which to end, in posterior standard deviations, at most 0.5.
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
    check.number("tolerance", tolerance, 1e-9, 0.5, closed=(True, True))
    check.integer("max_passes", max_passes, 1)
    check.integer("seed", seed, 0, 2**32 - 1)
    init = as_floats(init)
    theta = posterior.vector(init)
    posterior.check_functions(init, "init")
    return mode_of(posterior.flat(init), theta, tolerance=tolerance, max_passes=max_passes, seed=seed)


def mode_of(
    flat: FlatTarget,
    theta: Array,
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
    check_counted(flat.posterior)
    search, has_hessian = Search(flat, max_passes), order == 2 and theta.size <= _NEWTON_DIM
    try:
        if not has_hessian:
            return _mode(search, quasi_newton(search, theta, tolerance))
        check_hessian_fits(theta.size)
        return _mode(search, newton(search, _begun(search, flat, theta, seed), tolerance))
    except NotConvergedError:
        if is_patient:
            raise
        search.max_passes = 2**31
        expansion = search.expansion(search.best)[0] if has_hessian else None
        return _mode(search, End(search.best, search.density(search.best), float("nan"), None, expansion))


def check_hessian_fits(dim: int) -> None:
    """Refuse a Hessian that would take more than a quarter of the machine's memory."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**34
    needed = 6 * 8 * dim**2  # in float64: itself, its eigenvectors, a few copies
    if needed > memory / 4:
        raise ValueError(
            f"order must be 1 for {dim:,} parameters: their Hessian would take {needed / 2**30:.1f} GB (a gradient, "
            f"all that order=1 needs, takes {8 * dim / 2**20:.1f} MB), got 2"
        )


def _begun(search: Search, flat: FlatTarget, theta: Array, seed: int) -> Array:
    """Come near on a random part of the rows, each of which counts for several."""
    part = part_of(flat, seed)
    if part is None:
        return theta
    on_part = Search(part, search.max_passes)
    # All data may have a mode where a part has none.
    with suppress(NoModeError):
        # Its standard deviations are those of n rows, its mode is sqrt(n / size) of them away: no need to be exact.
        theta = newton(on_part, theta, _NEAR, checks=False).theta
    search.rows_read += on_part.rows_read
    search.passes += on_part.rows_read / flat.n
    return theta


def part_of(flat: FlatTarget, seed: int) -> FlatTarget | None:
    """The posterior of a random part of the rows, each of which counts for several; None if all are few enough."""
    size = max(int(flat.n**0.75), _ENOUGH * flat.dim)
    if flat.posterior.data is None or flat.n < max(_FEW_ROWS, 4 * size):
        return None
    part: FlatTarget = flat.compiled(("part of the rows", seed), lambda: _part(flat, size, seed))
    return part


def _part(flat: FlatTarget, size: int, seed: int) -> FlatTarget:
    posterior: Any = flat.posterior
    chosen = np.unique(np.random.default_rng(seed).integers(0, flat.n, size))
    rows = jax.tree.map(np.asarray, posterior.data.take(chosen))
    weight, log_likelihood = flat.n / len(chosen), posterior.log_likelihood
    part = posterior.like(lambda params, rows: weight * log_likelihood(params, rows), ArrayData(rows))
    result: FlatTarget = part.flat(flat.unravel(jnp.zeros(flat.dim, flat.dtype)))
    return result


def _mode(search: Search, end: End) -> Mode:
    covariance = None
    if end.precision is not None and end.expansion is not None:
        normal = laplace(search.target, end.expansion)
        covariance = None if normal is None else _square(np.asarray(normal.factor, float))
    params, energy = search.unravel(end.theta), float(end.density.energy())
    read = (search.passes, end.left, end.precision, covariance, end.expansion, search.rows_read)
    return Mode(params, energy, *read)


def _square(factor: np.ndarray) -> np.ndarray:
    product: np.ndarray = factor @ factor.T
    return product
