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
from mintmc.control.taylor import Expansion

COMFORTABLE = 0.1
"""Log-ratio noise s2 at which the penalty costs hardly an acceptance."""
NEGLIGIBLE = 0.01
"""Of k3/6 and k4/24: relative error of an acceptance probability."""
FEWEST = 100
"""Rows: fewer would hardly be faster, and their sample variance is a poor one."""
ROWS_LOOKED_AT = 2**15
_BLOCK = 2**13
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


class Look:
    """Looks at residuals, with programs that are compiled once for all centres."""

    def __init__(self, target: Controlled):
        self.n_eff = float(target.n_eff)

        def differences(heres: Array, theres: Array, expansion: Expansion, part: Any) -> Array:
            informed = target.informed({"control": expansion})
            result: Array = jax.lax.map(lambda ends: informed.differences(ends[0], ends[1], part), (heres, theres))
            return result

        def known(heres: Array, theres: Array, expansion: Expansion) -> Array:
            return jax.vmap(target.informed({"control": expansion}).known)(heres, theres)

        self._differences, self._known = jax.jit(differences), jax.jit(known)

    def __call__(self, heres: Array, theres: Array, log_q: Array, expansion: Expansion, rows: Any) -> Residuals:
        """Moments of e_i over the given rows, at moves from ``heres`` to ``theres`` (moves, d)."""
        count = jax.tree.leaves(rows)[0].shape[0]
        parts = [jax.tree.map(lambda leaf, a=a: leaf[a : a + _BLOCK], rows) for a in range(0, count, _BLOCK)]
        with np.errstate(invalid="ignore", over="ignore"):
            found = [np.asarray(self._differences(heres, theres, expansion, part), float) for part in parts]
            values = np.concatenate(found, axis=1)
            ratio = np.asarray(self._known(heres, theres, expansion), float) + np.asarray(log_q, float)
            ratio = ratio + self.n_eff * values.mean(axis=1)
            weight = np.where(np.isfinite(ratio), np.exp(np.minimum(ratio, 0)), 0)
        likely = weight > 0
        if not likely.any():
            return Residuals(np.inf, np.inf, np.inf, count)
        weight = weight[likely] / weight.sum()
        centred = values[likely] - values[likely].mean(axis=1, keepdims=True)
        second, fourth = (float(weight @ (centred**power).mean(axis=1)) for power in (2, 4))
        return Residuals(second, float(weight @ np.abs((centred**3).mean(axis=1))), fourth, count)


def _rounded(value: float) -> int:
    """The next round number."""
    power = 10 ** int(np.floor(np.log10(value)))
    result: int = round(next(r for r in _ROUND if r * power >= value * (1 - 1e-9)) * power)
    return result
