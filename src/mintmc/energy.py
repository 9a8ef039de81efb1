"""Sums of log-likelihoods: the one place where n, m, T and the prior are scaled.

With l_i(theta) the log-likelihood of datum i, the chain's target is

    log pi_T(theta) = n_eff * mean_i l_i(theta) + w * log prior(theta),        n_eff = n / T,

with w = 1/T if the posterior is tempered (the paper's definition) and w = 1 if the likelihood alone is (the fractional
posterior). On a batch S of m of the n rows, drawn without replacement, the mean of any f_i has the estimated variance

    var_S(f_i) / m * (1 - m/n),

so an estimated log ratio n_eff * mean_S(l_i(theta') - l_i(theta)) has noise s2 = n_eff^2 times that.

A sum of 1e6 log-likelihoods does not fit into float32 (an error of 0.1), so a full pass carries it in two floats: every
addition's rounding error is computed exactly (Knuth's two-sum) and summed beside the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.data import Rows

TEMPERS = ("posterior", "likelihood")


class Density(NamedTuple):
    """Log prior and log-likelihood of one state on all data, neither scaled nor normalised."""

    prior: Array
    likelihood: Array
    likelihood_rest: Array  # what rounding took from `likelihood`

    def minus(self, other: Density) -> tuple[Array, Array]:
        """Differences of log prior and of log-likelihood, accurate even where both are huge."""
        likelihood = (self.likelihood - other.likelihood) + (self.likelihood_rest - other.likelihood_rest)
        return self.prior - other.prior, likelihood


class Estimate(NamedTuple):
    """A scaled log-likelihood term estimated on a batch, and the variance of that estimate."""

    value: Array
    noise: Array


@dataclass(frozen=True)
class Model:
    """Log-likelihood of one datum and log prior, as functions of a flat vector of parameters."""

    log_likelihood: Any  # (theta, datum) -> scalar; None for a density without data
    log_prior: Callable[[Array], Array]
    n: int
    block: int  # rows of a full pass that are worked on at a time

    def each(self, theta: Array, rows: Rows) -> Array:
        """Log-likelihoods of the given rows, one by one."""
        return jax.vmap(self.log_likelihood, (None, 0))(theta, rows)

    def density(self, theta: Array, rows: Rows) -> Density:
        """Exact log density on all data, block by block."""
        return self._full_pass(theta, rows, with_gradient=False)[0]

    def density_and_gradient(self, theta: Array, rows: Rows) -> tuple[Density, Array, Array]:
        """Exact log density with the gradients of log prior and log-likelihood, in one pass."""
        density, gradient = self._full_pass(theta, rows, with_gradient=True)
        return density, jax.grad(self.log_prior)(theta), gradient

    def _full_pass(self, theta: Array, rows: Rows, with_gradient: bool) -> tuple[Density, Array]:
        prior = self.log_prior(theta)
        zero = jnp.zeros((), theta.dtype)
        if self.log_likelihood is None:
            return Density(prior, zero, zero), jnp.zeros_like(theta)
        size = self.block

        def block(theta: Array, i: Array) -> tuple[Array, Array]:
            # The last block is moved up to end at row n; what it shares with its neighbour is masked.
            first = jnp.minimum(i * size, self.n - size)
            part = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, first, size), rows)
            each = jnp.where(first + jnp.arange(size) >= i * size, self.each(theta, part), 0)
            return each.sum(), each

        def add(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            total, rest, gradient = carry
            if with_gradient:
                block_gradient, each = jax.grad(block, has_aux=True)(theta, i)
                gradient = gradient + block_gradient
            else:
                _, each = block(theta, i)
            total, error = _two_sum(total, each)
            return total, rest + error, gradient

        lanes = jnp.zeros((size,), theta.dtype)
        blocks = -(-self.n // size)
        total, rest, gradient = jax.lax.fori_loop(0, blocks, add, (lanes, lanes, jnp.zeros_like(theta)))
        return Density(prior, *_fold(total, rest)), gradient


@dataclass(frozen=True)
class Tempered:
    """The log density of a chain at one temperature, in full and on batches."""

    model: Model
    temperature: float | Array
    temper: str = "posterior"

    @property
    def n_eff(self) -> float | Array:
        """The number of observations that the tempered posterior is worth."""
        return self.model.n / self.temperature

    @property
    def prior_weight(self) -> float | Array:
        """The power to which the prior is raised."""
        return 1 / self.temperature if self.temper == "posterior" else 1.0

    def prior(self, theta: Array) -> Array:
        """The prior's term of the log target."""
        return self.prior_weight * self.model.log_prior(theta)

    def log_ratio(self, here: Density, there: Density) -> Array:
        """Exact log pi_T(there) - log pi_T(here), from two full passes."""
        prior, likelihood = there.minus(here)
        return self.prior_weight * prior + likelihood / self.temperature

    def full_gradient(self, theta: Array, rows: Rows) -> tuple[Density, Array]:
        """Exact density, and the exact gradient of the log target."""
        density, prior, likelihood = self.model.density_and_gradient(theta, rows)
        return density, self.prior_weight * prior + likelihood / self.temperature

    def batch_gradient(self, theta: Array, batch: Rows) -> Array:
        """Gradient of the log target, estimated on a batch."""
        return jax.grad(lambda at: self.n_eff * self.model.each(at, batch).mean() + self.prior(at))(theta)

    def difference(self, here: Array, there: Array, batch: Rows) -> Estimate:
        """The likelihood's term of the log ratio, both ends on the same batch."""
        return self._scaled_mean(self.model.each(there, batch) - self.model.each(here, batch))

    def level(self, theta: Array, batch: Rows) -> Estimate:
        """The likelihood's term of the log target itself: far noisier than a difference."""
        return self._scaled_mean(self.model.each(theta, batch))

    def _scaled_mean(self, each: Array) -> Estimate:
        m = each.shape[0]
        mean = jnp.dot(each, jnp.ones_like(each)) / m
        # One row has no sample variance: its noise is unknown (NaN), not zero.
        variance = jnp.vdot(each - mean, each - mean) / (m - 1) if m > 1 else jnp.full_like(mean, jnp.nan)
        unseen = 1 - m / self.model.n
        return Estimate(self.n_eff * mean, self.n_eff**2 * variance / m * unseen)


def block_size(n: int, numbers_per_row: int, dim: int) -> int:
    """Rows of a full pass to work on at a time, so that what they need stays in the cache."""
    fitting = 2**18 // max(numbers_per_row, dim, 1)
    return min(n, max(256, min(8192, fitting)))


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    added = total - a
    return total, (a - (total - added)) + (b - added)


def _fold(total: Array, rest: Array) -> tuple[Array, Array]:
    """Sum the lanes of (total + rest) pairwise into one two-float number."""
    while total.shape[0] > 1:
        if total.shape[0] % 2:
            total, rest = (jnp.concatenate([lane, jnp.zeros_like(lane[:1])]) for lane in (total, rest))
        half = total.shape[0] // 2
        total, error = _two_sum(total[:half], total[half:])
        rest = rest[:half] + rest[half:] + error
    return total[0], rest[0]
