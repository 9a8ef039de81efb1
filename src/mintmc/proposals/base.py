"""What every proposal is: random numbers that know nothing of the chain, and a move that is a function of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

from jax import Array

from mintmc import check
from mintmc.proposals.tuning import Tuning, check_preconditioner


class Point(NamedTuple):
    """A state and what is known of the target there; None where it is not needed or not known."""

    theta: Array
    gradient: Any = None
    density: Any = None  # a Density


Visit = Callable[[Array], Point]
"""Evaluates the target at a state: on all data, or on the step's gradient batch."""


class Proposal(Protocol):
    """A proposal q(theta -> theta')."""

    step_size: Any  # what was given; None to adapt it
    target_acceptance: Any  # what adaptation aims at
    preconditioner: Any  # what was given, or how to adapt it
    uses_gradient: Any  # whether a visit must know the gradient
    visits: Any  # states visited in one move, the starting one not counted
    starts_apart: ClassVar[bool] = True  # whether any state may be a start

    def randomness(self, key: Array, dim: int, dtype: Any) -> Any:
        """All randomness of one move; it must not depend on the state, so that it can be drawn in bulk."""
        ...

    def move(self, randomness: Any, here: Point, visit: Visit, tuning: Tuning) -> tuple[Point, Array]:
        """The proposed point, and log q(theta' -> theta) - log q(theta -> theta')."""
        ...

    def unit_step(self, dim: int) -> float:
        """A good step size for a standard normal target in ``dim`` dimensions."""
        ...

    def on_vectors(self, unravel: Callable[[Array], Any], ravel: Callable[[Any], Array]) -> Proposal:
        """The proposal between flat vectors; only one that was written for params must be told how."""
        return self

    def check_against(self, params: Any) -> None:
        """Refuse params that it cannot move."""


def check_proposal(proposal: Proposal) -> None:
    """The checks that all proposals with a step size share."""
    check.plain(proposal)
    if proposal.step_size is not None:
        check.number("step_size", proposal.step_size, 0)
    check.number("target_acceptance", proposal.target_acceptance, 0, 1)
    check_preconditioner(proposal.preconditioner)
