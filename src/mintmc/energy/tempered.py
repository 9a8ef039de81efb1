"""The log density of a chain at one temperature, exact or estimated on a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.apart import apart
from mintmc.data import Batch, Rows
from mintmc.energy.density import Density
from mintmc.energy.model import Model
from mintmc.reordered import may_reorder
from mintmc.shapes import Matrix, PerRow, Scalar, Vector

TEMPERS = ("posterior", "likelihood")
_IMPOSSIBLE = -1e30
"""The log-likelihood of an impossible row, where differences from it must be finite."""
_CERTAIN = 1e20
"""No log ratio of possible states is as large."""


class Estimate(NamedTuple):
    """A term of the log target or of a log ratio, estimated on a batch, and the variance of that estimate."""

    value: Array
    noise: Array


@dataclass(frozen=True)
class Tempered:
    """The log density of a chain at one temperature, in full and on batches.

    With ``exchange`` it is -U/T alone: what counts where two states change places on a ladder.
    """

    model: Model
    temperature: float | Array
    temper: str = "posterior"
    exchange: bool = False
    beside: ClassVar[int] = 0  # evaluations of a row, beside those at the states that are asked for

    @property
    def n_eff(self) -> float | Array:
        """The number of observations that the tempered posterior is worth."""
        return self.model.n / self.temperature

    def prior(self, theta: Array) -> Array:
        """The terms of the log target that need no data: those of the prior and of the Jacobian."""
        result: Array = self._own(*self.model.without_data(theta))
        return result

    def without_data_gradient(self, theta: Vector) -> Vector:
        """The gradient of the same terms."""
        result: Array = jnp.zeros_like(theta) + self._own(*self.model.without_data(theta, jax.grad))
        return result

    def without_data_curvature(self, theta: Vector) -> Matrix:
        """The Hessian of the same terms."""
        result: Array = jnp.zeros((theta.size, theta.size), theta.dtype) + self._own(
            *self.model.without_data(theta, jax.hessian)
        )
        return result

    def log_ratio(self, here: Density, there: Density) -> Array:
        """Exact log pi_T(there) - log pi_T(here), from two full passes."""
        prior, likelihood = there.minus(here)
        ratio = self._own(prior, jacobian_change(here, there)) + likelihood / self.temperature
        return jnp.where(there.is_zero, -jnp.inf, ratio)

    def full_gradient(self, theta: Vector, rows: Rows) -> tuple[Density, Vector]:
        """Exact density, and the exact gradient of the log target; 0 where the density is."""
        density, likelihood = self.model.density_and_gradient(theta, rows)
        gradient = self._own(*self.model.without_data(theta, jax.grad)) + likelihood / self.temperature
        return density, jnp.where(density.is_zero, 0, gradient)

    def base_gradient(self, theta: Vector) -> Vector:
        """The gradient of B: what stays the same of the log target's if the temperature changes."""
        result: Array = jnp.zeros_like(theta) + self._base(*self.model.without_data(theta, jax.grad))
        return result

    def batch_gradient(self, theta: Vector, batch: Rows) -> Vector:
        """Gradient of the log target, estimated on a batch; 0 where the prior is."""
        likelihood = jax.grad(lambda at: self.model.each(at, batch).mean())(theta)
        # Apart from the rest: a matrix product that something is added to is compiled another way, three times as slow.
        gradient = self.n_eff * jax.lax.optimization_barrier(likelihood) + self.without_data_gradient(theta)
        return jnp.where(self.model.is_possible(theta), gradient, 0)

    def informed(self, batch: Batch) -> Tempered:
        """The same target, with what it must be given besides rows: nothing."""
        return self

    def difference(self, here: Vector, there: Vector, batch: Rows) -> Estimate:
        """The log ratio, both ends on the same batch."""
        change = self._scaled_mean(self.differences(here, there, batch))
        value = change.value + self.known(here, there)
        return certain(change._replace(value=jnp.where(self.model.is_possible(there), value, -jnp.inf)))

    def differences(self, here: Vector, there: Vector, rows: Rows) -> PerRow:
        """What each row adds to the log ratio, as far as batches must estimate it; not tempered."""
        before, after = self.levels(here, rows), self.levels(there, rows)
        # Of rows that are impossible here or there, those there decide: -inf outweighs any finite number.
        return jnp.where(after == -jnp.inf, -jnp.inf, after - jnp.maximum(before, _IMPOSSIBLE))

    def levels(self, theta: Vector, rows: Rows) -> PerRow:
        """Numbers of the rows at one state whose differences are ``differences``."""
        return self.model.each(theta, rows)

    def known(self, here: Array, there: Array) -> Array:
        """The terms of the log ratio that need no batch."""
        return self.prior(there) - self.prior(here)

    def level(self, theta: Vector, batch: Rows) -> Estimate:
        """The likelihood's term of the log target itself: far noisier than a difference."""
        each = self.model.each(theta, batch)
        return certain(self._scaled_mean(each, jnp.where(jnp.abs(each[0]) < _CERTAIN, each[0], 0)))

    def _own(self, prior: Any, jacobian: Any) -> Any:
        """How log prior and log Jacobian, or anything linear in them, enter the log target."""
        tempered = prior * (1 / self.temperature) if self.temper == "posterior" else 0
        return tempered + self._base(prior, jacobian)

    def _base(self, prior: Any, jacobian: Any) -> Any:
        """The same for B."""
        if self.exchange:
            return 0
        return (prior if self.temper == "likelihood" else 0) + (0 if jacobian is None else jacobian)

    def _scaled_mean(self, each: Array, origin: Array | float = 0.0) -> Estimate:
        mean, variance = mean_and_its_variance(each, self.model.n, origin)
        return Estimate(self.n_eff * mean, self.n_eff**2 * variance)


