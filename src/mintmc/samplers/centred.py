"""Where a run expands its log-likelihoods, and how large its batches must be: found in warm-up, then fixed.

Before the first step the mode is sought from where the chains start, once for all chains that start around one point.
Half-way through warm-up chains that have wandered off get a centre of their own; after warm-up nothing moves any more,
since a centre that follows the chain would be part of its state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from mintmc.control import Taylor
from mintmc.control.choose import COMFORTABLE, FEWEST, Residuals
from mintmc.energy import Tempered
from mintmc.kernels.base import Kernel
from mintmc.modes.search import NoModeError
from mintmc.proposals import Proposal, Tuning
from mintmc.run.beside import Centres
from mintmc.run.task import Task
from mintmc.samplers.centre_search import Centre, CentreSearch
from mintmc.samplers.measured import expected, measure

WANDERED = 4.0
"""Root mean square of a state's distance from its centre, in standard deviations, that is no longer near it."""
_GROWTH = 1.3
_STARTS = 2**20


class Plan(NamedTuple):
    """What a sampler asks of its centres."""

    target: Tempered  # a Controlled one, if batches are to estimate only what an expansion leaves
    proposal: Proposal | None  # between flat vectors
    control: Taylor | None
    batch_size: int | None  # None leaves it open
    kernel: Callable[[int | None], Kernel]  # for batches of a size


class Centred(Centres):
    """The centres of a run's chains, and the batch that was chosen for them."""

    def __init__(self, task: Task, plan: Plan):
        self.plan = plan
        self.is_controlled = plan.control is not None
        self.is_open, self.batch_size = self.is_controlled and plan.batch_size is None, plan.batch_size
        self.recentred = 0
        self.noise: Residuals | None = None
        self.search = CentreSearch(task, plan.target, plan.control, plan.proposal)
        self.of_chain = self.search.find()
        self.task = self._begun(task)
        if self.is_open:
            self._choose(*expected(self.task, plan.target, plan.proposal, self.of_chain))
        self.kernel = plan.kernel(self.batch_size)

    @property
    def rows_read(self) -> int:
        """To find them."""
        return self.search.rows_read

    def reconsider(self, states: list[Array], tunings: list[Tuning]) -> list[int]:
        """Half-way through warm-up: give chains that wandered off a centre of their own; says which."""
        moved = []
        for chain, (centre, state) in enumerate(zip(self.of_chain, states, strict=True)):
            if centre.laplace is None or centre.laplace.distance(np.asarray(state)) < WANDERED:
                continue
            try:
                mode = self.search.mode(state)
            except NoModeError:
                continue  # no better centre is known: the noise says what this one is worth
            self.of_chain[chain] = self.search.centre_at(mode)
            moved.append(chain)
        self.recentred += len(moved)
        if self.is_open:
            tunings = [
                tuning._replace(laplace=self.of_chain[chain].laplace) if tuning.laplace is not None else tuning
                for chain, tuning in enumerate(tunings)
            ]
            self._choose(states, tunings)
            self._follow()
        return moved

    def supplied(self, chain: int) -> dict[str, Any]:
        """The expansion, if the target is controlled."""
        return {"control": self.of_chain[chain].expansion} if self.is_controlled else {}

    def _follow(self) -> None:
        """A kernel for batches of another size."""
        if self.batch_size != getattr(self.kernel, "batch_size", self.batch_size):
            self.kernel = self.plan.kernel(self.batch_size)

    def facts(self) -> dict[str, Any]:
        """What the tree should know."""
        n = self.task.target.n
        facts: dict[str, Any] = {
            "centre": np.asarray(self.of_chain[0].expansion.centre, float).tolist(),
            "centre_passes": self.search.passes,
            "centre_gradient": self.search.gradient,
            "recentred_chains": self.recentred,
            "modes_not_found": self.search.not_found,
        }
        if not np.isnan(self.search.fall):
            facts["slowest_fall"] = self.search.fall
        if self.is_open or self.batch_size != n:
            facts["batch_size"] = self.batch_size
        if self.noise is not None:
            n_eff = float(self.plan.target.n_eff)
            facts["residual_noise"] = self.noise.noise(n, n_eff, self.batch_size or n)
            facts["residual_kurtosis"] = self.noise.kurtosis
            facts["batch_size_needed"] = self.noise.smallest_batch(n, n_eff)
        return facts

    def said(self) -> str:
        """One line about the centre and the batch."""
        passes = self.search.passes
        found = f"mode found in {passes:.3g} passes" if passes else "centre given"
        if self.search.not_found:
            found = f"no mode found in {passes:.3g} passes (a saddle, or a flat valley?): the best point is taken"
        if not self.is_open or self.noise is None:
            return found
        facts = self.facts()
        why = f"noise {facts['residual_noise']:.2g} (comfortable: {COMFORTABLE:g})"
        if self.batch_size == min(FEWEST, self.task.target.n):
            why += ", no fewer are of use"
        elif self.batch_size == self.task.target.n:
            why = "all data: no smaller batch is quiet enough"
        return f"{found}; batch of {self.batch_size:,} rows chosen: {why}"

    def checkpoint(self) -> Any:
        """What a run must find again."""
        numbers = np.array([self.batch_size or 0, self.recentred, self.rows_read])
        return numbers, np.array([self.search.fall]), self.of_chain

    def restore(self, checkpoint: Any) -> None:
        """Go on with the centres of a checkpoint, and with batches of its size."""
        numbers, falls, self.of_chain = checkpoint
        self.search.fall = float(falls[0])
        size, self.recentred, self.search.rows_read = (int(number) for number in numbers)
        if self.is_open:
            self.batch_size = size
            self._follow()

    def _begun(self, task: Task) -> Task:
        """The chains start around their centres: what they were given is where the mode was sought from."""
        is_possible = task.target.compiled(("is possible",), lambda: jax.jit(task.target.model.is_possible))
        key = jax.random.fold_in(jax.random.key(task.seed), _STARTS)
        thetas = []
        for chain, (theta, centre) in enumerate(zip(task.thetas, self.of_chain, strict=True)):
            at = jax.random.fold_in(key, task.first_chain + chain)
            thetas.append(_drawn_around(centre, theta, at, is_possible))
        return replace(task, thetas=thetas)

    def _choose(self, states: list[Array], tunings: list[Any]) -> None:
        """Measure the residuals at these states; where the batch was left open, take one that suits them."""
        self.noise = measure(self.task, self.plan.target, self.plan.proposal, self.of_chain, states, tunings)
        wanted = self.noise.smallest_batch(self.task.target.n, float(self.plan.target.n_eff))
        # A batch is never made smaller again, nor a program compiled anew for a little.
        if self.is_open and (self.batch_size is None or wanted > _GROWTH * self.batch_size):
            self.batch_size = wanted


def _drawn_around(centre: Centre, theta: Array, key: Array, is_possible: Callable[[Array], Array]) -> Array:
    """A draw from the Laplace approximation, or closer to the centre where that would be impossible."""
    middle = centre.expansion.centre
    if centre.laplace is None:
        return middle
    shift = centre.laplace.factor @ jax.random.normal(key, theta.shape, theta.dtype)
    tries = (middle + shift / 2**halvings for halvings in range(20))
    return next((there for there in tries if bool(is_possible(there))), middle)
