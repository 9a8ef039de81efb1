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
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.compiled import identity
from mintmc.control import Controlled, Expansion, Laplace, Taylor, expand, laplace
from mintmc.control.choose import COMFORTABLE, FEWEST, ROWS_LOOKED_AT, Look, Residuals
from mintmc.energy import Tempered
from mintmc.kernels.base import Kernel
from mintmc.modes.find import Mode, mode_of
from mintmc.modes.search import NoModeError
from mintmc.modes.tails import slowest_fall
from mintmc.proposals import Point, Proposal, Tuning
from mintmc.run import adapt
from mintmc.run.beside import Centres
from mintmc.run.task import Task

FAR = 10.0
"""Standard deviations from the mode at which a centre that was given is refused."""
WANDERED = 4.0
"""Root mean square of a state's distance from its centre, in standard deviations, that is no longer near it."""
_SAME_START = 10.0
"""Standard deviations within which chains are taken to start in one place."""
_GROWTH = 1.3
_PASSES = 200
_MOVES = 16
_CHAINS_MEASURED = 4
_STARTS = 2**20


class Centre(NamedTuple):
    """What a chain knows of the target around its centre."""

    expansion: Expansion
    laplace: Laplace | None


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
        self._know_nothing()
        self.of_chain = self._find(task)
        self.task = self._begun(task)
        if self.is_open:
            self._choose(*self._around())
        self.kernel = plan.kernel(self.batch_size)

    def _know_nothing(self) -> None:
        self.rows_read, self.passes, self.recentred, self.not_found = 0, 0.0, 0, 0
        self.gradient = self.fall = float("nan")
        self.noise: Residuals | None = None

    def reconsider(self, states: list[Array], tunings: list[Tuning]) -> list[int]:
        """Half-way through warm-up: give chains that wandered off a centre of their own; says which."""
        moved = []
        for chain, (centre, state) in enumerate(zip(self.of_chain, states, strict=True)):
            if centre.laplace is None or centre.laplace.distance(np.asarray(state)) < WANDERED:
                continue
            try:
                mode = self._mode(self.task, state)
            except NoModeError:
                continue  # no better centre is known: the noise says what this one is worth
            self.of_chain[chain] = self._centre(self.task, mode)
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
            "centre_passes": self.passes,
            "centre_gradient": self.gradient,
            "recentred_chains": self.recentred,
            "modes_not_found": self.not_found,
        }
        if not np.isnan(self.fall):
            facts["slowest_fall"] = self.fall
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
        found = f"mode found in {self.passes:.3g} passes" if self.passes else "centre given"
        if self.not_found:
            found = f"no mode found in {self.passes:.3g} passes (a saddle, or a flat valley?): the best point is taken"
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
        return numbers, np.array([self.fall]), self.of_chain

    def restore(self, checkpoint: Any) -> None:
        """Go on with the centres of a checkpoint, and with batches of its size."""
        numbers, falls, self.of_chain = checkpoint
        self.fall = float(falls[0])
        size, self.recentred, self.rows_read = (int(number) for number in numbers)
        if self.is_open:
            self.batch_size = size
            self._follow()

    def _find(self, task: Task) -> list[Centre]:
        """A centre for each chain; those that start near each other share one."""
        control, starts = self.plan.control, task.thetas
        if control is not None and control.centre is not None:
            centre = self._given(task, task.target.ravel(control.centre).astype(starts[0].dtype))
            return [centre] * len(starts)
        found: list[tuple[Array, Centre]] = []
        centres = []
        for theta in starts:
            near = [centre for start, centre in found if _apart(centre, start, theta) < _SAME_START]
            if not near:
                found.append((theta, self._centre(task, self._mode(task, theta))))
                near = [found[-1][1]]
            centres.append(near[0])
        return centres

    def _mode(self, task: Task, theta: Array) -> Mode:
        order, flat = self._order, task.target
        settings: dict[str, Any] = {"max_passes": _PASSES, "is_patient": False}
        mode = mode_of(flat, theta, seed=task.seed, order=order, **settings)
        self.not_found += int(order == 2 and mode.covariance is None)
        self.rows_read += mode.rows_read
        self.passes += mode.passes
        self.gradient = np.fmax(self.gradient, mode.gradient)
        return mode

    def _centre(self, task: Task, mode: Mode) -> Centre:
        is_peak = mode.covariance is not None
        return self._expanded(task, task.target.ravel(mode.params), mode.expansion, is_peak)

    def _expanded(self, task: Task, at: Array, expansion: Expansion | None, is_peak: bool = True) -> Centre:
        """The expansion at a centre, if it is not known already."""
        target = self.plan.target
        if expansion is None:
            model, order = target.model, self._order
            program = task.target.compiled(
                ("expand", order), lambda: jax.jit(lambda at, rows: expand(model, at, rows, order))
            )
            expansion = jax.block_until_ready(program(at, task.target.posterior.rows))
            task.check_reads()
            self.rows_read += task.target.n
        normal = None if expansion.hessian is None else laplace(target, expansion, is_peak)
        if normal is not None and is_peak and self.plan.proposal is not None and self.plan.proposal.is_around:
            fall, rows_read = slowest_fall(task.target, target, normal, task.seed)
            self.fall, self.rows_read = float(np.fmin(self.fall, fall)), self.rows_read + rows_read
        return Centre(expansion, normal)

    def _given(self, task: Task, at: Array) -> Centre:
        """The centre that the user gave, if it is near a mode."""
        centre = self._expanded(task, at, None)
        expansion = centre.expansion
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(expansion)):
            raise ValueError(
                "control.centre must have finite derivatives of log_likelihood on all data, got others there"
            )
        if expansion.hessian is None:
            return centre
        if centre.laplace is None:
            raise ValueError("control.centre must be near a mode, got a point where the density is not curved like one")
        target = self.plan.target
        own = np.asarray(target.without_data_gradient(expansion.centre), float)
        gradient = np.asarray(expansion.gradient, float) / float(target.temperature) + own
        self.gradient = float(np.sqrt(np.mean((np.asarray(centre.laplace.factor, float).T @ gradient) ** 2)))
        if self.gradient > FAR:
            raise ValueError(
                f"control.centre must lie within {FAR:g} standard deviations of a mode (None finds it), got "
                f"{check.shown(np.asarray(at).tolist())}, about {self.gradient:.3g} away"
            )
        return centre

    def _begun(self, task: Task) -> Any:
        """The chains start around their centres: what they were given is where the mode was sought from."""
        is_possible = task.target.compiled(("is possible",), lambda: jax.jit(task.target.model.is_possible))
        key = jax.random.fold_in(jax.random.key(task.seed), _STARTS)
        thetas = []
        for chain, (theta, centre) in enumerate(zip(task.thetas, self.of_chain, strict=True)):
            at = jax.random.fold_in(key, task.first_chain + chain)
            thetas.append(_drawn_around(centre, theta, at, is_possible))
        return replace(task, thetas=thetas)

    def _around(self) -> tuple[list[Array], list[Any]]:
        """States and tunings that the chains may be expected to have."""
        task, states, tunings = self.task, [], []
        first_step = task.first_step(self.plan.target.temperature)
        for theta, centre in zip(task.thetas, self.of_chain, strict=True):
            adaptation = adapt.start(self.plan.proposal, theta, first_step, centre.laplace)
            tunings.append(adapt.tuning(adaptation, final=False))
            middle = centre.expansion.centre
            if centre.laplace is None:
                states.append(middle)
                continue
            normal = jax.random.normal(jax.random.key(task.seed), (_MOVES, task.target.dim), middle.dtype)
            states.append(middle + normal @ centre.laplace.factor.T)
        return states, tunings

    def _choose(self, states: list[Array], tunings: list[Any]) -> None:
        """Measure the residuals at these states; where the batch was left open, take one that suits them."""
        self.noise = measure(self.task, self.plan, self.of_chain, states, tunings)
        wanted = self.noise.smallest_batch(self.task.target.n, float(self.plan.target.n_eff))
        # A batch is never made smaller again, nor a program compiled anew for a little.
        if self.is_open and (self.batch_size is None or wanted > _GROWTH * self.batch_size):
            self.batch_size = wanted

    @property
    def _order(self) -> int:
        return 2 if self.plan.control is None else self.plan.control.order


