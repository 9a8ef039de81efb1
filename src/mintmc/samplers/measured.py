"""What is left of the rows' log-likelihoods at the moves of chains around their centres: measured on some rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.compiled import identity
from mintmc.control import Controlled, Expansion
from mintmc.control.choose import ROWS_LOOKED_AT, Look, Residuals
from mintmc.energy import Tempered
from mintmc.proposals import Point, Proposal, Tuning
from mintmc.run import adapt
from mintmc.run.task import Task
from mintmc.samplers.centre_search import Centre

_MOVES = 16
_CHAINS_MEASURED = 4


def expected(
    task: Task, target: Tempered, proposal: Proposal | None, centres: Sequence[Centre]
) -> tuple[list[Array], list[Any]]:
    """States and tunings that the chains may be expected to have."""
    states, tunings = [], []
    first_step = task.first_step(target.temperature)
    for theta, centre in zip(task.thetas, centres, strict=True):
        adaptation = adapt.start(proposal, theta, first_step, centre.laplace)
        tunings.append(adapt.tuning(adaptation, final=False))
        middle = centre.expansion.centre
        if centre.laplace is None:
            states.append(middle)
            continue
        normal = jax.random.normal(jax.random.key(task.seed), (_MOVES, task.target.dim), middle.dtype)
        states.append(middle + normal @ centre.laplace.factor.T)
    return states, tunings


def measure(
    task: Task,
    target: Tempered,
    proposal: Proposal | None,
    centres: Sequence[Centre],
    states: Sequence[Array],
    tunings: Sequence[Any],
) -> Residuals:
    """What is left of the rows' differences at moves from the given states, on a random part of the rows."""
    flat, n = task.target, task.target.n
    assert isinstance(target, Controlled)
    assert proposal is not None
    rng = np.random.default_rng(task.seed)
    at = np.arange(n) if n <= ROWS_LOOKED_AT else np.sort(rng.choice(n, ROWS_LOOKED_AT, replace=False))
    assert flat.posterior.data is not None
    rows = jax.tree.map(jnp.asarray, flat.posterior.data.take(at))
    some = jax.tree.map(lambda leaf: leaf[:1024], rows)

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
