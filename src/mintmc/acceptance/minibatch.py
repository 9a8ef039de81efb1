"""Three estimates of the log ratio on batches: three different chains behind one name.

*common*: one fresh batch, the same at both ends. Only differences l_i(theta') - l_i(theta) are noisy. With the
penalty it leaves the tempered posterior invariant under normality; without, it is Algorithm 1 of Li & Wong (2017)
as it reads.

*recycled*: the estimate at theta is kept from the step that accepted it. This is the chain of the paper's proof:
without penalty its law is exactly exp(n_eff mu + s2(theta)/2) under normality, s2(theta) the noise of the level; with
it (each level less half its own noise, Quiroz et al. 2019) the tempered posterior. Levels are so noisy that it freezes
unless lambda <= tau/2.

*independent*: fresh, different batches at both ends. For comparison only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from jax import Array

from mintmc.acceptance.base import AcceptanceTest, chosen, decide
from mintmc.acceptance.penalty import penalty
from mintmc.data import Batch, Rows, row_count
from mintmc.energy import Estimate, Tempered
from mintmc.proposals import Point
from mintmc.statistics import Info


@dataclass(frozen=True)
class Common(AcceptanceTest):
    """Both ends on one fresh batch."""

    penalised: bool
    roles: ClassVar[tuple[str, ...]] = ("test",)
    may_reorder: ClassVar[bool] = True

    def decide(
        self, randomness: Array, here: Point, there: Point, log_q: Any, memory: Any, batch: Batch, target: Tempered
    ) -> tuple[Info, Any]:
        """Metropolis on the noisy difference, less the penalty."""
        change = target.difference(here.theta, there.theta, batch["test"])
        ratio = _corrected(change, batch["test"], self.penalised) + log_q
        return decide(randomness, ratio, change.noise), memory


@dataclass(frozen=True)
class Recycled(AcceptanceTest):
    """The level at the current state is kept from the step that accepted it."""

    penalised: bool
    roles: ClassVar[tuple[str, ...]] = ("test",)
    touches: ClassVar[int] = 1

    def remember(self, theta: Array, batch: Batch, target: Tempered) -> Estimate:
        """The level of a state on its own batch, prior included, corrected if asked for."""
        level = target.level(theta, batch["test"])
        return Estimate(_corrected(level, batch["test"], self.penalised) + target.prior(theta), level.noise)

    def decide(
        self, randomness: Array, here: Point, there: Point, log_q: Any, memory: Estimate, batch: Batch, target: Tempered
    ) -> tuple[Info, Estimate]:
        """Pseudo-marginal Metropolis."""
        proposed = self.remember(there.theta, batch, target)
        ratio = proposed.value - memory.value + log_q
        info = decide(randomness, ratio, proposed.noise + memory.noise)
        return info, chosen(info["accepted"], proposed, memory)

    def rows_of_init(self, batch_size: int) -> int:
        """The level of the first state."""
        return batch_size


@dataclass(frozen=True)
class Independent(AcceptanceTest):
    """Fresh, different batches at both ends."""

    penalised: bool
    roles: ClassVar[tuple[str, ...]] = ("test", "current")

    def decide(
        self, randomness: Array, here: Point, there: Point, log_q: Any, memory: Any, batch: Batch, target: Tempered
    ) -> tuple[Info, Any]:
        """Metropolis on the difference of two noisy levels, less the penalty of both."""
        current, proposed = target.level(here.theta, batch["current"]), target.level(there.theta, batch["test"])
        change = Estimate(proposed.value - current.value, proposed.noise + current.noise)
        priors = target.prior(there.theta), target.prior(here.theta)
        ratio = _corrected(change, batch["test"], self.penalised) + priors[0] - priors[1] + log_q
        return decide(randomness, ratio, change.noise), memory


ESTIMATORS: dict[str, Any] = {"common": Common, "recycled": Recycled, "independent": Independent}


def _corrected(estimate: Estimate, batch: Rows, penalised: bool) -> Array:
    if not penalised:
        return estimate.value
    return estimate.value - penalty(estimate.noise, row_count(batch))
