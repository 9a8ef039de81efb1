"""What steps along an estimated gradient share: there is no test, and every step is taken that leads somewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jax import Array

from mintmc.acceptance.base import chosen, decided
from mintmc.data import Batch
from mintmc.energy import Tempered
from mintmc.kernels.base import Kernel
from mintmc.statistics import DECIDED, Info, Statistic


class StochasticGradientKernel(Kernel):
    """A kernel that reads one batch a step; its dataclasses have these settings among others."""

    target: Tempered
    batch_size: int

    statistics = (*DECIDED, Statistic("step_size"))
    proposal = None

    @property
    def temperatures(self) -> Any:
        """That of the target."""
        return self.target.temperature

    @property
    def batches(self) -> dict[str, int]:
        """The batch that a step reads: all rows need neither shuffling nor gathering."""
        return {"all" if self.batch_size == self.target.model.n else "gradient": self.batch_size}

    @property
    def touched(self) -> int:
        """The rows of its batch, at the state and at the centre of an expansion if there is one."""
        return self.batch_size * (1 + self.target.beside)

    def audited(self) -> Mapping[int, Kernel]:
        """Itself: how large its steps are is judged afterwards."""
        return {0: self}

    def gradient(self, theta: Array, batch: Batch) -> Array:
        """Gradient of the log target on the batch of this step; exact if that is all data."""
        if "all" in batch:
            return self.target.full_gradient(theta, batch["all"])[1]
        return self.target.informed(batch).batch_gradient(theta, batch["gradient"])


def settle(before: Any, after: Any, step_size: Array) -> tuple[Any, Info]:
    """The state after a step, and its record: there is no test, every step is taken that leads to a finite state."""
    is_defined = jnp.isfinite(after.theta).all()
    # Code under jit cannot raise, and a NaN would stay for ever: the old state is kept, and time goes on.
    settled = chosen(is_defined, after, before._replace(time=after.time))
    rate = is_defined.astype(step_size.dtype)
    return settled, decided(is_defined, rate, jnp.zeros_like(rate), is_defined) | {"step_size": step_size}
