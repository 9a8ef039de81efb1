"""Local moves of all rungs of a ladder in one step: first those on all data, then each of the others on its batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import count
from mintmc.acceptance.base import AcceptanceTest
from mintmc.acceptance.exact import Exact
from mintmc.acceptance.minibatch import Common
from mintmc.data import Batch
from mintmc.kernels import metropolis
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.kernels.rungs import Rungs
from mintmc.kernels.swap import joined, one_more
from mintmc.proposals import Point, Proposal, Tuning
from mintmc.statistics import DECIDED, Info


@dataclass(frozen=True)
class RungMoves:
    """How every rung moves by itself."""

    rungs: Rungs
    proposal: Proposal
    dim: int

    @property
    def batches(self) -> dict[str, int]:
        """All data, or each rung's own."""
        rungs = self.rungs
        sizes = {"all": rungs.model.n} if rungs.exact else {}
        for rung in range(rungs.exact, len(rungs)):
            sizes |= {f"{role}{rung}": size for role, size in self.local(rung).batches.items()}
        return sizes

    @property
    def data_per_move(self) -> int:
        """Data points that all rungs together read, where that does not vary."""
        return sum(self.local(rung).touched or 0 for rung in range(len(self.rungs)))

    def data_touched(self, decided: Info) -> count.Count:
        """Data points that all rungs together have read in a step that decided so."""
        total = count.of(self.data_per_move)
        for rung in range(len(self.rungs) if self.proposal.varies else 0):
            total = count.add(total, jax.tree.map(lambda word, k=rung: word[k], decided["data_touched"]))
        return total

    @property
    def names(self) -> list[str]:
        """What is told of every move."""
        return [each.name for each in DECIDED] + (["data_touched"] if self.proposal.varies else [])

    def local(self, rung: int, temperature: float | Array | None = None) -> MetropolisKernel:
        """The kernel of a rung's local moves."""
        rungs, size = self.rungs, self.rungs.batch_sizes[rung]
        target = rungs.target(rungs.temperatures[rung] if temperature is None else temperature)
        test: AcceptanceTest = Exact() if size == rungs.model.n else Common(rungs.penalised)
        return MetropolisKernel(target, self.proposal, test, size, self.dim, rungs.dtype)

    def visit(self, theta: Array, temperature: float, batch: Batch) -> Point:
        """A point of which a rung on all data knows what it needs."""
        return self.local(0, temperature).visit(theta, batch)

    def unknown(self, theta: Array) -> Point:
        """A point of which nothing is known, in the shape of one that all data were read for."""
        gradient = jnp.zeros_like(theta) if self.proposal.uses_gradient else None
        return Point(theta, gradient, self.rungs.model.no_density(self.rungs.dtype))

    def make(
        self, randomness: metropolis.Randomness, theta: Array, known: Point, batch: Batch, tuning: Tuning
    ) -> tuple[Array, Point, Info]:
        """Move all rungs; what is random, tuned, moved and decided has a leading axis of rungs.

        ``known`` is what the rungs on all data know of their states.
        """
        rungs, exact = self.rungs, self.rungs.exact
        each = (randomness, tuning, rungs.all_temperatures)
        results = []
        if exact:
            cold = (known, *jax.tree.map(lambda leaf: leaf[:exact], each))
            alone = partial(self._one, batch=batch, rung=0)
            # Full passes side by side would not fit into the cache; without data, one by one they would take longer.
            results.append(jax.vmap(alone)(cold) if rungs.model.n == 0 else jax.lax.map(alone, cold))
            known = results[0][0]
        for rung in range(exact, len(rungs)):
            roles = {role: batch[f"{role}{rung}"] for role in self.local(rung).batches} | rungs.others(batch)
            at = (Point(theta[rung]), *jax.tree.map(lambda leaf, k=rung: leaf[k], each))
            results.append(one_more(self._one(at, roles, rung)))
        moved = jnp.concatenate([point.theta for point, _ in results])
        return moved, known, joined([decided for _, decided in results])

    def _one(self, at: tuple[Any, ...], batch: Batch, rung: int) -> tuple[Point, Info]:
        point, randomness, tuning, temperature = at
        moved, info = self.local(rung, temperature).advance(randomness, metropolis.State(point, ()), batch, tuning)
        return moved.point, {name: info[name] for name in self.names}
