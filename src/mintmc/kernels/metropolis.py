"""Metropolis-Hastings: a proposal times an acceptance test. With the exact test it is MCMC, on batches it is MINT.

A gradient proposal reads one gradient batch for the whole move, forwards and back, and an acceptance test on
batches reads an independent one: given the gradient batch, the proposal is then an ordinary q.

A proposed state whose prior is zero is rejected whatever likelihood and gradient are there, and is no undefined move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import count
from mintmc.acceptance.base import AcceptanceTest, chosen, gradients_of, impossible
from mintmc.data import Batch
from mintmc.energy import Tempered
from mintmc.kernels.base import Kernel
from mintmc.proposals import Point, Proposal
from mintmc.statistics import DATA_TOUCHED, DECIDED, ENERGY, Info, Statistic


class State(NamedTuple):
    """What the next step needs: the point, and what the acceptance test remembers of it."""

    point: Point
    memory: Any


class Randomness(NamedTuple):
    """All random numbers of one step but its batches."""

    proposal: Any
    test: Any


@dataclass(frozen=True)
class MetropolisKernel(Kernel):
    """One step: propose, decide, move."""

    target: Tempered
    proposal: Proposal
    test: AcceptanceTest
    batch_size: int  # n on all data
    dim: int
    dtype: Any

    def randomness(self, key: Array) -> Randomness:
        """Everything random in one step but the batches."""
        for_proposal, for_test = jax.random.split(key)
        return Randomness(
            self.proposal.randomness(for_proposal, self.dim, self.dtype), self.test.randomness(for_test, self.dtype)
        )

    def init(self, theta: Array, batch: Batch) -> State:
        """The first state."""
        point = self.visit(theta, batch) if self.test.is_exact else Point(theta)
        return State(point, self.test.remember(theta, batch, self.target.informed(batch)))

    def __post_init__(self) -> None:
        if self.proposal.is_transition and not self.test.is_exact:
            name = type(self.proposal).__name__
            raise ValueError(f"proposal {name} decides on all data by itself, got batches of {self.batch_size} rows")

    def advance(self, randomness: Randomness, state: State, batch: Batch, tuning: Any) -> tuple[State, Info]:
        """Propose, decide, move."""
        test = self.test
        if self.proposal.is_transition:
            return self._follow(randomness, state, batch, tuning)
        # On all data the target at the current state is known; on a fresh batch it is not.
        here = state.point if test.is_exact else self.visit(state.point.theta, batch)
        there, log_q = self.proposal.move(randomness.proposal, here, lambda theta: self.visit(theta, batch), tuning)
        target = self.target.informed(batch)
        info, memory = test.decide(randomness.test, here, there, log_q, state.memory, batch, target)
        if not test.is_exact:
            info = impossible(info, ~self.target.model.is_possible(there.theta))
        kept = there if test.is_exact else Point(there.theta)
        moved = State(chosen(info["accepted"], kept, state.point), memory)
        if self.touched is None:
            info["data_touched"] = self._counted(randomness, info, tuning)
        return moved, info | ({"energy": moved.point.density} if test.is_exact else {})

    def _follow(self, randomness: Randomness, state: State, batch: Batch, tuning: Any) -> tuple[State, Info]:
        """A move that leaves the target as it is by itself: nothing is left to decide."""
        target, here = self.target.informed(batch), state.point
        made = self.proposal.transition(
            randomness.proposal, here, lambda theta: self.visit(theta, batch), target.log_ratio, tuning
        )
        info = {
            "accepted": (made.there.theta != here.theta).any(),
            "acceptance_rate": made.acceptance_rate,
            "log_ratio_noise": jnp.zeros_like(made.acceptance_rate),
            "is_defined": jnp.isfinite(made.acceptance_rate),
            "data_touched": count.multiple(self.batch_size, made.visited),
            "energy": made.there.density,
        }
        return State(made.there, state.memory), info | made.info

    def visit(self, theta: Array, batch: Batch) -> Point:
        """What the proposal and the test need to know of a state."""
        return self.test.visit(theta, batch, self.target.informed(batch), self.proposal.uses_gradient)

    def position(self, state: State) -> Array:
        """Where a state is."""
        return state.point.theta

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Those of every decision and of this test; the energy where it is known."""
        known = self.test.statistics
        counted = (DATA_TOUCHED,) if self.touched is None and DATA_TOUCHED not in known else ()
        known = (*known, *self.proposal.statistics)
        return (*DECIDED, *known, *counted, *((ENERGY,) if self.test.is_exact else ()))

    @property
    def may_reorder(self) -> bool:
        """If its test allows it."""
        return self.test.may_reorder

    @property
    def temperatures(self) -> Any:
        """That of the target."""
        return self.target.temperature

    @property
    def batches(self) -> dict[str, int]:
        """The batches that a step reads."""
        roles = self.test.roles
        if self.proposal.uses_gradient and not self.test.is_exact:
            roles = (*roles, "gradient")
        return {role: self.target.model.n if role == "all" else self.batch_size for role in roles}

    @property
    def touched(self) -> int | None:
        """Data points that one step reads; None where it varies."""
        return None if self.proposal.varies else self.most_touched

    @property
    def most_touched(self) -> int | None:
        """Data points that one step reads at most; None where only the decision knows."""
        return self._rows(self.proposal.visits)

    @property
    def init_touched(self) -> int:
        """Data points that ``init`` reads."""
        return self.test.rows_of_init(self.batch_size)

    def _rows(self, visits: int) -> int | None:
        return self.test.rows_of_step(self.proposal, visits, self.batch_size, self.target)

    def _counted(self, randomness: Randomness, info: Info, tuning: Any) -> count.Count:
        """Data points that a step has read: those of the decision, and of every state visited."""
        none, one = self._rows(0), self._rows(1)
        if none is None or one is None:
            gradients = [gradients_of(self.proposal, visits, self.target) * self.batch_size for visits in (0, 1)]
            first, each = gradients[0], gradients[1] - gradients[0]
            decided = count.add(info["data_touched"], count.of(first))
        else:
            decided, each = count.of(none), one - none
        if not self.proposal.varies:
            return count.add(decided, count.of(each * self.proposal.visits))
        return count.add(decided, count.multiple(each, self.proposal.visited(randomness.proposal, tuning)))

    def audited(self) -> Mapping[int, Kernel]:
        """Itself, if it decides on batches alone, by what they say of their noise."""
        return {} if "all" in self.test.roles or self.test.rests_on_bounds else {0: self}
