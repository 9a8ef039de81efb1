"""Sums of log-likelihoods: the one place where n, m, T and the prior are scaled.

With l_i(theta) the log-likelihood of datum i, the chain's target is

    log pi_T(theta) = B(theta) - U(theta) / T.

If the posterior is tempered (the paper's definition), U = -(sum_i l_i + log prior) is the energy; if the likelihood
alone is (the fractional posterior), U = -sum_i l_i, and the log prior belongs to B, which no temperature divides. The
log Jacobian of a change of variables always does: it belongs to the coordinates, not to the model. Where states change
places on a ladder B cancels. The likelihood's term is n_eff * mean_i l_i, n_eff = n / T.

On a batch S of m of the n rows, drawn without replacement, the mean of any f_i has the estimated variance

    var_S(f_i) / m * (1 - m/n),

so an estimated log ratio n_eff * mean_S(l_i(theta') - l_i(theta)) has noise s2 = n_eff^2 times that.

A sum of 1e6 log-likelihoods does not fit into float32 (an error of 0.1), so a full pass carries it in two floats: every
addition's rounding error is computed exactly (Knuth's two-sum) and summed beside the result.

A state of density zero (a log prior or log-likelihood of -inf) is no error: a move there has the log ratio -inf. The
prior comes first: what the likelihood says where the prior is zero does not count, even if it is not a number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental.xla_metadata import set_xla_metadata

from mintmc.data import Batch, Rows

TEMPERS = ("posterior", "likelihood")
DATA_AXIS = "data"
_IMPOSSIBLE = -1e30
"""The log-likelihood of an impossible row, where differences from it must be finite."""
_CERTAIN = 1e20
"""No log ratio of possible states is as large."""
PARTS = 16
"""A full pass over many blocks is made of so many parts, so that its sum does not depend on who computes which."""


class Density(NamedTuple):
    """Log prior and log-likelihood of one state on all data, neither scaled nor normalised."""

    prior: Array
    likelihood: Array
    likelihood_rest: Array  # what rounding took from `likelihood`
    jacobian: Array | None = None  # log Jacobian of a change of variables, if there is one: no part of the energy

    def minus(self, other: Density) -> tuple[Array, Array]:
        """Differences of log prior and of log-likelihood, accurate even where both are huge."""
        likelihood = (self.likelihood - other.likelihood) + (self.likelihood_rest - other.likelihood_rest)
        return self.prior - other.prior, likelihood

    def energy_above(self, reference: Density, temper: str = "posterior") -> Array:
        """U of this state less that of a reference state: what float32 can hold of it."""
        prior, likelihood = self.minus(reference)
        energy = -likelihood if temper == "likelihood" else -(prior + likelihood)
        return jnp.where(self.is_zero, jnp.inf, energy)

    def energy(self, temper: str = "posterior") -> np.ndarray:
        """U itself, in float64 on the host."""
        prior, likelihood, rest = (np.asarray(part, np.float64) for part in self[:3])
        energy = -(likelihood + rest) if temper == "likelihood" else -(prior + likelihood + rest)
        return np.where(np.asarray(self.is_zero), np.inf, energy)

    @property
    def is_zero(self) -> Array:
        """Whether a factor of the density is zero, whatever the others are."""
        is_zero = (self.prior == -jnp.inf) | (self.likelihood == -jnp.inf)
        return is_zero if self.jacobian is None else is_zero | (self.jacobian == -jnp.inf)


class Referenced(NamedTuple):
    """Rows beside their log-likelihoods at a reference state.

    The noise of an energy estimated on a batch is mostly that of the level, the same for all states of interest:
    counted from a reference state it is 13 to 300 times smaller on the paper's 50-mode posterior.
    """

    rows: Rows
    log_likelihood: Any  # an array


class Estimate(NamedTuple):
    """A term of the log target or of a log ratio, estimated on a batch, and the variance of that estimate."""

    value: Array
    noise: Array


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

    def each(self, theta: Array, rows: Rows) -> Array:
        """Log-likelihoods of the given rows, which may be Referenced, one by one."""
        rows = rows.rows if isinstance(rows, Referenced) else rows
        result: Array = jax.vmap(self.log_likelihood, (None, 0))(theta, rows)
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

    def density(self, theta: Array, rows: Rows) -> Density:
        """Exact log density on all data, block by block."""
        return self._full_pass(theta, rows, with_gradient=False)[0]

    def density_and_gradient(self, theta: Array, rows: Rows) -> tuple[Density, Array]:
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
            return jax.tree.map(lambda leaf: leaf[index], rows)
        return self.source.within(self.source.take, self.source.shapes(index.size), index)

    def part(self, rows: Rows, first: Array, size: int) -> Rows:
        """``size`` neighbouring rows from number ``first`` on, for a full pass in blocks."""
        if self.source is None:
            return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, first, size), rows)
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
            return each.sum(), each

        def add(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            total, rest, gradient = carry
            if with_gradient:
                block_gradient, each = jax.grad(block, has_aux=True)(theta, i)
                gradient = gradient + block_gradient
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
        numbers = _join(jnp.concatenate([jnp.stack(_fold(total, rest), -1), gradient], -1))
        if is_shared:
            numbers = _join(jax.lax.all_gather(numbers, DATA_AXIS))
        # The two-sum of infinities is not a number: a sum of -inf has nothing beside it.
        return numbers[0], jnp.where(numbers[0] == -jnp.inf, 0, numbers[1]), numbers[2:]


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

    def without_data_gradient(self, theta: Array) -> Array:
        """The gradient of the same terms."""
        result: Array = jnp.zeros_like(theta) + self._own(*self.model.without_data(theta, jax.grad))
        return result

    def without_data_curvature(self, theta: Array) -> Array:
        """The Hessian of the same terms."""
        result: Array = jnp.zeros((theta.size, theta.size), theta.dtype) + self._own(
            *self.model.without_data(theta, jax.hessian)
        )
        return result

    def log_ratio(self, here: Density, there: Density) -> Array:
        """Exact log pi_T(there) - log pi_T(here), from two full passes."""
        prior, likelihood = there.minus(here)
        ratio = self._own(prior, _jacobian_change(here, there)) + likelihood / self.temperature
        return jnp.where(there.is_zero, -jnp.inf, ratio)

    def full_gradient(self, theta: Array, rows: Rows) -> tuple[Density, Array]:
        """Exact density, and the exact gradient of the log target; 0 where the density is."""
        density, likelihood = self.model.density_and_gradient(theta, rows)
        gradient = self._own(*self.model.without_data(theta, jax.grad)) + likelihood / self.temperature
        return density, jnp.where(density.is_zero, 0, gradient)

    def base_gradient(self, theta: Array) -> Array:
        """The gradient of B: what stays the same of the log target's if the temperature changes."""
        result: Array = jnp.zeros_like(theta) + self._base(*self.model.without_data(theta, jax.grad))
        return result

    def batch_gradient(self, theta: Array, batch: Rows) -> Array:
        """Gradient of the log target, estimated on a batch; 0 where the prior is."""
        gradient = jax.grad(lambda at: self.n_eff * self.model.each(at, batch).mean() + self.prior(at))(theta)
        return jnp.where(self.model.is_possible(theta), gradient, 0)

    def informed(self, batch: Batch) -> Tempered:
        """The same target, with what it must be given besides rows: nothing."""
        return self

    def difference(self, here: Array, there: Array, batch: Rows) -> Estimate:
        """The log ratio, both ends on the same batch."""
        change = self._scaled_mean(self.differences(here, there, batch))
        value = change.value + self.known(here, there)
        return _certain(change._replace(value=jnp.where(self.model.is_possible(there), value, -jnp.inf)))

    def differences(self, here: Array, there: Array, rows: Rows) -> Array:
        """What each row adds to the log ratio, as far as batches must estimate it; not tempered."""
        before, after = self.levels(here, rows), self.levels(there, rows)
        # Of rows that are impossible here or there, those there decide: -inf outweighs any finite number.
        return jnp.where(after == -jnp.inf, -jnp.inf, after - jnp.maximum(before, _IMPOSSIBLE))

    def levels(self, theta: Array, rows: Rows) -> Array:
        """Numbers of the rows at one state whose differences are ``differences``."""
        return self.model.each(theta, rows)

    def known(self, here: Array, there: Array) -> Array:
        """The terms of the log ratio that need no batch."""
        return self.prior(there) - self.prior(here)

    def level(self, theta: Array, batch: Rows) -> Estimate:
        """The likelihood's term of the log target itself: far noisier than a difference."""
        return _certain(self._scaled_mean(self.model.each(theta, batch)))

    def _own(self, prior: Any, jacobian: Any) -> Any:
        """How log prior and log Jacobian, or anything linear in them, enter the log target."""
        tempered = prior * (1 / self.temperature) if self.temper == "posterior" else 0
        return tempered + self._base(prior, jacobian)

    def _base(self, prior: Any, jacobian: Any) -> Any:
        """The same for B."""
        if self.exchange:
            return 0
        return (prior if self.temper == "likelihood" else 0) + (0 if jacobian is None else jacobian)

    def _scaled_mean(self, each: Array) -> Estimate:
        mean, variance = _mean_and_its_variance(each, self.model.n)
        return Estimate(self.n_eff * mean, self.n_eff**2 * variance)


