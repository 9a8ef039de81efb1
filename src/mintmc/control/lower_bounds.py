"""Lower bounds of a likelihood: what Firefly Monte Carlo needs of a model besides the likelihood itself.

A bound gives log B_i(theta) <= log L_i(theta) for every row, and the sum over all rows in time that does not depend on
n. For logistic regression, with s = y_i x_i'theta, y_i = -1 or +1 and log L_i = log sigmoid(s), Jaakkola & Jordan
(1997) have for every xi >= 0

    log B_i = a s^2 + s/2 + c,      a = -tanh(xi/2) / (4 xi),      c = -a xi^2 - log(2 cosh(xi/2)),

which touches log L_i at s = -xi and s = +xi. The sum is theta'A theta + b'theta + sum c_i with A = sum a_i x_i x_i' and
b = sum y_i x_i / 2: O(d^2). All of it holds exactly; a margin below the tangent keeps rounding from breaking it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from mintmc import check
from mintmc.compiled import ByContent
from mintmc.data import Rows, named_leaves
from mintmc.params import Params

_MARGIN = 1e-5
"""A float32 of size s is rounded by 1e-7 s. Below this a tangent could come out above the likelihood; its price is
one bright row in 100,000."""


_LARGEST_XI = 1e30
"""The sums of a bound are then still float32 numbers, at any n."""


class Bound(Protocol):
    """A lower bound of every row's log-likelihood.

    It may also have ``change(params, proposed)``, which is total(proposed) - total(params) without the rounding
    error of two large numbers; it is used where it exists.
    """

    @property
    def constants(self) -> Rows:
        """Numbers of each row that the bound needs besides the data: a pytree with leading axis n, or None."""
        ...

    def log_bound(self, params: Params, datum: Any, constants: Any) -> Array:
        """The log bound of one row, from its ``datum`` and its ``constants``: at most its log-likelihood."""
        ...

    def total(self, params: Params) -> Array:
        """The sum of log B_i over all rows, without reading them."""
        ...


def change(bound: Bound, here: Params, there: Params) -> Array:
    """The change of the sum of log bounds, as accurately as the bound knows it."""
    exact = getattr(bound, "change", None)
    return bound.total(there) - bound.total(here) if exact is None else exact(here, there)


@dataclass(frozen=True, eq=False)
class JaakkolaJordan(ByContent):
    """The bound of Jaakkola & Jordan for logistic regression; built by ``untuned`` or ``tuned``.

    Rows of data are ``{"x": (d,), "y": -1 or +1}`` and the log-likelihood is log_sigmoid(y * x'theta), where theta is
    params as one flat vector.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> x, y = jnp.array([[1.0, 2.0], [0.5, -1.0]]), jnp.array([1.0, -1.0])
    >>> bound, theta = JaakkolaJordan.untuned(x, y), jnp.array([0.3, -0.2])
    >>> each = jax.vmap(bound.log_bound, (None, 0, 0))(theta, {"x": x, "y": y}, bound.constants)
    >>> bool(jnp.all(each < jax.nn.log_sigmoid(y * (x @ theta)))), bool(jnp.allclose(each.sum(), bound.total(theta)))
    (True, True)
    """

    xi: np.ndarray  # (n,) where each row's bound touches its likelihood
    constants: dict[str, np.ndarray]  # "a" and "c" of each row
    quadratic: np.ndarray  # A
    linear: np.ndarray  # b
    constant: np.ndarray  # sum of c_i

    @classmethod
    def untuned(cls, x: Any, y: Any, xi: float = 1.5) -> JaakkolaJordan:
        """The same xi for all rows; 1.5 leaves rows with 0.1 < L < 0.9 dark with probability above 0.98."""
        xi = check.number("xi", xi, 0, closed=(True, False))
        if xi > _LARGEST_XI:
            raise ValueError(f"xi must be at most {_LARGEST_XI:g}, got {xi:g}")
        x, y = _checked(x, y)
        return cls._at(x, y, np.full(len(x), xi))

    @classmethod
    def tuned(cls, x: Any, y: Any, theta_map: Params) -> JaakkolaJordan:
        """The bound that touches every likelihood at ``theta_map``: hardly any row is bright near there."""
        x, y = _checked(x, y)
        leaves = [check.array(f"theta_map{name}", leaf).ravel() for name, leaf in named_leaves(theta_map, "theta_map")]
        theta = np.concatenate([np.zeros(0), *leaves])
        if theta.shape != x.shape[1:]:
            raise ValueError(f"theta_map must hold d={x.shape[1]} finite numbers, got {check.shown(theta_map)}")
        return cls._at(x, y, np.abs(x @ theta))

    @classmethod
    def _at(cls, x: np.ndarray, y: np.ndarray, xi: np.ndarray) -> JaakkolaJordan:
        # In float64 on the host: these sums run over all rows.
        safe = np.maximum(xi, 1e-6)
        a = -np.tanh(safe / 2) / (4 * safe)
        log_2cosh = xi / 2 + np.log1p(np.exp(-xi))
        c = -a * xi**2 - log_2cosh - _MARGIN * (1 + xi)
        sums = [(x.T * a) @ x, y @ x / 2, c.sum()]
        return cls(xi, {"a": _kept(a), "c": _kept(c)}, *map(_kept, sums))

    def log_bound(self, params: Params, datum: Any, constants: Any) -> Array:
        """The bound of one row."""
        s = datum["y"] * jnp.dot(datum["x"], ravel_pytree(params)[0])
        result: Array = constants["a"] * s**2 + s / 2 + constants["c"]
        return result

    def total(self, params: Params) -> Array:
        """The sum over all rows."""
        theta = ravel_pytree(params)[0]
        return theta @ self._times(theta) + self.linear @ theta + self.constant

    def change(self, params: Params, proposed: Params) -> Array:
        """A difference of squares: the two sums, each of size n, are never formed."""
        here, there = ravel_pytree(params)[0], ravel_pytree(proposed)[0]
        return (there - here) @ (self._times(there + here) + self.linear)

    def _times(self, theta: Array) -> Array:
        # Accelerators round the factors of a product to 10 bits unless told not to.
        return jnp.matmul(self.quadratic, theta, precision="highest")


def _kept(numbers: Any) -> np.ndarray:
    """In JAX's precision, on the host: as a store gives them back."""
    return np.asarray(numbers, jax.dtypes.canonicalize_dtype(np.float64))


def _checked(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    x = check.array("x", x, "a finite array of shape (n, d)", dims=(2,))
    if x.size == 0:
        raise ValueError(f"x must be a finite array of shape (n, d), got shape {x.shape}")
    y = check.array("y", y, "an array of -1 and +1")
    if y.shape != x.shape[:1]:
        raise ValueError(f"y must have shape (n={len(x)},), got {y.shape} where x has {len(x)} rows")
    if not np.isin(y, (-1, 1)).all():
        raise ValueError(f"y must be -1 or +1, got {y[~np.isin(y, (-1, 1))][0]:g}")
    return x, y
