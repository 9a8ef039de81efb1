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

from mintmc.control import Controlled, Expansion, Laplace, expand, laplace
from mintmc.control.choose import COMFORTABLE, FEWEST, ROWS_LOOKED_AT, Look, Residuals
from mintmc.energy import Tempered
from mintmc.modes.find import Mode, NoModeError, mode_of
from mintmc.posterior import Posterior, flatten
from mintmc.proposals import Point, Tuning
from mintmc.run import adapt
from mintmc.samplers.control import needs_laplace

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


def is_centred(sampler: Any) -> bool:
    """Whether a run needs a centre."""
    return getattr(sampler, "control", None) is not None or needs_laplace(getattr(sampler, "proposal", None))


def target_of(sampler: Any, posterior: Posterior, unravel: Callable, dim: int) -> Tempered:
    """The target at the sampler's temperature."""
    model = posterior.model(unravel, dim)
    kind = Tempered if getattr(sampler, "control", None) is None else Controlled
    return kind(model, sampler.target_temperature(posterior.n), sampler.temper)


class Centred:
    """The centres of a run's chains, and the batch that was chosen for them."""

    def __init__(self, task: Any):
        self.is_controlled = getattr(task.sampler, "control", None) is not None
        self.is_open = self.is_controlled and task.sampler.batch_size is None
        self.rows_read, self.passes, self.gradient = 0, 0.0, float("nan")
        self.recentred, self.not_found = 0, 0
        self.noise: Residuals | None = None
        self.of_chain = self._find(task)
        self.task = self._begun(task)
        if self.is_open:
            self._choose(self.task, *self._around())

    @property
    def batch_size(self) -> int:
        """Rows of a batch; 0 where none are controlled."""
        return self.task.sampler.batch_size if self.is_controlled else 0

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
            self._choose(self.task, states, tunings)
        return moved

    def facts(self) -> dict[str, Any]:
        """What the tree should know."""
        task = self.task
        facts: dict[str, Any] = {
            "centre": np.asarray(self.of_chain[0].expansion.centre, float).tolist(),
            "centre_passes": self.passes,
            "centre_gradient": self.gradient,
            "recentred_chains": self.recentred,
            "modes_not_found": self.not_found,
        }
        if self.is_controlled:
            facts["batch_size"] = self.batch_size
        if self.noise is not None:
            n_eff = task.posterior.n / task.sampler.target_temperature(task.posterior.n)
            facts["residual_noise"] = self.noise.noise(task.posterior.n, n_eff, self.batch_size)
            facts["residual_kurtosis"] = self.noise.kurtosis
            facts["batch_size_needed"] = self.noise.smallest_batch(task.posterior.n, n_eff)
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
        if self.batch_size == min(FEWEST, self.task.posterior.n):
            why += ", no fewer are of use"
        elif self.batch_size == self.task.posterior.n:
            why = "all data: no smaller batch is quiet enough"
        return f"{found}; batch of {self.batch_size:,} rows chosen: {why}"

    def checkpoint(self) -> Any:
        """What a run must find again."""
        return np.array([self.batch_size, self.recentred, self.rows_read]), self.of_chain

    def restore(self, checkpoint: Any) -> bool:
        """Go on with the centres of a checkpoint; True if its batches are of another size."""
        numbers, self.of_chain = checkpoint
        size, self.recentred, self.rows_read = (int(number) for number in numbers)
        is_other = self.is_controlled and size != self.batch_size
        if is_other:
            self.task = self.task._replace(sampler=replace(self.task.sampler, batch_size=size))
        return is_other

    def _find(self, task: Any) -> list[Centre]:
        """A centre for each chain; those that start near each other share one."""
        control, starts = getattr(task.sampler, "control", None), task.thetas
        if control is not None and control.centre is not None:
            centre = self._given(task, flatten(control.centre, "control.centre")[0].astype(starts[0].dtype))
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

    def _mode(self, task: Any, theta: Array) -> Mode:
        order, settings = _order(task), {"max_passes": _PASSES, "is_patient": False}
        mode = mode_of(task.posterior, theta, task.unravel, seed=task.seed, order=order, **settings)
        self.not_found += int(order == 2 and mode.covariance is None)
        self.rows_read += mode.rows_read
        self.passes += mode.passes
        self.gradient = np.fmax(self.gradient, mode.gradient)
        return mode

    def _centre(self, task: Any, mode: Mode) -> Centre:
        is_peak = mode.covariance is not None
        return self._expanded(task, flatten(mode.params, "params")[0], mode.expansion, is_peak)

    def _expanded(self, task: Any, at: Array, expansion: Expansion | None, is_peak: bool = True) -> Centre:
        """The expansion at a centre, if it is not known already."""
        target = target_of(task.sampler, task.posterior, task.unravel, task.dim)
        if expansion is None:
            order = _order(task)
            expansion = jax.jit(lambda at, rows: expand(target.model, at, rows, order))(at, task.posterior.rows)
            jax.block_until_ready(expansion)
            task.check_reads()
            self.rows_read += task.posterior.n
        return Centre(expansion, None if expansion.hessian is None else laplace(target, expansion, is_peak))

    def _given(self, task: Any, at: Array) -> Centre:
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
        target = target_of(task.sampler, task.posterior, task.unravel, task.dim)
        own = np.asarray(target.without_data_gradient(expansion.centre), float)
        gradient = np.asarray(expansion.gradient, float) / float(target.temperature) + own
        self.gradient = float(np.sqrt(np.mean((np.asarray(centre.laplace.factor, float).T @ gradient) ** 2)))
        if self.gradient > FAR:
            raise ValueError(
                f"control.centre must lie within {FAR:g} standard deviations of a mode (None finds it), got one about "
                f"{self.gradient:.3g} away"
            )
        return centre

    def _begun(self, task: Any) -> Any:
        """The chains start around their centres: what they were given is where the mode was sought from."""
        if not self.is_controlled:
            return task
        is_possible = jax.jit(task.posterior.model(task.unravel, task.dim).is_possible)
        key = jax.random.fold_in(jax.random.key(task.seed), _STARTS)
        thetas = []
        for chain, (theta, centre) in enumerate(zip(task.thetas, self.of_chain, strict=True)):
            at = jax.random.fold_in(key, task.first_chain + chain)
            thetas.append(_drawn_around(centre, theta, at, is_possible))
        return task._replace(thetas=thetas)

    def _around(self) -> tuple[list[Array], list[Tuning]]:
        """States and tunings that the chains may be expected to have."""
        task, states, tunings = self.task, [], []
        first_step = task.first_step(task.sampler.target_temperature(task.posterior.n))
        for theta, centre in zip(task.thetas, self.of_chain, strict=True):
            adaptation = adapt.start(task.proposal, theta, first_step, centre.laplace)
            tunings.append(adapt.tuning(adaptation, final=False))
            middle = centre.expansion.centre
            if centre.laplace is None:
                states.append(middle)
                continue
            normal = jax.random.normal(jax.random.key(task.seed), (_MOVES, task.dim), middle.dtype)
            states.append(middle + normal @ centre.laplace.factor.T)
        return states, tunings

    def _choose(self, task: Any, states: list[Array], tunings: list[Tuning]) -> None:
        """Measure the residuals at these states; where the batch was left open, take one that suits them."""
        self.noise = measure(task, self.of_chain, states, tunings)
        n = task.posterior.n
        wanted = self.noise.smallest_batch(n, n / task.sampler.target_temperature(n))
        size = task.sampler.batch_size
        # A batch is never made smaller again, nor a program compiled anew for a little.
        if self.is_open and (size is None or wanted > _GROWTH * size):
            self.task = task._replace(sampler=replace(task.sampler, batch_size=wanted))