@dataclass(frozen=True, kw_only=True)
class Truncated(Tempered):
    """log pi = B - sum of weight * max(U, floor) over ``terms``, U counted from a reference state.

    One term (1/T, H) is a rung of the equi-energy sampler, whose energies are cut off below H. With a second one,
    (-1/T', H') of the hotter rung, and ``exchange``, a move drawn from that rung has this log ratio. A floor of -inf
    cuts nothing off. Cut-off energies estimated on a batch are biased: max is not linear in the noise.
    """

    terms: tuple[tuple[Array, Array], ...]  # (weight, floor)
    reference: Density

    def log_ratio(self, here: Density, there: Density) -> Array:
        """Exact log pi(there) - log pi(here), from two full passes."""
        before, after = (state.energy_above(self.reference, self.temper) for state in (here, there))
        prior, _ = there.minus(here)
        return self._log_ratio(before, after, self._base(prior, _jacobian_change(here, there)))

    def difference(self, here: Array, there: Array, batch: Referenced) -> Estimate:
        """The log ratio, both ends on the same batch."""
        before, each_before = self.model.energies_above(here, batch, self.reference, self.temper)
        after, each_after = self.model.energies_above(there, batch, self.reference, self.temper)
        each = self._slope(after) * each_after - self._slope(before) * each_before
        _, variance = _mean_and_its_variance(each, self.model.n)
        base = self._base(*self.model.without_data(there)) - self._base(*self.model.without_data(here))
        return _certain(Estimate(self._log_ratio(before, after, base), float(self.model.n) ** 2 * variance))

    def _log_ratio(self, before: Array, after: Array, base: Array | int) -> Array:
        ends = [weight * (jnp.maximum(before, floor) - jnp.maximum(after, floor)) for weight, floor in self.terms]
        return jnp.where(after == jnp.inf, -jnp.inf, jnp.stack(ends).sum() + base)

    def _slope(self, energy: Array) -> Array:
        """How fast -log pi grows with the energy: noise below all floors does no harm."""
        return jnp.stack([weight * (energy > floor) for weight, floor in self.terms]).sum()


