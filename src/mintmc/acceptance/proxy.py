"""Taylor proxies (Bardenet, Doucet & Holmes 2017) for the confidence sampler: see ``mintmc.control.taylor``.

The centre is given (the MAP), or dropped anew at the current state every so many steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jax import Array

from mintmc.control import Expansion, expand
from mintmc.data import Rows
from mintmc.energy import Model


class Aged(NamedTuple):
    """An expansion, and for how long it has been in use."""

    expansion: Expansion
    age: Array  # steps since it was computed


@dataclass(frozen=True)
class Proxy:
    """How to expand, and how far off the expansion may be."""

    centre: Array | None  # None: the state where the chain starts
    remainder: Callable[[Array, Array, Array], Array]  # here, there, centre -> bound on |d_i - w_i|
    every: int | None  # steps from one centre to the next; None keeps the first
    n: int
    passes: ClassVar[int] = 2  # over the data, for gradient and Hessian

    def start(self, theta: Array, rows: Rows, model: Model) -> Aged:
        """The expansion before the first step."""
        return self.expand(theta if self.centre is None else jnp.asarray(self.centre, theta.dtype), rows, model)

    def expand(self, centre: Array, rows: Rows, model: Model) -> Aged:
        """A new expansion."""
        return Aged(expand(model, centre, rows), jnp.zeros((), jnp.int32))
