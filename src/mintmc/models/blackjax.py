"""A sampler of ours as BlackJAX has its own: two pure functions, for a loop that somebody else writes.

Nothing is adapted, shuffled, stored or judged here: that is what ``sample`` is for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import Array

from mintmc import check
from mintmc.data import Uniform, open_batches
from mintmc.kernels.base import Kernel
from mintmc.params import Params
from mintmc.posterior import Posterior
from mintmc.run import adapt
from mintmc.samplers.base import kernel_of, needs_centre
from mintmc.statistics import Info


class State(NamedTuple):
    """Where a chain is, and what its next step needs."""

    position: Params
    inner: Any


class Algorithm(NamedTuple):
    """``init(params, key=None) -> state`` and ``step(key, state) -> (state, info)``, both pure."""

    init: Callable[..., State]
    step: Callable[[Array, State], tuple[State, Info]]


def as_blackjax(posterior: Posterior, sampler: Any, init: Params) -> Algorithm:
    """A sampler of independent chains as a pair of functions, in the manner of BlackJAX.

    Batches are drawn uniformly, without replacement, at every step. Draws of MINT are at its temperature.

    Parameters
    ----------
    posterior
        With data in memory, or a density.
    sampler
        ``MINT``, ``MetropolisHastings``, ``BarkerMH``, ``SGLD`` and the like: any that is no ladder, without
        ``control``, and with all settings given, ``step_size`` of its proposal among them.
    init
        Params like those of the chain.

    Examples
    --------
    >>> import jax, numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(1.0, 1.0, size=1000)
    >>> posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    >>> sampler = mintmc.MINT(100, alpha=0.5, proposal=mintmc.RandomWalk(0.2))
    >>> algorithm = mintmc.as_blackjax(posterior, sampler, 0.0)
    >>> keys = jax.random.split(jax.random.key(0), 5000)
    >>> state, draws = jax.lax.scan(
    ...     lambda state, key: (algorithm.step(key, state)[0], state.position), algorithm.init(0.0), keys
    ... )
    >>> bool(abs(draws.mean() - 1) < 0.2)
    True
    """
    check.instance("posterior", posterior, Posterior, "a mintmc.Posterior")
    if posterior.on_disk:
        raise ValueError("posterior must have its data in memory for a loop of your own, got data on disk")
    kernel = _kernel(posterior, sampler, init)
    target, batching, rows = posterior.flat(init), Uniform(posterior.n), posterior.rows
    tuning = None
    if kernel.proposal is not None:
        if kernel.proposal.step_size is None:
            raise ValueError("sampler must have the step_size of its proposal given: nothing adapts it, got None")
        begun = adapt.start(kernel.proposal, target.ravel(init), 1.0)
        tuning = adapt.tuning(begun, final=True)

    def batch(key: Array) -> Any:
        keys = jax.random.split(key, max(len(kernel.batches), 1))
        tickets = {role: batching.ticket(at) for role, at in zip(kernel.batches, keys, strict=False)}
        return open_batches(kernel.batches, batching, rows, tickets)

    def begin(params: Params, key: Array | None = None) -> State:
        key = jax.random.key(0) if key is None else key
        return State(params, kernel.init(target.ravel(params), batch(key)))

    def step(key: Array, state: State) -> tuple[State, Info]:
        for_rows, for_step = jax.random.split(key)
        inner, info = kernel.step(for_step, state.inner, batch(for_rows), tuning)
        return State(target.unravel(kernel.position(inner)), inner), info

    return Algorithm(begin, step)


def _kernel(posterior: Posterior, sampler: Any, init: Params) -> Kernel:
    """The kernel of a sampler, if it needs nothing that only a run can give."""
    if not hasattr(sampler, "kernel") or hasattr(sampler, "ladder") or isinstance(sampler, type):
        raise TypeError(f"sampler must be one of independent chains, such as MINT, got {check.shown(sampler)}")
    sampler.check(posterior, init)
    if sampler.left_open or needs_centre(sampler):
        raise ValueError(f"sampler must have all its settings given, and no control, got {check.shown(sampler)}")
    return kernel_of(sampler, posterior.flat(init))
