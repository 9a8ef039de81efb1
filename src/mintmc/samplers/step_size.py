"""Step size and friction of stochastic-gradient samplers, from the curvature at the mode and the noise of gradients.

Where pi_T is normal with precision H and the batch gradient has covariance V, the covariance of the draws is known
(``result/steps.py``; for SGLD in one dimension (1/H) (1 + eps V/4) / (1 - eps H/4)). The step is the largest at which
no direction's variance is off by more than a twentieth. It is exact for a normal posterior and a guess for others;
``diagnose`` tells what became of it.

Friction: 2 sqrt(smallest eigenvalue of H), the critical one of the slowest direction. Where noise limits the step, more
friction allows a larger one and forgets as slowly.

What it costs: the slowest direction forgets by exp(-1) in as many steps as -1 / log(spectral radius of the update).
Without control variates V / H is about n / m, so that many thousand steps are the rule for small batches.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np

from mintmc.control import laplace
from mintmc.control.laplace import curvature
from mintmc.energy import Tempered
from mintmc.kernels.schedule import largest_step
from mintmc.modes.find import mode_of
from mintmc.modes.search import NoModeError, NotConvergedError
from mintmc.result.steps import MOST_PARAMETERS, ROWS_FOR_NOISE, gradient_noise, stationary
from mintmc.run.settle import Setting, Settled

ERROR = 0.05
"""Of a variance, in the worst direction."""
_HALVINGS, _RANGE = 24, 27.0
"""Of the logarithm of a step, which is sought down to 1e-12 of the one that diverges."""
_STATES = 8
"""Around the mode, at which the noise of controlled gradients is measured: at the mode itself there is none."""
_ENOUGH = 10
"""Times that a run should forget where it was, at least."""


class Surroundings(NamedTuple):
    """What the choice depends on."""

    precision: np.ndarray  # H
    noise: np.ndarray  # V


def choose(sampler: Any, setting: Setting) -> Settled:
    """The sampler with its step, and its friction where it has one."""
    flat = setting.posterior.flat(setting.example)
    if flat.dim > MOST_PARAMETERS:
        raise ValueError(f"step_size must be given for more than {MOST_PARAMETERS} parameters, got None for {flat.dim}")
    try:
        mode = mode_of(flat, setting.thetas[0], seed=setting.seed)
    except (NoModeError, NotConvergedError) as error:
        raise ValueError(f"step_size must be given where no mode is found, got None: {error}") from error
    target = Tempered(flat.model, sampler.target_temperature(flat.n), sampler.temper)
    around, read = _surroundings(sampler, setting, flat, target, mode)
    chosen = _begun(sampler, around)
    if chosen.step_size is None:
        chosen = replace(chosen, step_size=_largest(chosen, flat, around))
    return Settled(chosen, mode.rows_read + read, _said(chosen, flat, around, setting))


def _surroundings(sampler: Any, setting: Setting, flat: Any, target: Tempered, mode: Any) -> tuple[Surroundings, int]:
    """Curvature and noise, and the rows that were read for the latter."""
    precision, centre = curvature(target, mode.expansion), mode.expansion.centre
    kernel, own = _kernel(sampler, flat, 1e-30), laplace(target, mode.expansion)
    if own is None:
        raise ValueError("step_size must be given where the mode is not curved in all directions, got None")
    if sampler.control is None:
        noise = gradient_noise(setting.posterior, kernel, centre, setting.seed)
        return Surroundings(precision, noise), min(flat.n, ROWS_FOR_NOISE)
    expansion = mode.expansion if sampler.control.order == 2 else mode.expansion._replace(hessian=None)
    normal = jax.random.normal(jax.random.key(setting.seed), (_STATES, flat.dim), centre.dtype)
    states = centre + normal @ own.factor.T
    each = [gradient_noise(setting.posterior, kernel, state, setting.seed, expansion) for state in states]
    return Surroundings(precision, np.mean(each, axis=0)), _STATES * min(flat.n, ROWS_FOR_NOISE)


def _begun(sampler: Any, around: Surroundings) -> Any:
    """With the friction chosen, for a step that may be given."""
    if getattr(sampler, "friction", 0.0) is not None:
        return sampler
    friction = 2 * float(np.sqrt(np.linalg.eigvalsh(around.precision)[0]))
    if sampler.step_size is not None:
        step = largest_step(sampler.step_size)
        friction = float(np.clip(friction, step * np.max(sampler.noise_estimate) / 2, 1 / step))
    return replace(sampler, friction=friction)


def _kernel(sampler: Any, flat: Any, step: float) -> Any:
    """A kernel of the sampler with this step; its friction may still be open."""
    friction = {} if getattr(sampler, "friction", 0.0) is not None else {"friction": 1.0}
    return replace(sampler, step_size=step, **friction).kernel(flat)


def _worst(sampler: Any, flat: Any, step: float, around: Surroundings) -> float:
    """The largest relative error of a variance; inf where the chain diverges, or friction does not suit the step."""
    friction = getattr(sampler, "friction", None)
    noise = np.max(getattr(sampler, "noise_estimate", 0.0))
    if friction is not None and not step * noise / 2 <= friction <= 1 / step:
        return float("inf")
    update, pushed = _kernel(sampler, flat, step).linear_update(step, *around)
    if not np.abs(np.linalg.eigvals(update)).max() < 1:
        return float("inf")
    values, vectors = np.linalg.eigh(around.precision)
    root = vectors * np.sqrt(values) @ vectors.T
    found = stationary(update, pushed)[: flat.dim, : flat.dim]
    return float(np.abs(np.linalg.eigvalsh(root @ found @ root) - 1).max())


def _largest(sampler: Any, flat: Any, around: Surroundings) -> float:
    """The largest step whose error is small enough, by bisection of its logarithm: errors grow with the step."""
    if hasattr(sampler, "friction"):
        high = float(np.log(2) - np.log(np.linalg.eigvalsh(around.precision)[-1]) / 2)
    else:
        # The update by a step of 1 is 1 - M H / 2; it diverges from a step of 4 / (M H) on.
        update, _ = _kernel(sampler, flat, 1.0).linear_update(1.0, *around)
        high = float(np.log(4) - np.log(2 * np.abs(1 - np.linalg.eigvals(update)).max()))
    low = least = high - _RANGE
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_small = _worst(sampler, flat, float(np.exp(middle)), around) <= ERROR
        low, high = (middle, high) if is_small else (low, middle)
    if low == least:
        raise ValueError("step_size must be given where batches are so noisy that no step will do, got None")
    return float(np.exp(low))


def _said(sampler: Any, flat: Any, around: Surroundings, setting: Setting) -> str:
    """What was chosen and what it will cost, in one line."""
    step = largest_step(sampler.step_size)
    worst = _worst(sampler, flat, step, around)
    update, _ = _kernel(sampler, flat, step).linear_update(step, *around)
    radius = min(float(np.abs(np.linalg.eigvals(update)).max()), 1 - 1e-15)
    forgets = max(1.0, -1 / np.log(radius))
    friction = f", friction {sampler.friction:.3g}" if hasattr(sampler, "friction") else ""
    said = f"step {step:.3g}{friction} chosen: variances off by {worst:.1%} at most, forgets in {forgets:,.0f} steps"
    if forgets * _ENOUGH > setting.steps:
        noisy = np.trace(np.linalg.solve(around.precision, around.noise)) / flat.dim
        why = "noise of gradients" if noisy > 1 else "unequal scales"
        advice = "larger batches or control=Taylor()" if noisy > 1 else "a preconditioner"
        said += f"; that is too long for {setting.steps:,} steps ({why}: {advice} would help)"
    return said
