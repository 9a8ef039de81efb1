"""What a run asks of a kernel: how to start, what to draw in bulk, how to step, what to record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from jax import Array

from mintmc.data import Batch
from mintmc.statistics import Info


class Kernel(Protocol):
    """Pure functions of one chain. ``step`` is ``advance`` after ``randomness``; a run calls the two apart.

    All randomness of a step that does not depend on the state is drawn by ``randomness``, so that it can be drawn for
    many steps at once: one by one it would cost more than the step.
    """

    statistics: Any  # a Statistic for each name that `advance` returns
    batches: Any  # by role, the rows of each batch that one step reads
    temperatures: Any  # of the target, or of the rungs that one step moves
    proposal: Any  # what warm-up adapts; None if nothing

    @property
    def touched(self) -> int | None:
        """Data points that one step reads; None where the statistic ``data_touched`` counts them."""
        return None

    @property
    def init_touched(self) -> int:
        """Data points that ``init`` reads."""
        return 0

    @property
    def may_reorder(self) -> bool:
        """Whether its sums may be added up in any order: see ``mintmc.reordered``."""
        return False

    def randomness(self, key: Array) -> Any:
        """Everything random in one step but the batches."""
        ...

    def init(self, theta: Array, batch: Batch) -> Any:
        """The first state: what the next step needs, and no more."""
        ...

    def advance(self, randomness: Any, state: Any, batch: Batch, tuning: Any) -> tuple[Any, Info]:
        """One step; ``tuning`` is what warm-up has found out."""
        ...

    def position(self, state: Any) -> Array:
        """Where a state is, as a flat vector: what is drawn. Its ``theta``, unless a kernel says otherwise."""
        result: Array = state.theta
        return result

    def step(self, key: Array, state: Any, batch: Batch, tuning: Any) -> tuple[Any, Info]:
        """One step from one key."""
        return self.advance(self.randomness(key), state, batch, tuning)

    def learns_from(self, state: Any, info: Info) -> tuple[Array, Array]:
        """The acceptance rate and the theta that warm-up learns from, with a leading axis where there are rungs."""
        return info["acceptance_rate"], self.position(state)

    def audited(self) -> Mapping[int, Kernel]:
        """By rung (0 without a ladder): kernels of moves on batches that are to be compared with all data."""
        return {}

    def of_rung(self, state: Any, tuning: Any, rung: int) -> tuple[Array, Any]:
        """Where a rung stands, and its tuning."""
        return self.position(state), tuning