def _apart(centre: Centre, one: Array, other: Array) -> float:
    """The distance of two states in standard deviations."""
    if centre.laplace is None:
        return 0.0
    return float(centre.laplace.distance(np.asarray(centre.laplace.centre + (one - other))))


def _drawn_around(centre: Centre, theta: Array, key: Array, is_possible: Callable[[Array], Array]) -> Array:
    """A draw from the Laplace approximation, or closer to the centre where that would be impossible."""
    middle = centre.expansion.centre
    if centre.laplace is None:
        return middle
    shift = centre.laplace.factor @ jax.random.normal(key, theta.shape, theta.dtype)
    tries = (middle + shift / 2**halvings for halvings in range(20))
    return next((there for there in tries if bool(is_possible(there))), middle)


def measure(task: Task, plan: Plan, centres: list[Centre], states: list[Array], tunings: list[Any]) -> Residuals:
    """What is left of the rows' differences at moves from the given states, on a random part of the rows."""
    flat, n, proposal = task.target, task.target.n, plan.proposal
    assert isinstance(plan.target, Controlled)
    assert proposal is not None
    rng = np.random.default_rng(task.seed)
    at = np.arange(n) if n <= ROWS_LOOKED_AT else np.sort(rng.choice(n, ROWS_LOOKED_AT, replace=False))
    assert flat.posterior.data is not None
    rows = jax.tree.map(jnp.asarray, flat.posterior.data.take(at))
    some = jax.tree.map(lambda leaf: leaf[:1024], rows)
    target = plan.target

    def moves(keys: Array, heres: Array, tuning: Tuning, expansion: Expansion, some: Any) -> tuple[Array, Array]:
        informed = target.informed({"control": expansion})

        def visit(theta: Array) -> Point:
            return Point(theta, informed.batch_gradient(theta, some) if proposal.uses_gradient else None)

        def move(key: Array, here: Array) -> tuple[Array, Array]:
            numbers = proposal.randomness(key, here.size, here.dtype)
            there, log_q = proposal.move(numbers, visit(here), visit, tuning)
            return there.theta, log_q

        found: tuple[Array, Array] = jax.vmap(move)(keys, heres)
        return found

    kind = (identity(proposal), float(target.temperature), target.temper)
    proposed = flat.compiled(("measured moves", kind), lambda: jax.jit(moves))
    look: Look = flat.compiled(("look", kind), lambda: Look(target))
    measured = []
    # A few chains tell what all are like.
    for chain in range(min(len(centres), _CHAINS_MEASURED)):
        state, expansion = states[chain], centres[chain].expansion
        heres = jnp.broadcast_to(state, (_MOVES, state.shape[-1])) if state.ndim == 1 else state
        keys = jax.random.split(jax.random.fold_in(jax.random.key(task.seed), chain), len(heres))
        theres, log_q = proposed(keys, heres, tunings[chain], expansion, some)
        measured.append(look(heres, theres, log_q, expansion, rows))
    return max(measured, key=lambda one: one.variance)
