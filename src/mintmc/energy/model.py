"""Log-likelihood and log prior of flat parameters: on rows, and summed over all data in blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.apart import apart
from mintmc.data import Rows, as_rows, cut_out, gathered
from mintmc.energy.density import Density
from mintmc.energy.two_floats import fold, join, two_sum
from mintmc.shapes import PerRow, Vector

DATA_AXIS = "data"
PARTS = 16
"""A full pass over many blocks is made of so many parts, so that its sum does not depend on who computes which."""


class Referenced(NamedTuple):
    """Rows beside their log-likelihoods at a reference state.

    The noise of an energy estimated on a batch is mostly that of the level, the same for all states of interest:
    counted from a reference state it is 13 to 300 times smaller on the paper's 50-mode posterior.
    """

    rows: Rows
    log_likelihood: Any  # an array


@dataclass(frozen=True)
class Model:
    """Log-likelihood of one datum and log prior, as functions of a flat vector of parameters."""

    log_likelihood: Any  # (theta, datum) -> scalar; None for a density without data
    log_prior: Callable[[Array], Array]
    n: int
    block: int  # rows of a full pass that are worked on at a time
    source: Any = None  # data that the host reads from a file: full passes ask for them
    finds_reference: bool = False  # whether batches find their log-likelihoods at a reference as they are read
    sharers: int = 1  # processes that share each full pass, along the axis DATA_AXIS
    log_jacobian: Callable[[Array], Array] | None = None  # of a change of variables; never tempered
    has_prior: bool = False  # whether a prior was given beside a likelihood
    log_likelihoods: Any = None  # (theta, rows) -> one for each, where the user's function takes many rows at once

    def tempered(self, wanted: str | None) -> str:
        """What a ladder tempers if that is left open: the likelihood, where there is a prior to stay as it is."""
        return wanted or ("likelihood" if self.has_prior else "posterior")

    def is_possible(self, theta: Array) -> Array:
        """False where the prior is zero; no likelihood need be asked there."""
        is_possible = self.log_prior(theta) != -jnp.inf
        return is_possible if self.log_jacobian is None else is_possible & (self.log_jacobian(theta) != -jnp.inf)

    def no_density(self, dtype: Any) -> Density:
        """A density in the form of this model's: all 0."""
        zero = jnp.zeros((), dtype)
        return Density(zero, zero, zero, None if self.log_jacobian is None else zero)

    def each(self, theta: Vector, rows: Rows) -> PerRow:
        """Log-likelihoods of the given rows, which may be Referenced, one by one."""
        rows = as_rows(rows.rows if isinstance(rows, Referenced) else rows)
        each = self.log_likelihoods or jax.vmap(self.log_likelihood, (None, 0))
        result: Array = each(theta, rows)
        return result

    def energies_above(
        self, theta: Array, batch: Referenced, reference: Density, temper: str = "posterior"
    ) -> tuple[Array, Array]:
        """U above that of a reference, estimated on a batch, and what each row adds to its mean."""
        each = batch.log_likelihood - self.each(theta, batch)
        energy = self.n * each.mean()
        if temper == "posterior":
            energy = energy + reference.prior - self.log_prior(theta)
        return jnp.where(self.is_possible(theta), energy, jnp.inf), each

    def reference_rows(self, batch_size: int) -> int:
        """Rows read to know a batch's log-likelihoods at the reference: none where they lie beside the rows."""
        return batch_size if self.finds_reference else 0

    def density(self, theta: Vector, rows: Rows) -> Density:
        """Exact log density on all data, block by block."""
        return self._full_pass(theta, rows, with_gradient=False)[0]

    def density_and_gradient(self, theta: Vector, rows: Rows) -> tuple[Density, Vector]:
        """Exact log density with the gradient of the log-likelihood, in one pass."""
        return self._full_pass(theta, rows, with_gradient=True)

    def without_data(
        self, theta: Array, transform: Callable[..., Any] = lambda function: function
    ) -> tuple[Array, Array | None]:
        """Log prior and log Jacobian (None without one), or what ``transform``, such as jax.grad, makes of them."""
        jacobian = None if self.log_jacobian is None else transform(self.log_jacobian)(theta)
        return transform(self.log_prior)(theta), jacobian

    def rows_at(self, rows: Rows, index: Array) -> Rows:
        """The rows of the given numbers; beyond the last row it is the last."""
        index = jnp.minimum(index, self.n - 1)
        if self.source is None:
            return gathered(rows, index)
        return self.source.within(self.source.take, self.source.shapes(index.size), index)

    def part(self, rows: Rows, first: Array, size: int) -> Rows:
        """``size`` neighbouring rows from number ``first`` on, for a full pass in blocks."""
        if self.source is None:
            return cut_out(rows, first, size)
        return self.source.within(lambda at: self.source.read(int(at), int(at) + size), self.source.shapes(size), first)

    def _full_pass(self, theta: Array, rows: Rows, with_gradient: bool) -> tuple[Density, Array]:
        prior, jacobian = self.without_data(theta)
        zero = jnp.zeros((), theta.dtype)
        if self.log_likelihood is None:
            return Density(prior, zero, zero, jacobian), jnp.zeros_like(theta)
        # Apart, so that what is around it is compiled alike whether or not others share it.
        total, rest, gradient = apart(partial(self._sums, with_gradient=with_gradient), theta, rows)
        return Density(prior, total, rest, jacobian), gradient

    def _sums(self, theta: Array, rows: Rows, with_gradient: bool) -> tuple[Array, Array, Array]:
        """The log-likelihood of all data as two floats, and its gradient."""
        size = self.block

        def block(theta: Array, i: Array) -> tuple[Array, Array]:
            # The last block is moved up to end at row n; what it shares with its neighbour is masked.
            first = jnp.minimum(i * size, self.n - size)
            part = self.part(rows, first, size)
            each = jnp.where(first + jnp.arange(size) >= i * size, self.each(theta, part), 0)
            # Half of it: a matrix product that something is added to as it is would be compiled another way, at half
            # the speed.
            return 0.5 * each.sum(), each

        def add(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            total, rest, gradient = carry
            if with_gradient:
                block_gradient, each = jax.grad(block, has_aux=True)(theta, i)
                gradient = gradient + 2 * block_gradient
            else:
                _, each = block(theta, i)
            total, error = two_sum(total, each)
            return total, rest + error, gradient

        blocks = -(-self.n // size)
        parts = PARTS if blocks >= PARTS else 1
        lanes = jnp.zeros((size,), theta.dtype)

        def part(p: Array) -> tuple[Array, Array, Array]:
            bounds = (p * blocks // parts, (p + 1) * blocks // parts)
            result: tuple[Array, Array, Array] = jax.lax.fori_loop(*bounds, add, (lanes, lanes, jnp.zeros_like(theta)))
            return result

        is_shared = self.sharers > 1 and parts > 1
        own = parts // self.sharers if is_shared else parts
        first = jax.lax.axis_index(DATA_AXIS) * own if is_shared else 0
        total, rest, gradient = jax.lax.map(part, first + jnp.arange(own))
        # A handful of numbers, so that others wait for one short message.
        numbers = join(jnp.concatenate([jnp.stack(fold(total, rest), -1), gradient], -1))
        if is_shared:
            numbers = join(jax.lax.all_gather(numbers, DATA_AXIS))
        # The two-sum of infinities is not a number: a sum of -inf has nothing beside it.
        return numbers[0], jnp.where(numbers[0] == -jnp.inf, 0, numbers[1]), numbers[2:]


def block_size(n: int, numbers_per_row: int, dim: int, by_host: bool) -> int:
    """Rows of a full pass to work on at a time.

    In memory so few that what they need stays in the cache and XLA does not split the work on them among threads, which
    takes longer than the work itself; chains have the other cores. Where the host reads them, as many as are worth it.
    """
    smallest, largest = (256, 8192) if by_host else (64, 512)
    return min(n, max(smallest, min(largest, 2**16 // max(numbers_per_row, dim, 1))))
