"""The rings of all rungs of an equi-energy run: what each rung left, as the next colder one reads it.

Rung 0 feeds nobody, and above the hottest there is nothing: their places hold rings that stay empty, so that every
rung has rings to jump into.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mintmc.compiled import identity
from mintmc.data import distinct
from mintmc.energy import Referenced
from mintmc.ladder.ladder import Ladder
from mintmc.ladder.reference import Reference
from mintmc.ladder.rings import FrozenRings, RingRule, Rings, States, fixed_edges, ring_count, subset_size
from mintmc.run.task import Task


class RungRings:
    """Rings by rung and group of chains, and the states of the current round on their way into them.

    Parameters
    ----------
    task, ladder, reference
        What was asked for, and what energies are counted from.
    rule, capacity
        How rings are laid, and the states that each keeps.
    groups
        Sets of rings on every rung: one for each chain, or one that all share.
    keeps_gradient
        Whether states on all data come with their gradients.
    round_length
        Draws of a rung in one round.
    """

    def __init__(
        self,
        task: Task,
        ladder: Ladder,
        reference: Reference,
        *,
        rule: RingRule,
        capacity: int,
        groups: int,
        keeps_gradient: bool,
        round_length: int,
    ):
        self.task, self.target, self.groups = task, reference.target, groups
        self.n, self.sizes, self.rungs = task.target.n, ladder.rows(task.target.n), len(ladder)
        self.count = ring_count(rule, ladder)
        self.edges = fixed_edges(rule, ladder)
        feeders = [*range(self.rungs), self.rungs - 1]
        self.subsets = [self._subset(self.sizes[rung]) for rung in feeders]
        self.rings = [
            [self._empty(self.sizes[rung], capacity, keeps_gradient, place, group) for group in range(groups)]
            for place, rung in enumerate(feeders)
        ]
        self.frozen: list[list[FrozenRings]] = [[] for _ in self.rings]
        for place in range(len(self.rings)):
            self._freeze(place)
        self.fresh = [[self._shelf(rung, round_length) for _ in range(task.chains)] for rung in range(self.rungs)]
        model, density, temper = self.target.model, reference.density, reference.energy_of

        def energies(thetas: Any, subset: Referenced) -> Any:
            return jax.lax.map(lambda theta: model.energies_above(theta, subset, density, temper)[0], thetas)

        kind = ("energies of rings", identity((density, temper)))
        self._energies = self.target.compiled(kind, lambda: jax.jit(energies))

    def group(self, chain: int) -> int:
        """The set of rings that a chain fills and reads."""
        return chain if self.groups > 1 else 0

    def above(self, rung: int, chain: int) -> FrozenRings:
        """What a rung of a chain may jump into: what the hotter one left."""
        return self.frozen[rung + 1][self.group(chain)]

    def shelve(
        self, rung: int, chain: int, first: int, theta: Any, energy: Any, gradient: Any, density: Any, made: int
    ) -> int:
        """Keep the ``made`` draws of a round, from its ``first`` on; returns the rows read for each, to know its ring.

        Draws come as a program returned them, of which the first ``made`` count.
        """
        subset = self.subsets[rung] if rung > 0 else None
        if subset is not None:
            energy = self._energies(theta, subset)
        theta, energy, gradient, density = jax.tree.map(
            lambda leaf: np.asarray(leaf)[:made], (theta, energy, gradient, density)
        )
        here = slice(first, first + made)
        energies, states = self.fresh[rung][chain]
        energies[here] = energy
        states[here] = States(theta, gradient, density).packed()
        return 0 if subset is None else len(subset.log_likelihood)

    def file(self, rung: int, made: int, number: int) -> None:
        """Extend the rings of a rung by the ``made`` states of a round."""
        for chain, fresh in enumerate(self.fresh[rung]):
            energy, states = jax.tree.map(lambda leaf: leaf[:made], fresh)
            rng = np.random.default_rng([self.task.seed, number, rung, self.task.first_chain + chain])
            self.rings[rung][self.group(chain)].file(energy, states, rng)
        self._freeze(rung)

    def checkpoint(self) -> Any:
        """What the rest of the run depends on."""
        return [[ring.checkpoint() for ring in group] for group in self.rings[1:-1]], self.fresh

    def restore(self, checkpoint: Any) -> None:
        """Go on from a checkpoint."""
        rings, self.fresh = checkpoint
        for place, group in enumerate(rings, start=1):
            for ring, saved in zip(self.rings[place], group, strict=True):
                ring.restore(saved)
            self._freeze(place)

    def committed(self) -> None:
        """The checkpoint is safe: the files of the rings may follow."""
        for place, group in enumerate(self.rings[1:-1], start=1):
            for ring in group:
                ring.kept.settle(*ring.kept.unsettled())
            self._freeze(place)

    def occupancy(self) -> np.ndarray:
        """The share of each rung's states that every ring has had: (rung, chain, ring)."""
        chains = range(self.task.chains)
        seen = np.array([[self.rings[k][self.group(c)].seen for c in chains] for k in range(self.rungs)])
        result: np.ndarray = seen / np.maximum(seen.sum(axis=2, keepdims=True), 1)
        return result

    def known_edges(self) -> np.ndarray:
        """The edges between rings, (rung, chain, edge); rung 0 has those of the next."""
        chains = range(self.task.chains)
        edges = [[self.rings[k][self.group(c)].known_edges for c in chains] for k in range(1, self.rungs)]
        return np.array([edges[0], *edges])

    def _subset(self, size: int) -> Referenced | None:
        """The fixed rows that tell apart the rings of a rung that reads batches of this size; None if not needed."""
        data = self.target.posterior.data
        rows = 0 if data is None else subset_size(size, self.n, self.count)
        if data is None or rows == 0:
            return None
        order = distinct(np.random.default_rng([self.task.seed, size]), data.n, rows)
        result: Referenced | None = self.target.posterior.beside(jax.tree.map(jnp.asarray, data.take(order)))
        return result

    def _empty(self, size: int, capacity: int, keeps_gradient: bool, place: int, group: int) -> Rings:
        """Rings for the states of a rung; those that are ever filled live on disk if the run does."""
        theta, is_exact = np.zeros(self.target.dim, self.target.dtype), size == self.n
        density = self.target.model.no_density(theta.dtype) if is_exact else None
        like = States(theta, theta if is_exact and keeps_gradient else None, density).packed()
        folder = self.task.folder if 0 < place < self.rungs else None
        path = None if folder is None else folder / "rings" / f"{place}-{group}.npy"
        return Rings(self.edges, self.count, capacity, like, path, self.task.is_new)

    def _shelf(self, rung: int, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Room for the states of one round, and for the energies that decide which ring each belongs to."""
        rows = self.rings[rung][0].kept.rows
        return np.zeros(length, np.float32), np.zeros((length, rows.shape[1]), rows.dtype)

    def _freeze(self, place: int) -> None:
        self.frozen[place] = [ring.frozen(self.subsets[place]) for ring in self.rings[place]]
