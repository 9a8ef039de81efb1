"""Warm-up: the step size is driven to a target acceptance, the preconditioner to the covariance of the draws.

Step size: Robbins-Monro on its logarithm, averaged over time (Polyak-Ruppert). Preconditioner: the covariance of the
states of a window; windows double in length, and each one's end starts the step size anew. Path: the same states tell
how far the target extends in preconditioned coordinates (``run/extent.py``). After warm-up nothing changes any more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.control import Laplace
from mintmc.proposals import Proposal, Tuning, initial_scale
from mintmc.proposals.tuning import ADAPTED
from mintmc.run.extent import LARGEST, credible, extent

_FIRST_WINDOW = 25


class Moments(NamedTuple):
    """Running mean and sum of squared deviations (Welford): vectors, or vector and matrix."""

    total: Array
    mean: Array
    squares: Array


class Adaptation(NamedTuple):
    """What warm-up carries from step to step."""

    log_step: Array
    average: Array  # of log_step, the later the heavier
    since_restart: Array
    moments: Moments | None
    scale: Array | None
    laplace: Laplace | None = None  # of a proposal that needs it: given, never adapted
    path: Array | None = None  # standard deviation of the longest direction, in units of the scale; inf if not known


def start(proposal: Any, theta: Array, first_step: float | Array, laplace: Laplace | None = None) -> Adaptation:
    """The state of adaptation before the first step; one for each rung if there is a first step for each."""
    if jnp.ndim(first_step):
        return jax.vmap(lambda step: start(proposal, theta, step))(jnp.asarray(first_step, theta.dtype))
    dim, dtype = theta.size, theta.dtype
    scale = initial_scale(proposal.preconditioner, dim, dtype)
    if laplace is not None:
        scale, first_step = laplace.factor, 1.0
    step = proposal.step_size if proposal.step_size is not None else first_step * proposal.unit_step(dim)
    if scale is not None and not isinstance(proposal.preconditioner, str) and proposal.step_size is None:
        step = proposal.unit_step(dim)
    log_step = jnp.log(jnp.asarray(step, dtype))
    moments = None
    path = jnp.asarray(jnp.inf, dtype) if _adapts_path(proposal, dim) else None
    if path is not None:
        moments = Moments(jnp.zeros((), dtype), jnp.zeros(dim, dtype), jnp.zeros((dim, dim), dtype))
    elif scale is not None and _adapts_scale(proposal):
        moments = Moments(jnp.zeros((), dtype), jnp.zeros(dim, dtype), jnp.zeros_like(scale))
    around = laplace if proposal.is_around else None
    # Where moves are around it, its factor is all the scale there is.
    scale = None if around is not None else scale
    return Adaptation(log_step, log_step, jnp.zeros((), dtype), moments, scale, around, path)


def tuning(adaptation: Adaptation | None, final: bool) -> Tuning | None:
    """The tuning to use for a step of warm-up, or (``final``) for all draws after it; None if nothing is adapted."""
    if adaptation is None:
        return None
    step = jnp.exp(adaptation.average if final else adaptation.log_step)
    return Tuning(step, adaptation.scale, adaptation.laplace, path=adaptation.path)


def update(
    adaptation: Adaptation, proposal: Any, acceptance_rate: Array, theta: Array, window_ends: Array
) -> Adaptation:
    """Learn from one step, for every rung on its own if there are several."""
    if acceptance_rate.ndim:
        return jax.vmap(lambda a, rate, at: update(a, proposal, rate, at, window_ends))(
            adaptation, acceptance_rate, theta
        )
    if proposal.step_size is None:
        target = proposal.target_acceptance
        time = adaptation.since_restart + 1
        gain = time**-0.6 / (target * (1 - target))
        log_step = adaptation.log_step + gain * (acceptance_rate - target)
        if (largest := proposal.largest_step) is not None:
            log_step = jnp.minimum(log_step, jnp.log(jnp.asarray(largest, log_step.dtype)))
        average = adaptation.average + time**-0.75 * (log_step - adaptation.average)
        adaptation = adaptation._replace(log_step=log_step, average=average, since_restart=time)
    if adaptation.moments is None:
        return adaptation
    adaptation = adaptation._replace(moments=_observe(adaptation.moments, theta))
    result: Adaptation = jax.lax.cond(window_ends, lambda a: _end_window(a, proposal), lambda a: a, adaptation)
    return result


def window_ends(warmup: int) -> np.ndarray:
    """True at the steps of warm-up that end a window: 15% in, then at doubling lengths, the last at 90%."""
    ends = np.zeros(max(warmup, 1), dtype=bool)
    start, stop = int(0.15 * warmup), int(0.9 * warmup)
    length = _FIRST_WINDOW
    at = start
    while stop - at >= length:
        # A window that would leave less than twice its length takes the rest.
        at = stop if stop - at < 3 * length else at + length
        ends[at - 1] = True
        length *= 2
    return ends


def _adapts_scale(proposal: Proposal) -> bool:
    return isinstance(proposal.preconditioner, str) and proposal.preconditioner in ADAPTED


def _adapts_path(proposal: Proposal, dim: int) -> bool:
    return proposal.adapts_path and dim <= LARGEST


def _observe(moments: Any, theta: Array) -> Moments:
    count = moments.total + 1
    before = theta - moments.mean
    mean = moments.mean + before / count
    after = theta - mean
    squares = before * after if moments.squares.ndim == 1 else jnp.outer(before, after)
    return Moments(count, mean, moments.squares + squares)


def _end_window(adaptation: Any, proposal: Proposal) -> Adaptation:
    if _adapts_scale(proposal):
        adaptation, learned = _rescaled(adaptation, proposal)
    if adaptation.path is not None:
        moments = adaptation.moments
        covariance = moments.squares / jnp.maximum(moments.total - 1, 1)
        is_fitted = _adapts_scale(proposal) and adaptation.scale.ndim == 2
        path = extent(covariance, adaptation.scale, moments.total, is_fitted)
        adaptation = adaptation._replace(path=jnp.where(jnp.isfinite(path), path, jnp.inf))
    kept: Adaptation = adaptation._replace(moments=jax.tree.map(jnp.zeros_like, adaptation.moments))
    if proposal.step_size is not None or not _adapts_scale(proposal):
        return kept
    unit = jnp.log(jnp.asarray(proposal.unit_step(adaptation.moments.mean.size), kept.log_step.dtype))
    log_step = jnp.where(learned, unit, kept.log_step)
    return kept._replace(log_step=log_step, average=log_step, since_restart=jnp.zeros_like(kept.since_restart))


def _rescaled(adaptation: Any, proposal: Proposal) -> tuple[Adaptation, Array]:
    """With the scale of this window's states, and whether they told one."""
    count, mean, squares = adaptation.moments
    covariance = squares / jnp.maximum(count - 1, 1)
    if adaptation.scale.ndim == 1 and covariance.ndim == 2:
        covariance = jnp.diagonal(covariance)
    variances = covariance if covariance.ndim == 1 else jnp.diagonal(covariance)
    floor = jnp.maximum(variances.mean(), jnp.finfo(mean.dtype).tiny)
    # What has not moved has no scale yet; all else keeps its own, however small beside others.
    variances = jnp.where(variances > 0, variances, floor)
    if covariance.ndim == 1:
        scale = jnp.sqrt(variances)
    else:
        weight = credible(covariance, count)
        scale = jnp.linalg.cholesky(weight * covariance + (1 - weight) * jnp.diag(variances))
    learned = jnp.all(jnp.isfinite(scale)) & (floor > jnp.finfo(mean.dtype).tiny)
    return adaptation._replace(scale=jnp.where(learned, scale, adaptation.scale)), learned
