"""Replicas that travel a ladder: where each has been, and the lowest state that any has seen."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Lowest(NamedTuple):
    """The lowest energy, above the reference, that any rung on all data has had, and the state there."""

    energy: Array
    theta: Array


def count_round_trips(visited: Array, replica: Array) -> tuple[Array, Array]:
    """What every replica has visited, and whether one has come back to the hottest rung from rung 0.

    ``visited`` says of each replica: 0 nothing, 1 the hottest rung last, 2 rung 0 after the hottest; ``replica`` says
    which one is on each rung now.
    """
    cold, hot = replica[0], replica[-1]
    back = (visited[hot] == 2).astype(jnp.int32)
    visited = visited.at[hot].set(1)
    return visited.at[cold].set(jnp.where(visited[cold] > 0, 2, 0)), back


def lower(lowest: Lowest, energies: Array, theta: Array) -> Lowest:
    """The lower of what was lowest and of the rungs with these exact energies, the first of ``theta``."""
    if energies.size == 0:
        return lowest
    at = jnp.nanargmin(energies)
    new = Lowest(energies[at], theta[at])
    found: Lowest = jax.tree.map(partial(jnp.where, new.energy < lowest.energy), new, lowest)
    return found
