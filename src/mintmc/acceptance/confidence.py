"""MHSUBLHD, the confidence sampler (Bardenet, Doucet & Holmes 2014, 2017): decisions by concentration bounds.

Rows are read in geometrically growing batches until the mean L of d_i / T is farther from the threshold mu_0 than a
bound c that holds with probability 1 - delta_look, delta_look = (p - 1) / (p look^p) delta, so that over all looks
the decision errs with probability at most delta:

    Hoeffding-Serfling              c = C sqrt(2 (1 - (t-1)/n) log(2/delta) / t)
    empirical Bernstein             c = s sqrt(2 log(3/delta) / t) + 6 C log(3/delta) / t
    empirical Bernstein-Serfling    c = s sqrt(2 rho log(5/delta) / t) + kappa 2C log(5/delta) / t,
                                    kappa = 7/3 + 3/sqrt 2,
                                    rho = 1 - (t-1)/n for t <= n/2, (1 - t/n)(1 + 1/t) beyond

where C bounds all |d_i| / T. |d_i| > C is a violated bound: it is counted and reported. A proxy (control variate) w_i
close to d_i with a known mean shrinks C and s: see ``acceptance/proxy.py``.

The published code starts at look 2 and, where the next batch would be all data, decides on the current one:
``published`` does so too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import count
from mintmc.acceptance.austere import ORACLE_TOUCHED
from mintmc.acceptance.base import AcceptanceTest
from mintmc.acceptance.proxy import Aged
from mintmc.acceptance.stream import Moments, decided_by_mean, read_until
from mintmc.control import each
from mintmc.data import Batch, Rows
from mintmc.energy import Tempered
from mintmc.proposals import Point
from mintmc.statistics import DATA_TOUCHED, Info, Statistic, counted

INEQUALITIES = ("hoeffding-serfling", "bernstein", "bernstein-serfling")
BOUND_VIOLATIONS = counted("bound_violations")
_KAPPA = 7 / 3 + 3 / 2**0.5


def half_width(inequality: str, read: Array, deviation: Array, bound: Array, delta: Array, n: int) -> Array:
    """How far the mean of ``read`` of n values, all within +-bound, may be from the mean of all, but for delta."""
    unseen = 1 - (read - 1) / n
    if inequality == "hoeffding-serfling":
        return bound * jnp.sqrt(2 * unseen * jnp.log(2 / delta) / read)
    if inequality == "bernstein":
        return deviation * jnp.sqrt(2 * jnp.log(3 / delta) / read) + 6 * bound * jnp.log(3 / delta) / read
    rho = jnp.where(read <= n / 2, unseen, (1 - read / n) * (1 + 1 / read))
    spread = deviation * jnp.sqrt(2 * rho * jnp.log(5 / delta) / read)
    return spread + _KAPPA * 2 * bound * jnp.log(5 / delta) / read


@dataclass(frozen=True)
class Confidence(AcceptanceTest):
    """The test by concentration bounds."""

    block: int
    growth: float
    delta: float
    power: float
    inequality: str
    bound: (
        Callable[[Array, Array], Array] | None
    )  # None: an oracle takes the largest |d_i| and the deviation of all data
    proxy: Any  # a Proxy, or None
    published: bool
    statistics: ClassVar[tuple[Statistic, ...]] = (DATA_TOUCHED, ORACLE_TOUCHED, BOUND_VIOLATIONS)
    rests_on_bounds: ClassVar[bool] = True
    touches: ClassVar[None] = None

    @property
    def roles(self) -> tuple[str, ...]:
        """An oracle, and a proxy's expansion, read all data as well."""
        return ("stream",) if self.bound is not None and self.proxy is None else ("stream", "all")

    def remember(self, theta: Array, batch: Batch, target: Tempered) -> Aged | tuple[()]:
        """The proxy's expansion, if there is one."""
        return () if self.proxy is None else self.proxy.start(theta, batch["all"], target.model)

    def rows_of_init(self, batch_size: int) -> int:
        """Passes over all data for a proxy's first expansion."""
        return 0 if self.proxy is None else self.proxy.passes * self.proxy.n

    def decide(
        self, randomness: Array, here: Point, there: Point, log_q: Any, memory: Any, batch: Batch, target: Tempered
    ) -> tuple[Info, Any]:
        """Read until the bounds leave no doubt."""
        ends = here.theta, there.theta
        if self.proxy is None:
            return self._test(randomness, *ends, log_q, None, batch, target), memory
        fresh = memory.age >= self.proxy.every if self.proxy.every else jnp.zeros((), bool)
        aged = jax.lax.cond(
            fresh,
            lambda: self.proxy.expand(here.theta, batch["all"], target.model),
            lambda: memory._replace(age=memory.age + 1),
        )
        info = self._test(randomness, *ends, log_q, aged.expansion, batch, target)
        passes = count.of(self.proxy.passes * target.model.n)
        passes = jax.tree.map(lambda word: jnp.where(fresh, word, 0), passes)
        # The expansion belongs to the chain, not to the proposed state: it stays whatever is decided.
        return info | {"data_touched": count.add(info["data_touched"], passes)}, aged

    def _test(
        self, log_uniform: Array, here: Array, there: Array, log_q: Any, expansion: Any, batch: Batch, target: Tempered
    ) -> Info:
        n, T, model = target.model.n, target.temperature, target.model
        others = target.prior(there) - target.prior(here) + log_q
        known = 0.0 if expansion is None else expansion.total(here, there) / n / T
        threshold = (log_uniform - others) / n - known

        def values(rows: Rows) -> Array:
            differences = model.each(there, rows) - model.each(here, rows)
            if expansion is not None:
                differences = differences - each(model, expansion, here, there, rows)
            return differences / T

        bound, deviation, oracle = self._bound(here, there, expansion, values, batch, T, n)

        def is_sure(moments: Moments, look: Array) -> Array:
            counted = look + 1 if self.published else look
            delta = (self.power - 1) / (self.power * counted**self.power) * self.delta
            spread = jnp.sqrt(moments.variance) if deviation is None else deviation
            sure = jnp.abs(moments.mean - threshold) >= half_width(
                self.inequality, moments.read, spread, bound, delta, n
            )
            return sure | (moments.read * self.growth >= n) if self.published else sure

        def next_look(look: Array, read: Array) -> Array:
            return jnp.where(look == 0, self.block, jnp.ceil(read * self.growth)).astype(jnp.int32)

        moments, _ = read_until(batch["stream"], values, n, self.block, next_look, is_sure, here.dtype)
        info = decided_by_mean(n * (moments.mean + known) + others, moments, threshold, n, oracle)
        return info | {"bound_violations": (moments.largest > bound * 1.0001).astype(jnp.int32)}

    def _bound(
        self, here: Array, there: Array, expansion: Any, values: Callable[[Rows], Array], batch: Batch, T: Any, n: int
    ) -> tuple[Array, Array | None, int]:
        """The bound on all values, their deviation if an oracle knows it, and the data points that took."""
        if expansion is not None:
            return self.proxy.remainder(here, there, expansion.centre) / T, None, 0
        if self.bound is not None:
            return self.bound(here, there) / T, None, 0
        everything = values(batch["all"])[:n]
        return jnp.abs(everything).max(), everything.std(), 2 * n