def _order(task: Any) -> int:
    control = getattr(task.sampler, "control", None)
    return 2 if control is None else control.order


def _apart(centre: Centre, one: Array, other: Array) -> float:
    """The distance of two states in standard deviations."""
    if centre.laplace is None:
        return 0.0
    return float(centre.laplace.distance(np.asarray(centre.laplace.centre + (one - other))))


def _drawn_around(centre: Centre, theta: Array, key: Array, is_possible: Callable) -> Array:
    """A draw from the Laplace approximation, or closer to the centre where that would be impossible."""
    middle = centre.expansion.centre
    if centre.laplace is None:
        return middle
    shift = centre.laplace.factor @ jax.random.normal(key, theta.shape, theta.dtype)
    tries = (middle + shift / 2**halvings for halvings in range(20))
    return next((there for there in tries if bool(is_possible(there))), middle)


def measure(task: Any, centres: list[Centre], states: list[Array], tunings: list[Tuning]) -> Residuals:
    """What is left of the rows' differences at moves from the given states, on a random part of the rows."""
    posterior, n, proposal = task.posterior, task.posterior.n, task.proposal
    target: Any = target_of(task.sampler, posterior, task.unravel, task.dim)
    rng = np.random.default_rng(task.seed)
    at = np.arange(n) if n <= ROWS_LOOKED_AT else np.sort(rng.choice(n, ROWS_LOOKED_AT, replace=False))
    assert posterior.data is not None
    rows = jax.tree.map(jnp.asarray, posterior.data.take(at))
    some = jax.tree.map(lambda leaf: leaf[:1024], rows)

    @jax.jit
    def moves(keys: Array, heres: Array, tuning: Tuning, expansion: Expansion) -> tuple[Array, Array]:
        informed = target.informed({"control": expansion})

        def visit(theta: Array) -> Point:
            return Point(theta, informed.batch_gradient(theta, some) if proposal.uses_gradient else None)

        def move(key: Array, here: Array) -> tuple[Array, Array]:
            noise = proposal.noise(key, here.size, here.dtype)
            there, log_q = proposal.move(noise, visit(here), visit, tuning)
            return there.theta, log_q

        return jax.vmap(move)(keys, heres)

    look = Look(target)
    found = []
    # A few chains tell what all are like.
    for chain in range(min(len(centres), _CHAINS_MEASURED)):
        state, expansion = states[chain], centres[chain].expansion
        heres = jnp.broadcast_to(state, (_MOVES, state.shape[-1])) if state.ndim == 1 else state
        keys = jax.random.split(jax.random.fold_in(jax.random.key(task.seed), chain), len(heres))
        theres, log_q = moves(keys, heres, tunings[chain], expansion)
        found.append(look(heres, theres, log_q, expansion, rows))
    return max(found, key=lambda one: one.variance)
