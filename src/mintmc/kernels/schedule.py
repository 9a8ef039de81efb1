"""Step sizes of stochastic-gradient samplers: constant, or decreasing with the number t of steps made.

    eps_t = a (b + t)^-gamma,      1/2 < gamma <= 1,

with t = 0 at the first step of a run, warm-up included. Then sum eps_t diverges (the chain gets everywhere) and sum
eps_t^2 converges (what gradient noise adds vanishes), the conditions of Welling & Teh (2011). Draws made with large
steps stand for more time, so averages weigh them: sum eps_t f(theta_t) / sum eps_t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array

from mintmc import check


@dataclass(frozen=True)
class Polynomial:
    """The decreasing step eps_t = a (b + t)^-gamma.

    Parameters
    ----------
    a, b
        Scale and offset, both positive.
    gamma
        How fast the step decreases, in (0.5, 1].

    Examples
    --------
    >>> schedule = Polynomial(a=0.5, b=10.0, gamma=1.0)
    >>> schedule.at(0), schedule.at(90)
    (0.05, 0.005)
    """

    a: float
    b: float
    gamma: float

    def __post_init__(self) -> None:
        check.plain(self)
        check.number("a", self.a, 0)
        check.number("b", self.b, 0)
        check.number("gamma", self.gamma, 0.5, 1, closed=(False, True))

    @classmethod
    def between(cls, first: float, last: float, steps: int, gamma: float = 0.55) -> Polynomial:
        """The schedule that goes from ``first`` at t = 0 to ``last`` at t = ``steps``.

        Examples
        --------
        >>> schedule = Polynomial.between(1e-2, 1e-4, 10**6)
        >>> round(schedule.a, 5), round(schedule.b, 2)
        (0.19955, 231.07)
        """
        first, last = check.number("first", first, 0), check.number("last", last, 0)
        steps = check.integer("steps", steps, 1)
        gamma = check.number("gamma", gamma, 0.5, 1, closed=(False, True))
        if last >= first:
            raise ValueError(f"last must be below first={first:g}, for a step schedule must decrease, got {last:g}")
        try:
            b = steps / ((first / last) ** (1 / gamma) - 1)
        except (OverflowError, ZeroDivisionError):
            b = 0.0
        if not b > 0:
            raise ValueError(f"last must be within reach of first={first:g} by (b + t)^-{gamma:g}, got {last:g}")
        return cls(first * b**gamma, b, gamma)

    def at(self, t: Any) -> Any:
        """The size of step t."""
        return self.a * (self.b + t) ** -self.gamma


StepSize = float | Polynomial
"""A constant, or a schedule."""


def check_step_size(value: Any) -> None:
    """Refuse what is neither a positive number nor a schedule."""
    if not isinstance(value, Polynomial):
        check.number("step_size", value, 0)


def largest_step(step_size: StepSize) -> float:
    """The largest step of all: the first."""
    return float(step_size.at(0) if isinstance(step_size, Polynomial) else step_size)


def step_at(step_size: StepSize, t: Array, dtype: Any) -> Array:
    """The size of step t, under ``jit``."""
    return jnp.asarray(step_size.at(t.astype(dtype)) if isinstance(step_size, Polynomial) else step_size, dtype)