def _jacobian_change(here: Density, there: Density) -> Array | None:
    return None if here.jacobian is None or there.jacobian is None else there.jacobian - here.jacobian


def _certain(estimate: Estimate) -> Estimate:
    """Where an end is impossible the ratio is certain: no noise could make up for it."""
    return estimate._replace(noise=jnp.where(jnp.abs(estimate.value) > _CERTAIN, 0, estimate.noise))


def _mean_and_its_variance(each: Array, n: int) -> tuple[Array, Array]:
    """The mean of m of n values drawn without replacement, and its estimated variance."""
    m = each.shape[0]

    def moments(each: Array) -> tuple[Array, Array]:
        mean = jnp.dot(each, jnp.ones_like(each)) / m
        return mean, jnp.vdot(each - mean, each - mean)

    mean, squares = apart(moments, each)
    # One row has no sample variance: its noise is unknown (NaN), not zero.
    # A whole number beyond 32 bits would not reach the program.
    return mean, squares / float((m - 1) * m) * (1 - m / n) if m > 1 else jnp.full_like(mean, jnp.nan)


def apart(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, compiled as a call of its own within a loop.

    XLA's CPU runtime runs up to eight kernels one after the other; a longer sequence goes through its scheduler, which
    allocates memory at every turn of the loop and costs as much as a small batch.
    """
    with set_xla_metadata(inlineable="false"):
        return jax.jit(function)(*args)


def block_size(n: int, numbers_per_row: int, dim: int, by_host: bool) -> int:
    """Rows of a full pass to work on at a time.

    In memory so few that what they need stays in the cache and XLA does not split the work on them among threads, which
    takes longer than the work itself; chains have the other cores. Where the host reads them, as many as are worth it.
    """
    smallest, largest = (256, 8192) if by_host else (64, 512)
    return min(n, max(smallest, min(largest, 2**16 // max(numbers_per_row, dim, 1))))


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum, and what rounding took from it (Knuth)."""
    total = a + b
    added = total - a
    return total, (a - (total - added)) + (b - added)


def _join(numbers: Array) -> Array:
    """Join the sums (total, rest, gradient) of 2^k neighbouring parts: the same tree, however they are shared out."""
    while numbers.shape[0] > 1:
        one, other = numbers[::2], numbers[1::2]
        total, error = two_sum(one[:, 0], other[:, 0])
        plain = (one + other)[:, 1:].at[:, 0].add(error)
        numbers = jnp.concatenate([total[:, None], plain], axis=1)
    return numbers[0]


def _fold(total: Array, rest: Array) -> tuple[Array, Array]:
    """Sum the lanes of (total + rest), along their last axis, pairwise into one two-float number."""
    while total.shape[-1] > 1:
        if total.shape[-1] % 2:
            total, rest = (jnp.concatenate([lane, jnp.zeros_like(lane[..., :1])], -1) for lane in (total, rest))
        half = total.shape[-1] // 2
        total, error = two_sum(total[..., :half], total[..., half:])
        rest = rest[..., :half] + rest[..., half:] + error
    return total[..., 0], rest[..., 0]
