"""How far steps and gradient noise take stochastic-gradient draws from their target, by linear theory.

Where pi_T is normal with precision H and the batch gradient has covariance V, SGLD and SGHMC are linear updates
x <- A x + N(0, Q), whose stationary covariance S solves S = A S A' + Q. With H and V measured at the mean of the draws
on all data (V on at most 2^14 rows), the eigenvalues of H^(1/2) S H^(1/2) are what the draws' variances are too large
by. That is exact for a normal posterior, and an estimate for any other.

Where there are too many parameters for d x d matrices, or the mean is no mode, the draws themselves are asked: every
smooth density obeys E[(theta - mean)' grad(-log pi_T)] = d, and draws that are too wide exceed it by the factor of
their variances, on average over all directions.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mintmc.control import Expansion, residual_gradient
from mintmc.energy import Model, Tempered
from mintmc.kernels.sghmc import SGHMCKernel
from mintmc.kernels.sgld import SGLDKernel
from mintmc.posterior import Posterior

MOST_PARAMETERS = 200
"""Beyond which the d x d matrices, and the 2d x 2d of momentum, are too dear."""
ROWS_FOR_NOISE = 2**14
"""That tell the covariance of a gradient."""
_BLOCK = 2**13
_DRAWS_ASKED = 64
_STATES_FOR_NOISE = 8


def audit_steps(
    posterior: Posterior,
    kernel: SGLDKernel | SGHMCKernel,
    draws: np.ndarray,
    step_size: float,
    seed: int,
    control: Expansion | None = None,
) -> dict[str, Any]:
    """The error of the spread: in the direction where it is largest, or (``equipartition``) on average over all.

    ``control`` is the expansion of a controlled target.
    """
    facts = {"step_size": step_size, "temperature": float(kernel.target.temperature)}
    if kernel.dim > MOST_PARAMETERS:
        return {**facts, **_equipartition(posterior, kernel, draws)}
    centre = jnp.asarray(draws.mean(axis=0), kernel.dtype)
    precision = _precision(posterior, kernel.target, centre)
    if control is None:
        noise = gradient_noise(posterior, kernel, centre, seed)
    else:
        # Residuals vanish at the centre: asked for where the draws are.
        some = draws[np.linspace(0, len(draws) - 1, min(_STATES_FOR_NOISE, len(draws)), dtype=int)]
        states = [jnp.asarray(state, kernel.dtype) for state in some]
        noise = np.mean([gradient_noise(posterior, kernel, state, seed, control) for state in states], axis=0)
    facts["data_touched"] = kernel.dim * posterior.n + min(posterior.n, ROWS_FOR_NOISE)
    values, vectors = np.linalg.eigh(np.nan_to_num(precision))
    if values[0] <= 0:
        return {**facts, **_equipartition(posterior, kernel, draws)}
    update, pushed = kernel.linear_update(step_size, precision, noise)
    if np.abs(np.linalg.eigvals(update)).max() >= 1:
        return {**facts, "kind": "steps", "spread": float("inf"), "spread_error": 0.0}
    settled = stationary(update, pushed)[: kernel.dim, : kernel.dim]
    root = vectors * np.sqrt(values) @ vectors.T
    ratios = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ settled @ root), 0)) - 1
    worst = float(ratios[np.argmax(np.abs(ratios))])
    return {**facts, "kind": "steps", "spread": worst, "spread_error": 0.0}


def _equipartition(posterior: Posterior, kernel: SGLDKernel | SGHMCKernel, draws: np.ndarray) -> dict[str, Any]:
    """The same from exact gradients at some draws."""
    some = draws[np.linspace(0, len(draws) - 1, min(_DRAWS_ASKED, len(draws)), dtype=int)].astype(kernel.dtype)
    gradient = jax.jit(lambda theta: kernel.target.full_gradient(theta, posterior.rows)[1])
    gradients = np.stack([np.asarray(gradient(jnp.asarray(theta)), float) for theta in some])
    shares = -np.sum((some - draws.mean(axis=0)) * gradients, axis=1) / kernel.dim
    ratio, error = shares.mean(), shares.std(ddof=1) / len(shares) ** 0.5
    root = np.sqrt(max(ratio, 1e-12))
    touched = len(some) * posterior.n
    return {
        "kind": "equipartition",
        "spread": float(root - 1),
        "spread_error": float(error / (2 * root)),
        "data_touched": touched,
    }


def _precision(posterior: Posterior, target: Tempered, centre: Any) -> np.ndarray:
    """The curvature of -log pi_T at a state, on all data."""
    model, n, size = target.model, posterior.n, min(_BLOCK, posterior.n)
    hessian = jax.jit(jax.hessian(lambda at, rows, keep: jnp.sum(model.each(at, rows) * keep)))
    data: Any = posterior.data
    total = np.zeros((centre.size, centre.size))
    for first in range(0, n, size):
        # The last block is moved up to end at row n; what it shares with its neighbour does not count.
        start = min(first, n - size)
        keep = (np.arange(size) >= first - start).astype(centre.dtype)
        total += np.asarray(hessian(centre, data.read(start, start + size), keep), np.float64)
    prior = np.asarray(jax.hessian(target.prior)(centre), float)
    result: np.ndarray = -(total / float(target.temperature) + prior)
    return result


def gradient_noise(
    posterior: Posterior, kernel: SGLDKernel | SGHMCKernel, theta: Any, seed: int, control: Expansion | None = None
) -> np.ndarray:
    """The covariance, over the choice of batch, of the gradient of log pi_T at a state."""
    n, m, target = posterior.n, kernel.batch_size, kernel.target
    if m == n:
        return np.zeros((kernel.dim, kernel.dim))
    data: Any = posterior.data
    some = np.random.default_rng(seed).choice(n, min(n, ROWS_FOR_NOISE), replace=False)
    each = jax.vmap(partial(_row_gradient, target.model, control), (None, 0))
    gradients = np.asarray(jax.jit(each)(theta, data.take(some)), np.float64)
    covariance: np.ndarray = np.atleast_2d(np.cov(gradients.T))
    scaled: np.ndarray = (n / float(target.temperature)) ** 2 * covariance / m * (1 - m / n)
    return scaled


def _row_gradient(model: Model, control: Expansion | None, theta: Any, datum: Any) -> Any:
    """The gradient of one row's log-likelihood, less its expansion if there is one."""
    if control is None:
        return jax.grad(model.log_likelihood)(theta, datum)
    return residual_gradient(model, control, theta, jax.tree.map(lambda leaf: leaf[None], datum))


def stationary(update: np.ndarray, pushed: np.ndarray) -> np.ndarray:
    """Solve S = A S A' + Q by doubling: S_2k = S_k + A^k S_k A^k'."""
    total, power = pushed, update
    while np.abs(power).max() > 1e-12:
        total = total + power @ total @ power.T
        power = power @ power
    return total
