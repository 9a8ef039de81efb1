"""How far a row's log-likelihood can change, and how far from its expansion it can be.

For a regression model l_i(theta) = f_i(x_i'theta) with |f_i'|, |f_i''|, |f_i'''| <= L0_i, L1_i, L2_i, and w_i the
expansion of d_i = l_i(theta') - l_i(theta) around a centre (``control/taylor.py``), every row has
|d_i - w_i| <= c_i M(theta, theta') with

    c_i = L0_i |x_i|, L1_i |x_i|^2 or L2_i |x_i|^3 at order 0 (w_i = 0), 1 or 2,

and M, which is the same for all rows, measures the move (``control/move_size.py``).

All of this holds in any coordinates. Lengths are therefore measured where the rows are about round, |x|^2 = x'G^-1 x
and |D|^2 = D'GD with G = sum L1_i x_i x_i', the curvature of the log-likelihood at most: a rare indicator, or columns
in other units, then cost nothing. ``published=True`` takes plain Euclidean lengths and the published M.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.compiled import ByContent
from mintmc.control.move_size import published_size, smallest_size
from mintmc.params import Params

_BLOCK = 2**16
"""Rows that the host works on at a time."""
_MOST_ROUNDED = 1024
"""Parameters beyond which coordinates are scaled, but not turned."""
_FLATTEST = 1e-8
"""The smallest curvature that is told from none, of the largest: of columns that are nearly the same."""


@dataclass(frozen=True, eq=False)
class RegressionBounds(ByContent):
    """Bounds for regression models, l_i(theta) = f_i(x_i'theta), with theta the params as one flat vector.

    Built by ``logistic``, ``probit``, ``poisson`` or ``student_t``, or from bounds of your own on the derivatives of
    f_i, each one number for all rows or one a row.

    Parameters
    ----------
    x
        The rows, an array of shape (n, d). An intercept is a column of ones.
    first, second, third
        At least the largest |f_i'|, |f_i''| and |f_i'''|; None where there is none, or it is not needed.
    published
        Euclidean lengths and the distances of Prado, Nemeth & Sherlock (2024), which are valid but not as small.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(size=(1000, 3))
    >>> bounds = mintmc.RegressionBounds.logistic(x)
    >>> bounds.scales(order=2).shape
    (1000,)
    """

    x: Any
    first: Any = None
    second: Any = None
    third: Any = None
    published: bool = False

    def __post_init__(self) -> None:
        check.plain(self)
        check.flag("published", self.published)
        object.__setattr__(self, "x", _checked_rows(self.x))
        given = {name: getattr(self, name) for name in _DERIVATIVES if getattr(self, name) is not None}
        if not given:
            raise ValueError("at least one of first, second and third must be given, got none")
        for name, value in given.items():
            object.__setattr__(self, name, _checked_constants(name, value, len(self.x)))

    @classmethod
    def logistic(cls, x: Any, published: bool = False) -> RegressionBounds:
        """For log_sigmoid(y_i x_i'theta) with y_i = -1 or +1, or the same with y_i = 0 or 1."""
        return cls(x, 1.0, 1 / 4, 3**0.5 / 18, published)

    @classmethod
    def probit(cls, x: Any, published: bool = False) -> RegressionBounds:
        """For the log of the normal distribution function at y_i x_i'theta, y_i = -1 or +1. Its slope has no bound."""
        return cls(x, None, 1.0, 0.2958, published)

    @classmethod
    def poisson(cls, x: Any, y: Any, published: bool = False) -> RegressionBounds:
        """For counts y_i of mean log(1 + exp(x_i'theta)); the exponential mean has no bounds."""
        counts = check.array("y", y, "an array of counts", dims=(1,))
        if (counts < 0).any():
            raise ValueError(f"y must be counts, at least 0, got {counts[counts < 0][0]:g}")
        rows = check.array("x", x, "an array of shape (n, d)", dims=(2,))
        if len(counts) != len(rows):
            raise ValueError(f"y must have n={len(rows)} counts, one for each row of x, got {check.shown(y)}")
        return cls(x, np.maximum(counts, 1.0), 1 / 4 + 0.1671 * counts, 3**0.5 / 18 + 0.06092 * counts, published)

    @classmethod
    def student_t(cls, x: Any, degrees: float, scale: float = 1.0, published: bool = False) -> RegressionBounds:
        """For y_i - x_i'theta of Student's t distribution with so many ``degrees`` of freedom, times ``scale``."""
        nu = check.number("degrees", degrees, *_SENSIBLE, closed=(True, True))
        s = check.number("scale", scale, *_SENSIBLE, closed=(True, True))
        third = (nu + 1) * (3 + 2 * 2**0.5) / (4 * nu**1.5 * s**3)
        return cls(x, (nu + 1) / (2 * nu**0.5 * s), (nu + 1) / (nu * s**2), third, published)

    def check_order(self, order: int) -> None:
        """Refuse an order whose derivative has no bound."""
        if getattr(self, _DERIVATIVES[order]) is None:
            wanted = f"{_DERIVATIVES[order]}, a bound on that derivative, for order {order}"
            raise ValueError(f"bounds must have {wanted}, got None")

    def scales(self, order: int) -> np.ndarray:
        """c_i of all rows."""
        self.check_order(order)
        result: np.ndarray = getattr(self, _DERIVATIVES[order]) * self._lengths ** (order + 1)
        return result

    def distance(self, order: int, here: Array, there: Array, centre: Array) -> Array:
        """M of a move, between flat vectors; the same for the way back."""
        step, middle = self._turned(there - here), self._turned((here - centre) + (there - here) / 2)
        size = published_size if self.published else smallest_size
        return size(order, jnp.vdot(step, step), jnp.vdot(middle, middle), jnp.vdot(step, middle))

    def _turned(self, vector: Array) -> Array:
        """Params in the coordinates in which lengths are measured."""
        if self._turn is None:
            return vector
        turn = jnp.asarray(self._turn[0].T, vector.dtype)
        return turn * vector if turn.ndim == 1 else jnp.matmul(turn, vector, precision="highest")

    @cached_property
    def _turn(self) -> tuple[np.ndarray, np.ndarray] | None:
        """What to multiply params and rows by, so that rows are about round: a vector, or a matrix from the right."""
        if self.published:
            return None
        weight = np.broadcast_to(1.0 if self.second is None else self.second, len(self.x))
        if self.x.shape[1] > _MOST_ROUNDED:
            scale = _root(sum(w @ part**2 for part, w in _blocks(self.x, weight)))
            return scale, 1 / scale
        curvature = sum((part.T * w) @ part for part, w in _blocks(self.x, weight))
        # Of columns scaled to one length, so that none is lost in the rounding of another.
        scale = _root(np.diagonal(curvature))
        values, vectors = np.linalg.eigh(curvature / np.outer(scale, scale))
        root = np.sqrt(np.maximum(values, _FLATTEST * (values.max() or 1.0)))  # rows may all be 0
        return scale[:, None] * (vectors * root), (vectors / root) / scale[:, None]

    @cached_property
    def _lengths(self) -> np.ndarray:
        """|x_i| of all rows."""
        if self._turn is None:
            return row_norms(self.x)
        turn = self._turn[1]
        turned = (part * turn if turn.ndim == 1 else part @ turn for (part,) in _blocks(self.x))
        return np.concatenate([np.linalg.norm(part, axis=1) for part in turned])


@dataclass(frozen=True, eq=False)
class RemainderBounds(ByContent):
    """Bounds for any other model: |d_i - w_i| <= scales_i * distance(params, proposed, centre) for every row.

    Parameters
    ----------
    scales
        c_i, one number a row.
    distance
        ``(params, proposed, centre) -> scalar``, the same if params and proposed change places. It must suit the
        order of the expansion.

    Examples
    --------
    >>> import jax.numpy as jnp, numpy as np, mintmc
    >>> bounds = mintmc.RemainderBounds(np.ones(100), lambda here, there, centre: jnp.abs(there - here) ** 3)
    """

    scales: Any
    distance: Callable[[Params, Params, Params], Array]

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", checked_scales("scales", self.scales))
        check.function("distance", self.distance)


def checked_scales(name: str, scales: Any) -> np.ndarray:
    """Refuse what is not one number a row, at least 0."""
    found = check.array(name, scales, "an array of one number a row", finite=False)
    if found.ndim != 1:
        raise TypeError(f"{name} must be an array of one number a row, got {check.shown(scales)}")
    if not (np.isfinite(found) & (found >= 0)).all() or not found.any():
        raise ValueError(f"{name} must be finite, at least 0 and not all 0, got {check.shown(scales)}")
    return found


def logistic_bound(x: Array) -> Callable[[Array, Array], Array]:
    """A bound on |d_i| for logistic regression with rows ``x``: the largest norm of a row times the step's length."""
    largest = row_norms(_checked_rows(x)).max()
    return lambda here, there: largest * jnp.linalg.norm(there - here)


def logistic_remainder(x: Array) -> Callable[[Array, Array, Array], Array]:
    """A bound on |d_i - w_i|, w_i of order 2, for logistic regression with rows ``x``."""
    bounds = RegressionBounds.logistic(x)
    largest = bounds.scales(2).max()
    return lambda here, there, centre: largest * bounds.distance(2, here, there, centre)


def row_norms(x: np.ndarray) -> np.ndarray:
    """The Euclidean length of every row."""
    return np.concatenate([np.linalg.norm(part, axis=1) for (part,) in _blocks(x)])


_DERIVATIVES = ("first", "second", "third")
_SENSIBLE = (1e-9, 1e9)
"""Beyond these, powers of a number are no longer float32."""


def _root(squares: Any) -> np.ndarray:
    """Lengths of columns, 1 where there is nothing."""
    return np.where(squares > 0, np.sqrt(squares), 1.0)


def _blocks(*arrays: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """The arrays side by side, some rows at a time, in float64."""
    for first in range(0, len(arrays[0]), _BLOCK):
        yield tuple(array[first : first + _BLOCK].astype(np.float64) for array in arrays)


def _checked_rows(x: Any) -> np.ndarray:
    """Refuse what is not an array of rows; it stays as it is, since a copy in float64 might not fit."""
    what = "a finite array of shape (n, d)"
    try:
        rows = np.asarray(x)
    except Exception:  # ragged, or an object with ideas of its own
        rows = np.empty(0, object)
    if rows.dtype.kind not in "iuf":
        raise TypeError(f"x must be {what}, got {check.shown(x)}")
    if rows.ndim != 2 or rows.size == 0:
        raise ValueError(f"x must be {what}, got shape {rows.shape}")
    if not all(np.isfinite(part).all() for (part,) in _blocks(rows)):
        raise ValueError(f"x must be {what}, got {check.shown(x)}")
    return rows


def _checked_constants(name: str, value: Any, n: int) -> Any:
    found = check.array(name, value, "a number, or one a row", dims=(0, 1))
    if found.ndim and len(found) != n:
        raise ValueError(f"{name} must be a number, or n={n} of them, got {check.shown(value)}")
    if (found < 0).any():
        raise ValueError(f"{name} must be at least 0, got {found.min():g}")
    return found if found.ndim else float(found)
