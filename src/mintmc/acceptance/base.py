"""What every acceptance test is, and the Metropolis decision: accept with probability min(1, exp(log ratio))."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from mintmc.apart import apart
from mintmc.data import Batch
from mintmc.energy import Tempered
from mintmc.proposals import Point, Proposal
from mintmc.reordered import may_reorder
from mintmc.statistics import Info, Statistic


class AcceptanceTest(Protocol):
    """Decides whether a chain goes where its proposal points.

    What is written out here holds for a test on batches that remembers nothing and reads every row of its batch at
    both ends; a test that differs says so.
    """

    @property
    def roles(self) -> tuple[str, ...]:
        """The batches that it reads in a step."""
        ...

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """What it says of a decision beside ``mintmc.statistics.DECIDED``."""
        return ()

    @property
    def is_exact(self) -> bool:
        """Whether it decides on all data, so that the target at a state stays known."""
        return False

    @property
    def rests_on_bounds(self) -> bool:
        """Whether it rests on bounds of the model, whose violations are counted: then there is no noise to audit."""
        return False

    @property
    def may_reorder(self) -> bool:
        """Whether it makes its decision once, so that sums may be added up in any order: see ``mintmc.reordered``."""
        return False

    @property
    def touches(self) -> int | None:
        """Likelihoods that it evaluates per row of a batch; None if each decision counts its own."""
        return 2

    def randomness(self, key: Array, dtype: Any) -> Any:
        """All randomness of one decision but the batches."""
        return log_uniform(key, dtype)

    def visit(self, theta: Array, batch: Batch, target: Tempered, with_gradient: bool) -> Point:
        """What the proposal and the test need to know of a state."""
        return Point(theta, target.batch_gradient(theta, batch["gradient"]) if with_gradient else None)

    def remember(self, theta: Array, batch: Batch, target: Tempered) -> Any:
        """What must be known of the first state: nothing, as an estimate would belong to another batch."""
        return ()

    def decide(
        self, randomness: Any, here: Point, there: Point, log_q: Array, memory: Any, batch: Batch, target: Tempered
    ) -> tuple[Info, Any]:
        """Accept or reject a move, and what to remember of the state that results."""
        ...

    def rows_of_step(self, proposal: Proposal, visits: int, batch_size: int, target: Tempered) -> int | None:
        """Data points read in a step that visits so many states: both ends of a comparison, gradients, everything.

        None if the decision itself counts what it reads.
        """
        if self.touches is None:
            return None
        return (self.touches + target.beside + gradients_of(proposal, visits, target)) * batch_size

    def rows_of_init(self, batch_size: int) -> int:
        """Data points that ``remember`` reads, and ``visit`` of the first state where it is kept."""
        return 0


def gradients_of(proposal: Proposal, visits: int, target: Tempered) -> int:
    """Gradients on a batch that a move needs: those of all states visited, of the first, and of a centre."""
    return (visits + 1) * (1 + target.beside) if proposal.uses_gradient else 0


def log_uniform(key: Array, dtype: Any) -> Array:
    """The logarithm of a uniform number."""
    return jnp.log(jax.random.uniform(key, dtype=dtype))


def decide(log_uniform: Array, log_ratio: Array, noise: Array) -> Info:
    """Accept if ``log_uniform`` (the log of a uniform number) lies below the log ratio."""
    # Code under jit cannot raise, and accepting an undefined move would poison the chain.
    is_defined = ~jnp.isnan(log_ratio)
    log_accept = jnp.where(is_defined, log_ratio, -jnp.inf)
    rate = jnp.exp(jnp.minimum(log_accept, 0))
    accepted: Array = apart(jnp.less, log_uniform, log_accept) if may_reorder() else log_uniform < log_accept
    return decided(accepted, rate, noise, is_defined)


def decided(accepted: Array, acceptance_rate: Array, log_ratio_noise: Array, is_defined: Array) -> Info:
    """What every decision says: see ``mintmc.statistics.DECIDED``."""
    return {
        "accepted": accepted,
        "acceptance_rate": acceptance_rate,
        "log_ratio_noise": log_ratio_noise,
        "is_defined": is_defined,  # False if the ratio was NaN; such a move is rejected and counted
    }


def impossible(info: Info, where: Array) -> Info:
    """The decision, but a certain rejection ``where`` the prior of the proposed state is zero."""
    return info | decided(
        accepted=info["accepted"] & ~where,
        acceptance_rate=jnp.where(where, 0, info["acceptance_rate"]),
        log_ratio_noise=jnp.where(where, 0, info["log_ratio_noise"]),
        is_defined=info["is_defined"] | where,
    )


def chosen(accepted: Array, there: Any, here: Any) -> Any:
    """One of two pytrees."""
    return jax.tree.map(partial(jnp.where, accepted), there, here)
