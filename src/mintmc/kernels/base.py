"""What the runner asks of a kernel: how to start, what to draw in bulk, how to step, what to record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jax import Array

from mintmc.data import Batch
from mintmc.energy import Density
from mintmc.proposals import Proposal


class Info(NamedTuple):
    """What happened in one step: recorded, never fed back."""

    accepted: Array
    acceptance_rate: Array
    log_ratio_noise: Array  # s2, before the decision
    is_defined: Array  # False if the ratio was NaN; such a move is rejected and counted
    data_touched: Any = None  # None where every step reads the same number: Kernel.touched
    density: Density | None = None  # of the new state, where it is known exactly
    extras: dict[str, Array] = {}  # noqa: RUF012  numbers of this kernel alone, recorded by name
    snapshot: dict[str, Array] = {}  # noqa: RUF012  the same, but of a state, not of a move: never averaged


class Kernel(NamedTuple):
    """Pure functions of one chain. ``step`` is ``advance`` after ``randomness``; the runner calls the two apart.

    All randomness of a step that does not depend on the state is drawn by ``randomness``, so that the runner can
    draw it for many steps at once: one by one it would cost more than the step.
    """

    randomness: Callable[[Array], Any]  # key -> noise
    init: Callable[[Array, Batch], Any]  # theta, batch -> state
    advance: Callable[[Any, Any, Batch, Any], tuple[Any, Info]]  # noise, state, batch, tuning
    position: Callable[[Any], Array]  # state -> theta
    batches: Mapping[str, int]  # role -> rows, the batches that one step reads
    touched: int | None  # data points that one step reads; None where it varies and Info counts it
    init_touched: int  # data points that `init` reads
    proposal: Proposal | None  # what warm-up adapts; None if nothing
    temperatures: tuple[float, ...] | None = None  # of the rungs that one step moves, if there are several
    lesson: Callable[[Any, Info], tuple[Array, Array]] | None = None  # see `learns_from`
    moves: Mapping[int, Any] = {}  # by rung: Settings of Metropolis moves on batches, to be audited against all data

    def step(self, key: Array, state: Any, batch: Batch, tuning: Any) -> tuple[Any, Info]:
        """One step from one key."""
        return self.advance(self.randomness(key), state, batch, tuning)

    def learns_from(self, state: Any, info: Info) -> tuple[Array, Array]:
        """The acceptance rate and the theta that warm-up learns from, with a leading axis where there are rungs."""
        if self.lesson is not None:
            return self.lesson(state, info)
        return info.acceptance_rate, self.position(state)
