"""AUSTEREMH (Korattikara, Chen & Welling 2014): Metropolis-Hastings decided by a sequential t-test.

Metropolis accepts iff the mean of d_i / T exceeds mu_0 = (log u - log of the prior and proposal ratio) / n. After
every ``batch_size`` new rows the test looks: with t = (mean - mu_0) / s, s the standard error with the
finite-population factor, it stops as soon as the tail of Student's t beyond |t| is below epsilon, and at the latest
when all data are read. It does not stop on a variance that it cannot know (``Moments.witnesses``). The law is only
approximately the tempered posterior; how often the test errs is computed in ``acceptance/design.py``.

*Conservative*: one (batch_size, epsilon) for the whole run, from the worst case mu_std = 0. *Non-conservative* (Seita
et al. 2017): an oracle computes mu_std on all data at every step and takes the cheapest test that is good enough
there. Its full pass is counted, and shown apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.acceptance.base import AcceptanceTest
from mintmc.acceptance.stream import MIN_WITNESSES, Moments, decided_by_mean, read_until
from mintmc.data import Batch, Rows
from mintmc.energy import Tempered
from mintmc.proposals import Point
from mintmc.statistics import DATA_TOUCHED, Info, Statistic

ORACLE_TOUCHED = replace(DATA_TOUCHED, name="oracle_touched")
"""Data that an oracle read to decide what no algorithm could know."""


def critical_values(n: int, batch_size: int, epsilon: float) -> np.ndarray:
    """For each look, the |t| beyond which Student's tail is below epsilon; 0 where all data are read."""
    from scipy.stats import t

    read = np.minimum(np.arange(1, -(-n // batch_size) + 1) * batch_size, n)
    return np.where(read < n, t.isf(epsilon, np.maximum(read - 1, 1)), 0.0)


@dataclass(frozen=True)
class Austere(AcceptanceTest):
    """The sequential t-test."""

    block: int
    critical: np.ndarray  # (test, look): |t| at which each available test stops; looks are blocks read
    every: np.ndarray  # (test,): blocks from one look of a test to its next
    table: Any  # a DesignTable: which test to take at which mu_std; or None: the first always
    published: bool  # mu_std without its dependence on u, as in the published script
    statistics: ClassVar[tuple[Statistic, ...]] = (DATA_TOUCHED, ORACLE_TOUCHED)
    touches: ClassVar[None] = None

    @property
    def roles(self) -> tuple[str, ...]:
        """An oracle reads all data as well."""
        return ("stream",) if self.table is None else ("stream", "all")

    def decide(
        self, randomness: Array, here: Point, there: Point, log_q: Any, memory: Any, batch: Batch, target: Tempered
    ) -> tuple[Info, Any]:
        """Read until the test is sure of the sign."""
        n, T, model = target.model.n, target.temperature, target.model
        others = target.prior(there.theta) - target.prior(here.theta) + log_q
        threshold = (randomness - others) / n

        def differences(rows: Rows) -> Array:
            return (model.each(there.theta, rows) - model.each(here.theta, rows)) / T

        test, oracle = self._choose(differences, threshold, batch, n)
        critical, every = jnp.asarray(self.critical, here.theta.dtype)[test], jnp.asarray(self.every)[test]

        def is_sure(moments: Moments, look: Array) -> Array:
            unseen = 1 - (moments.read - 1) / max(n - 1, 1)
            error = jnp.sqrt(moments.variance / jnp.maximum(moments.read, 1) * unseen)
            sure = jnp.abs(moments.mean - threshold) > critical[look - 1] * error
            # The tests of a published table stop as they did there.
            known = jnp.ones((), bool) if self.table is not None else moments.witnesses >= MIN_WITNESSES
            return sure & known & (look % every == 0)

        moments, _ = read_until(
            batch["stream"], differences, n, self.block, lambda look, read: read + self.block, is_sure, here.theta.dtype
        )
        return decided_by_mean(n * moments.mean + others, moments, threshold, n, oracle), memory

    def _choose(
        self, differences: Callable[[Rows], Array], threshold: Array, batch: Batch, n: int
    ) -> tuple[Array, int]:
        """The test to use, and the data points that choosing it took."""
        if self.table is None:
            return jnp.zeros((), int), 0
        everything = differences(batch["all"])[:n]
        distance = everything.mean() - (threshold / n if self.published else threshold)
        mu_std = distance * jnp.sqrt(n - 1) / everything.std()
        grid = jnp.asarray(self.table.mu_std, everything.dtype)
        nearest = jnp.clip(jnp.round((mu_std - grid[0]) / (grid[1] - grid[0])), 0, grid.size - 1)
        index = jnp.where(jnp.isnan(nearest), grid.size // 2, nearest).astype(int)
        return jnp.asarray(self._tests)[index], 2 * n

    @property
    def _tests(self) -> np.ndarray:
        """For each mu_std of the table, the row of ``critical`` that holds its test."""
        pairs = np.stack([self.table.batch_size, self.table.epsilon], axis=1)
        return np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
