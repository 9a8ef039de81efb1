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
from functools import partial
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.acceptance.metropolis import Decision, decide, log_uniform
from mintmc.acceptance.penalty import penalty
from mintmc.data import Batch, Rows, row_count
from mintmc.energy import Estimate, Tempered


class AcceptanceTest(Protocol):
    """An acceptance test on a batch; ``memory`` is what it keeps of the current state."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The batches that it reads in a step."""
        ...

    @property
    def touches(self) -> int | None:
        """Likelihoods per row of a batch that it evaluates in a step; None if its decision counts them."""
        ...

    @property
    def init_touches(self) -> int:
        """The same for ``remember``."""
        ...

    def noise(self, key: Array, dtype: Any) -> Any:
        """All randomness of one decision but the batches."""
        ...

    def remember(self, theta: Array, batch: Batch, target: Tempered) -> Any:
        """What must be known of the first state."""
        ...

    def decide(
        self,
        log_uniform: Array,
        here: Array,
        there: Array,
        log_q: Array,
        memory: Any,
        batch: Batch,
        target: Tempered,
    ) -> tuple[Decision, Any]:
        """Accept or reject a move, and what to remember of the state that results."""
        ...


@dataclass(frozen=True)
class Common:
    """Both ends on one fresh batch."""

    penalised: bool
    roles: ClassVar[tuple[str, ...]] = ("test",)
    touches: ClassVar[int] = 2
    init_touches: ClassVar[int] = 0

    noise = staticmethod(log_uniform)

    def remember(self, theta: Array, batch: Batch, target: Tempered) -> tuple[()]:
        """Nothing: an estimate would belong to another batch."""
        return ()

    def decide(self, noise, here, there, log_q, memory, batch, target):
        """Metropolis on the noisy difference, less the penalty."""
        change = target.difference(here, there, batch["test"])
        ratio = _corrected(change, batch["test"], self.penalised) + log_q
        return decide(noise, ratio, change.noise), memory


@dataclass(frozen=True)
class Recycled:
    """The level at the current state is kept from the step that accepted it."""

    penalised: bool
    roles: ClassVar[tuple[str, ...]] = ("test",)
    touches: ClassVar[int] = 1
    init_touches: ClassVar[int] = 1

    noise = staticmethod(log_uniform)

    def remember(self, theta: Array, batch: Batch, target: Tempered) -> Estimate:
        """The level of a state on its own batch, prior included, corrected if asked for."""
        level = target.level(theta, batch["test"])
        return Estimate(_corrected(level, batch["test"], self.penalised) + target.prior(theta), level.noise)

    def decide(self, noise, here, there, log_q, memory, batch, target):
        """Pseudo-marginal Metropolis."""
        proposed = self.remember(there, batch, target)
        ratio = proposed.value - memory.value + log_q
        decision = decide(noise, ratio, proposed.noise + memory.noise)
        return decision, jax.tree.map(partial(jnp.where, decision.accepted), proposed, memory)


@dataclass(frozen=True)
class Independent:
    """Fresh, different batches at both ends."""

    penalised: bool
    roles: ClassVar[tuple[str, ...]] = ("test", "current")
    touches: ClassVar[int] = 2
    init_touches: ClassVar[int] = 0

    noise = staticmethod(log_uniform)

    def remember(self, theta: Array, batch: Batch, target: Tempered) -> tuple[()]:
        """Nothing."""
        return ()

    def decide(self, noise, here, there, log_q, memory, batch, target):
        """Metropolis on the difference of two noisy levels, less the penalty of both."""
        current, proposed = target.level(here, batch["current"]), target.level(there, batch["test"])
        change = Estimate(proposed.value - current.value, proposed.noise + current.noise)
        ratio = _corrected(change, batch["test"], self.penalised) + target.prior(there) - target.prior(here) + log_q
        return decide(noise, ratio, change.noise), memory


ESTIMATORS: dict[str, Any] = {"common": Common, "recycled": Recycled, "independent": Independent}


def _corrected(estimate: Estimate, batch: Rows, penalised: bool) -> Array:
    if not penalised:
        return estimate.value
    return estimate.value - penalty(estimate.noise, row_count(batch))