def jacobian_change(here: Density, there: Density) -> Array | None:
    """Of the log Jacobian, from here to there; None without a change of variables."""
    return None if here.jacobian is None or there.jacobian is None else there.jacobian - here.jacobian


def certain(estimate: Estimate) -> Estimate:
    """Where an end is impossible the ratio is certain: no noise could make up for it."""
    return estimate._replace(noise=jnp.where(jnp.abs(estimate.value) > _CERTAIN, 0, estimate.noise))


def mean_and_its_variance(each: PerRow, n: int, origin: Scalar | float = 0.0) -> tuple[Scalar, Scalar]:
    """The mean of m of n values drawn without replacement, and its estimated variance.

    Where sums may be reordered it is one sweep, in which values are computed and never written. What all of them share
    may drown their variance there: the error of its scaled value s2 is the square of the scaled mean, times 1e-7, over
    m. For a difference that is nothing, as long as its mean could be accepted or not; levels must be counted from an
    ``origin``.
    """
    m = each.shape[0]
    mean, squares = _swept(each, origin) if may_reorder() else apart(_in_order, each)
    # One row has no sample variance: its noise is unknown (NaN), not zero.
    # A whole number beyond 32 bits would not reach the program.
    return mean, squares / float((m - 1) * m) * (1 - m / n) if m > 1 else jnp.full_like(mean, jnp.nan)


def _in_order(each: Array) -> tuple[Array, Array]:
    """The mean, and the sum of squares around it."""
    mean = jnp.dot(each, jnp.ones_like(each)) / each.shape[0]
    return mean, jnp.vdot(each - mean, each - mean)


def _swept(each: Array, origin: Array | float) -> tuple[Array, Array]:
    """The same in one sweep."""
    above, zero = each - origin, jnp.zeros((), each.dtype)
    total, squares = jax.lax.reduce(
        (above, above * above), (zero, zero), lambda one, other: (one[0] + other[0], one[1] + other[1]), (0,)
    )
    mean = total / each.shape[0]
    return origin + mean, jnp.maximum(squares - total * mean, 0)
