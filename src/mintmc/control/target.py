"""A tempered target whose batches estimate only what an expansion leaves.

With r_i(theta) = l_i(theta) - g_i'h - h'H_i h / 2 (h = theta - c), rows differ between two states by
e_i = r_i(theta') - r_i(theta) = d_i - w_i, and the log ratio on a batch S is

    n_eff mean_S(e_i) + sum_i w_i / T + prior terms,        s2 = n_eff^2 var_S(e_i) / m (1 - m/n),

so noise, finite-population factor and penalty are those of the residuals, and any T >= 1 is within reach of a batch.
Exact as far as the penalty is: under normality of the batch's mean, whatever the centre.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.control.atlas import Atlas
from mintmc.control.taylor import Expansion, residual_gradient
from mintmc.data import Batch, Rows
from mintmc.energy import Tempered
from mintmc.shapes import PerRow, Scalar, Vector


@dataclass(frozen=True)
class Controlled(Tempered):
    """The same target as ``Tempered``. The expansion is what a step is given: batch["control"]."""

    expansion: Expansion | Atlas | None = None
    beside: ClassVar[int] = 1  # at the centre

    def informed(self, batch: Batch) -> Controlled:
        """The same target, with the expansion that the step was given."""
        return replace(self, expansion=batch["control"])

    def levels(self, theta: Vector, rows: Rows) -> PerRow:
        """r_i of the given rows. Both ends share what is asked at the centre: XLA evaluates it once."""
        chart = self._given.chart(theta)
        centre = chart.centre

        def along(at: Array) -> Array:
            result: Array = jax.jvp(lambda theta: self.model.each(theta, rows), (at,), (theta - centre,))[1]
            return result

        levels = self.model.each(theta, rows)
        if self._given.has_levels:
            levels = levels - self.model.each(centre, rows)
        if chart.hessian is None:
            return levels - along(centre)
        slope, curvature = jax.jvp(along, (centre,), (theta - centre,))
        result: Array = levels - (slope + 0.5 * curvature)
        return result

    def known(self, here: Vector, there: Vector) -> Scalar:
        """The prior's terms and the sum of w_i over all rows."""
        return super().known(here, there) + self._given.total(here, there) / self.temperature

    def batch_gradient(self, theta: Vector, batch: Rows) -> Vector:
        """Gradient of the log target: known to first order, the rest estimated on a batch; 0 where the prior is."""
        likelihood = self.n_eff * residual_gradient(self.model, self._given.chart(theta), theta, batch)
        likelihood = likelihood + self._given.total_gradient(theta) / self.temperature
        gradient = likelihood + self.without_data_gradient(theta)
        return jnp.where(self.model.is_possible(theta), gradient, 0)

    @property
    def _given(self) -> Expansion | Atlas:
        assert self.expansion is not None, "informed() comes first"
        return self.expansion
