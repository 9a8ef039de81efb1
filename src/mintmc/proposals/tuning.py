"""Step size and preconditioner: what warm-up adapts and the draws keep fixed.

A proposal moves in whitened coordinates and is carried over by ``scale``, a square root S of the preconditioner
C = S S': nothing (C = 1), a vector (diagonal) or a lower-triangular matrix (dense).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.control.laplace import Laplace

ADAPTED = ("diagonal", "dense")
LAPLACE = "laplace"
AUTO = "auto"
_MOST_DENSE = 50
"""Parameters whose covariance a warm-up of usual length tells."""

Preconditioner = str | Any | None
"""None, "diagonal" or "dense" (adapted in warm-up), "laplace" (the inverse curvature at the mode), a vector of
variances or a covariance matrix (given)."""


class Tuning(NamedTuple):
    """What a proposal needs to know of the target."""

    step_size: Array
    scale: Array | None  # None, (d,) or (d, d) lower triangular
    laplace: Laplace | None = None  # for proposals around it
    modes: Any = None  # a Landscape, for leaps
    path: Any = None  # the longest trajectory worth its cost, in whitened coordinates; None if nobody knows


def suited(given: Preconditioner, step_size: float | None, dim: int, several_modes: bool) -> Preconditioner:
    """What "auto" stands for: as much as warm-up can tell; nothing where it would be told of several modes at once."""
    if not isinstance(given, str) or given != AUTO:
        return given
    if several_modes or step_size is not None:
        return None
    return "dense" if dim <= _MOST_DENSE else "diagonal"


def spread(scale: Array | None, vector: Array) -> Array:
    """S v: from whitened coordinates to those of the parameters."""
    if scale is None:
        return vector
    return scale * vector if scale.ndim == 1 else scale @ vector


def gather(scale: Array | None, gradient: Array) -> Array:
    """S' g: a gradient in whitened coordinates."""
    if scale is None:
        return gradient
    return scale * gradient if scale.ndim == 1 else scale.T @ gradient


def initial_scale(preconditioner: Preconditioner, dim: int, dtype: Any) -> Array | None:
    """The square root to start from: what was given, or the identity to be adapted."""
    if preconditioner is None:
        return None
    if isinstance(preconditioner, str):
        return jnp.ones(dim, dtype) if preconditioner == "diagonal" else jnp.eye(dim, dtype=dtype)
    given = np.asarray(preconditioner, dtype=float)
    if given.shape not in ((dim,), (dim, dim)):
        raise ValueError(
            f"preconditioner must have shape ({dim},) or ({dim}, {dim}) for {dim} parameters, got {given.shape}"
        )
    return jnp.asarray(np.sqrt(given) if given.ndim == 1 else np.linalg.cholesky(given), dtype)


def check_preconditioner(value: Preconditioner, words: tuple[str, ...] = (*ADAPTED, LAPLACE)) -> None:
    """Refuse what can be no covariance."""
    if value is None:
        return
    if isinstance(value, str):
        if value not in words:
            allowed = f"None, {', '.join(map(repr, words))} or an array"
            raise ValueError(f"preconditioner must be {allowed}, got {check.shown(value)}")
        return
    given = check.array("preconditioner", value, "a vector of variances or a covariance matrix", dims=(1, 2))
    got = check.shown(value)
    if given.size == 0:
        raise ValueError(f"preconditioner must not be empty, got {got}")
    if given.ndim == 1 and not (given > 0).all():
        raise ValueError(f"preconditioner must have positive variances, got {got}")
    if given.ndim == 2:
        if given.shape[0] != given.shape[1] or not np.allclose(given, given.T):
            raise ValueError(f"preconditioner must be a symmetric matrix, got {got}")
        if np.linalg.eigvalsh(given)[0] <= 0:
            raise ValueError(f"preconditioner must be positive definite, got {got}")
