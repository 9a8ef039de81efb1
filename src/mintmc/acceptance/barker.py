"""MHMINIBATCH (Seita, Pan, Chen & Canny 2017): Barker's test with a correction for the noise of the batch.

Barker accepts with probability S(D) = P(D + X_logistic > 0). A batch gives D* ~ N(D, s2). If X_logistic = N(0, v) +
X_corr in law and s2 < v, then D* + N(0, v - s2) + X_corr > 0 has exactly the probability S(D). The batch grows by
``batch_size`` rows until s2 < v. Exact if D* is normal with known variance, up to the error of X_corr (1e-7 at v =
1).

With the finite-population factor 1 - b/n in s2 the test is exact Barker at b = n. It does not stop on a variance that
it cannot know (``Moments.witnesses``). The published code has neither, and two rules that the paper does not print: it
decides by the sign of D* as soon as |D*| > 5 s, or if b = n is not enough; ``published`` restores all that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import count
from mintmc.acceptance.base import AcceptanceTest, decided
from mintmc.acceptance.correction import Atoms, Table
from mintmc.acceptance.stream import MIN_WITNESSES, Moments, read_until
from mintmc.data import Batch, Rows
from mintmc.energy import Tempered
from mintmc.proposals import Point
from mintmc.statistics import DATA_TOUCHED, Info, Statistic

SURE = 5.0


class Randomness(NamedTuple):
    """A standard normal number and a draw of the correction."""

    normal: Array
    correction: Array


@dataclass(frozen=True)
class Barker(AcceptanceTest):
    """Barker's test on a growing batch."""

    block: int
    variance: float
    law: Atoms | Table
    published: bool
    roles: ClassVar[tuple[str, ...]] = ("stream",)
    statistics: ClassVar[tuple[Statistic, ...]] = (DATA_TOUCHED,)
    touches: ClassVar[None] = None

    def randomness(self, key: Array, dtype: Any) -> Randomness:
        """All randomness of one decision but the batch."""
        for_normal, for_correction = jax.random.split(key)
        uniform = jax.random.uniform(for_correction, dtype=dtype)
        if isinstance(self.law, Table):
            correction = jnp.interp(uniform, jnp.asarray(self.law.cdf, dtype), jnp.asarray(self.law.grid, dtype))
        else:
            edges = jnp.asarray(self.law.weights.cumsum()[:-1], dtype)
            correction = jnp.asarray(self.law.values, dtype)[jnp.searchsorted(edges, uniform, side="right")]
        return Randomness(jax.random.normal(for_normal, dtype=dtype), correction)

    def decide(
        self, randomness: Randomness, here: Point, there: Point, log_q: Any, memory: Any, batch: Batch, target: Tempered
    ) -> tuple[Info, Any]:
        """Read until the noise of the ratio is below the target variance, then add what is missing."""
        n, model = target.model.n, target.model
        others = target.prior(there.theta) - target.prior(here.theta) + log_q

        def differences(rows: Rows) -> Array:
            return model.each(there.theta, rows) - model.each(here.theta, rows)

        def estimate(moments: Moments) -> tuple[Array, Array]:
            population = moments.variance / jnp.maximum(moments.read, 1) if self.published else moments.noise_of_mean(n)
            return target.n_eff * moments.mean + others, target.n_eff**2 * population

        def is_enough(moments: Moments, look: Array) -> Array:
            ratio, s2 = estimate(moments)
            if self.published:
                return (s2 < self.variance) | (jnp.abs(ratio) > SURE * jnp.sqrt(s2))
            return (s2 < self.variance) & (moments.witnesses >= MIN_WITNESSES)

        moments, _ = read_until(
            batch["stream"],
            differences,
            n,
            self.block,
            lambda look, read: read + self.block,
            is_enough,
            here.theta.dtype,
        )
        ratio, s2 = estimate(moments)
        # Only the published rules can stop at a larger noise: they decide by the sign.
        missing = self.variance - s2
        made_up = jnp.sqrt(jnp.maximum(missing, 0)) * randomness.normal + randomness.correction
        added = jnp.where(missing >= 0, made_up, 0.0)
        info = decided(
            accepted=ratio + added > 0,
            acceptance_rate=jnp.where(jnp.isnan(ratio), 0, jax.nn.sigmoid(ratio)),
            log_ratio_noise=s2,
            is_defined=~jnp.isnan(ratio),
        )
        return info | {"data_touched": count.times(2, moments.read)}, memory
