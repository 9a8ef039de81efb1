"""Any proposal q(theta -> theta'), given by a user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import check
from mintmc.proposals.base import Point, Proposal, Visit
from mintmc.proposals.tuning import Tuning
from mintmc.threefry import as_jax


@dataclass(frozen=True)
class Custom(Proposal):
    """The paper's general q.

    Parameters
    ----------
    sample
        ``(key, params) -> params``, a draw from q(params -> .).
    log_ratio
        ``(params, proposed) -> log q(proposed -> params) - log q(params -> proposed)``; None if q is symmetric.

    Examples
    --------
    A symmetric walk that moves one coordinate at a time:

    >>> import jax, mintmc
    >>> def sample(key, params):
    ...     which, how_far = jax.random.split(key)
    ...     i = jax.random.randint(which, (), 0, params.size)
    ...     return params.at[i].add(0.1 * jax.random.normal(how_far))
    >>> proposal = mintmc.Custom(sample)
    """

    sample: Callable[[Array, Any], Any]
    log_ratio: Callable[[Any, Any], Array] | None = None

    step_size: ClassVar[float] = 1.0
    target_acceptance: ClassVar[float] = 0.3
    preconditioner: ClassVar[None] = None
    uses_gradient: ClassVar[bool] = False
    visits: ClassVar[int] = 1
    starts_apart: ClassVar[bool] = False
    moves_params: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check.function("sample", self.sample)
        if self.log_ratio is not None:
            check.function("log_ratio", self.log_ratio)

    def check_against(self, params: Any) -> None:
        """Refuse functions whose results do not have the structure of params, without running them."""
        key = jax.eval_shape(lambda: jax.random.key(0))
        shape = jax.eval_shape(lambda tree: jax.tree.map(jnp.asarray, tree), params)
        like = f"params like init, {check.form(shape)}"
        drawn = check.returned("sample", self.sample, key, shape, takes=f"a key and {like}")
        if check.form(shape) != check.form(drawn):
            raise ValueError(f"sample must return {like}, got {check.form(drawn)}")
        if self.log_ratio is not None:
            check.scalar("log_ratio", self.log_ratio, shape, drawn, takes=f"twice {like}")

    def on_vectors(self, unravel: Callable[..., Any], ravel: Callable[..., Any]) -> Custom:
        """The same proposal between flat vectors of parameters."""
        sample, log_ratio = self.sample, self.log_ratio
        return Custom(
            lambda key, theta: ravel(sample(key, unravel(theta))),
            None if log_ratio is None else (lambda here, there: log_ratio(unravel(here), unravel(there))),
        )

    def randomness(self, key: Array, dim: int, dtype: Any) -> Array:
        """The key itself, as JAX knows it: what is done with it is the user's."""
        return as_jax(key)

    def move(self, randomness: Array, here: Point, visit: Visit, tuning: Tuning) -> tuple[Point, Array]:
        """A draw from the user's q."""
        there = self.sample(randomness, here.theta)
        ratio = 0.0 if self.log_ratio is None else self.log_ratio(here.theta, there)
        return visit(there), jnp.asarray(ratio, here.theta.dtype)

    def unit_step(self, dim: int) -> float:
        """Unused: a custom proposal has a step of its own."""
        return 1.0
