"""What every proposal is: random numbers that know nothing of the chain, and a move that is a function of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from jax import Array

from mintmc import check
from mintmc.proposals.tuning import ADAPTED, LAPLACE, Preconditioner, Tuning, check_preconditioner
from mintmc.statistics import Info, Statistic


class Point(NamedTuple):
    """A state and what is known of the target there; None where it is not needed or not known."""

    theta: Array
    gradient: Any = None
    density: Any = None  # a Density


Visit = Callable[[Array], Point]
"""Evaluates the target at a state: on all data, or on the step's gradient batch."""


class Transition(NamedTuple):
    """What a proposal says of a move that needs no decision."""

    there: Point
    acceptance_rate: Array  # for adaptation
    visited: Array  # states
    info: Info  # by the names of the proposal's statistics


class Proposal(Protocol):
    """A proposal q(theta -> theta')."""

    @property
    def step_size(self) -> float | None:
        """What was given; None to adapt it."""
        ...

    @property
    def target_acceptance(self) -> float:
        """What adaptation aims at."""
        ...

    @property
    def preconditioner(self) -> Preconditioner:
        """What was given, or how to adapt it."""
        ...

    @property
    def uses_gradient(self) -> bool:
        """Whether a visit must know the gradient."""
        ...

    @property
    def visits(self) -> int:
        """States visited in one move, the starting one not counted; the most of them where it varies."""
        ...

    @property
    def varies(self) -> bool:
        """Whether some moves visit more states than others."""
        return False

    @property
    def adapts_path(self) -> bool:
        """Whether it needs to know how far the target extends (``Tuning.path``)."""
        return False

    @property
    def largest_step(self) -> float | None:
        """The largest step size that means anything; None if any does."""
        return None

    @property
    def is_around(self) -> bool:
        """Whether it moves around the Laplace approximation of the target."""
        return False

    @property
    def starts_apart(self) -> bool:
        """Whether any state may be a start."""
        return True

    @property
    def is_transition(self) -> bool:
        """Whether its moves leave the target as it is by themselves (``transition``), so that all data must decide."""
        return False

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """What else its moves tell."""
        return ()

    @property
    def moves_params(self) -> bool:
        """Whether it was written for params, and not for the vectors that chains move."""
        return False

    def randomness(self, key: Array, dim: int, dtype: Any) -> Any:
        """All randomness of one move; it must not depend on the state, so that it can be drawn in bulk."""
        ...

    def move(self, randomness: Any, here: Point, visit: Visit, tuning: Tuning) -> tuple[Point, Array]:
        """The proposed point, and log q(theta' -> theta) - log q(theta -> theta')."""
        raise TypeError(f"{type(self).__name__} moves by itself")

    def transition(
        self, randomness: Any, here: Point, visit: Visit, log_ratio: Callable[[Any, Any], Array], tuning: Tuning
    ) -> Transition:
        """A move that needs no decision; ``log_ratio`` compares the densities of two points."""
        raise TypeError(f"{type(self).__name__} proposes moves that are to be decided")

    def visited(self, randomness: Any, tuning: Tuning) -> Any:
        """States that a move visits; it must not depend on the state either."""
        return self.visits

    def unit_step(self, dim: int) -> float:
        """A good step size for a standard normal target in ``dim`` dimensions."""
        ...

    def on_vectors(self, unravel: Callable[[Array], Any], ravel: Callable[[Any], Array]) -> Proposal:
        """The proposal between flat vectors; only one that was written for params must be told how."""
        return self

    def settled(self, dim: int, several_modes: bool) -> Proposal:
        """The proposal with everything chosen that was left open, for so many parameters."""
        return self

    def check_against(self, params: Any) -> None:
        """Refuse params that it cannot move."""
        return


def check_proposal(proposal: Proposal, words: tuple[str, ...] = (*ADAPTED, LAPLACE)) -> None:
    """The checks that all proposals with a step size share."""
    check.plain(proposal)
    if proposal.step_size is not None:
        check.number("step_size", proposal.step_size, 0)
    check.number("target_acceptance", proposal.target_acceptance, 0, 1)
    check_preconditioner(proposal.preconditioner, words)
