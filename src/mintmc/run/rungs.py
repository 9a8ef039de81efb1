"""What the rungs of an equi-energy run are made of: where each stands, its fixed subset, its rings, a shelf."""

from __future__ import annotations

import math
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

from mintmc.data import distinct
from mintmc.energy import Referenced
from mintmc.kernels.equi_energy import Rung
from mintmc.ladder.rings import Rings, States, ring_count, subset_size
from mintmc.run.lane import Task


def places(task: Task, edges: tuple[float, ...] | None) -> list[Rung]:
    """Where each rung stands; floors are -inf if energies are not cut off."""
    ladder = task.sampler.ladder
    floors = [-math.inf] * len(ladder)
    if task.sampler.truncate and edges is not None:
        floors[1:] = edges[: len(ladder) - 1]
    stands = [*zip(ladder.temperatures, floors, strict=True), (math.inf, -math.inf)]
    dtype = task.thetas[0].dtype
    return [
        Rung(*(jnp.asarray(value, dtype) for value in (*here, *hotter, jumps)))
        for (here, hotter), jumps in zip(pairwise(stands), task.sampler.jump_probabilities, strict=True)
    ]


def fixed_subset(task: Task, size: int) -> Referenced | None:
    """The fixed rows that tell apart the rings of a rung that reads batches of this size; None if none are needed."""
    data, sampler = task.posterior.data, task.sampler
    rows = 0 if data is None else subset_size(size, data.n, ring_count(sampler.rings, sampler.ladder))
    if data is None or rows == 0:
        return None
    order = distinct(np.random.default_rng([task.seed, size]), data.n, rows)
    return task.posterior.beside(jax.tree.map(jnp.asarray, data.take(order)))


def empty_rings(task: Task, edges: tuple[float, ...] | None, exact: bool, name: str | None = None) -> Rings:
    """Rings for the states of a rung; ``exact`` if it reads all data. With a name they live on disk if the run does."""
    sampler, theta = task.sampler, np.zeros(task.dim, task.thetas[0].dtype)
    density = task.posterior.model(task.unravel, task.dim).no_density(theta.dtype) if exact else None
    gradient = theta if exact and sampler.proposal.uses_gradient else None
    path = None if task.folder is None or name is None else task.folder / "rings" / f"{name}.npy"
    count = ring_count(sampler.rings, sampler.ladder)
    return Rings(edges, count, sampler.capacity, States(theta, gradient, density).packed(), path, task.is_new)


def shelf(rings: Rings, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Room for the states of one round, and for the energies that decide which ring each belongs to."""
    return np.zeros(length, np.float32), np.zeros((length, rings.kept.rows.shape[1]), rings.kept.rows.dtype)
