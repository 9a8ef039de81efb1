"""The noise that residuals leave, at given moves, and the smallest batch that makes it comfortable.

On m of n rows the log ratio has cumulants of about

    k2 = n_eff^2 var(e_i) / m (1 - m/n),      k3 = n_eff^3 mu3(e_i) / m^2,      k4 = n_eff^4 (mu4 - 3 var^2) / m^3.

The penalty takes care of k2 under normality; k3/6 and k4/24 are what it leaves, to first order, in the logarithm of an
acceptance. A batch is comfortable where k2 is small enough to cost few acceptances and the other two are negligible.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from mintmc.control.target import Controlled

COMFORTABLE = 0.1
"""Log-ratio noise s2 at which the penalty costs hardly an acceptance."""
NEGLIGIBLE = 0.01
"""Of k3/6 and k4/24: relative error of an acceptance probability."""
FEWEST = 100
"""Rows: fewer would hardly be faster, and their sample variance is a poor one."""
ROWS_LOOKED_AT = 50_000
_ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


class Residuals(NamedTuple):
    """Moments of the residuals e_i at some moves, each weighed by how likely the move is."""

    variance: float
    third: float  # central moments
    fourth: float
    rows: int  # that were looked at

    @property
    def kurtosis(self) -> float:
        """Excess kurtosis of a row's residual; 0 where there is nothing left of it."""
        return self.fourth / self.variance**2 - 3 if self.variance > 0 else 0.0

    def noise(self, n: int, n_eff: float, m: int) -> float:
        """k2 on batches of m."""
        return n_eff**2 * self.variance / m * (1 - m / n)

    def smallest_batch(self, n: int, n_eff: float) -> int:
        """The smallest batch whose noise is comfortable, in round numbers; n if none is."""
        second = n_eff**2 * self.variance
        third = np.sqrt(n_eff**3 * abs(self.third) / (6 * NEGLIGIBLE))
        fourth = np.cbrt(n_eff**4 * max(self.fourth - 3 * self.variance**2, 0) / (24 * NEGLIGIBLE))
        wanted = max(second / (COMFORTABLE + second / n), min(third, n), min(fourth, n), min(FEWEST, n))
        # Where most rows are needed, all are: their noise is 0.
        return n if not wanted < n / 2 else min(n, _rounded(wanted))


def residuals(target: Controlled, heres: Array, theres: Array, log_q: Array, rows: Any, block: int = 8192) -> Residuals:
    """Moments of e_i over the given rows, at moves from ``heres`` to ``theres`` (moves, d)."""
    count = jax.tree.leaves(rows)[0].shape[0]

    @jax.jit
    def differences(part: Any) -> Array:
        return jax.lax.map(lambda ends: target.differences(*ends, part), (heres, theres))

    parts = [jax.tree.map(lambda leaf, a=a: leaf[a : a + block], rows) for a in range(0, count, block)]
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.concatenate([np.asarray(differences(part), float) for part in parts], axis=1)
        known = np.asarray(jax.jit(jax.vmap(target.known))(heres, theres), float)
        ratio = known + np.asarray(log_q, float) + float(target.n_eff) * found.mean(axis=1)
        weight = np.where(np.isfinite(ratio), np.exp(np.minimum(ratio, 0)), 0)
    if not weight.sum() > 0:
        return Residuals(np.inf, np.inf, np.inf, count)
    likely = weight > 0
    found, weight = found[likely], weight[likely] / weight.sum()
    centred = found - found.mean(axis=1, keepdims=True)
    moments = [
        float(weight @ (np.abs(centred**power) if power == 4 else centred**power).mean(axis=1)) for power in (2, 4)
    ]
    third = float(weight @ np.abs((centred**3).mean(axis=1)))
    return Residuals(moments[0], third, moments[1], count)


def _rounded(value: float) -> int:
    """The next round number."""
    power = 10 ** int(np.floor(np.log10(value)))
    return round(next(r for r in _ROUND if r * power >= value * (1 - 1e-9)) * power)
