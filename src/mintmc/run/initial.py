"""Where chains start: one point for all, a function of a key, or one point for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.data import named_leaves
from mintmc.posterior import Params, Posterior, flatten
from mintmc.result.tree import check_names

_ROWS_TO_TRY = 10_000


@dataclass(frozen=True)
class PerChain:
    """Initial params with a leading axis of chains.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> init = mintmc.PerChain({"mean": np.array([-1.0, 1.0])})   # two chains
    """

    params: Any


def initial_states(init: Any, chains: int, key: Array) -> tuple[list[Array], Callable[[Array], Params], Params]:
    """A flat vector for each chain, the function back to params, and the first chain's params."""
    if isinstance(init, PerChain):
        each = _split(init.params, chains)
    elif callable(init):
        each = [check.called("init", init, jax.random.fold_in(key, chain)) for chain in range(chains)]
    else:
        each = [init] * chains
    name = "init(key)" if callable(init) else "init"
    flat = [flatten(params, name) for params in each]
    shapes = [jax.tree.map(jnp.shape, params) for params in each]
    for other in shapes[1:]:
        if other != shapes[0]:
            raise ValueError(f"{name} must give params of one shape, {shapes[0]}, got {check.shown(other)}")
    check_names(name, each[0])
    return [theta for theta, _ in flat], flat[0][1], each[0]


def check_start(posterior: Posterior, thetas: list[Array], unravel: Callable[[Array], Params]) -> None:
    """Refuse a log density that is not a scalar, or not finite where a chain starts (on at most 10,000 rows)."""
    posterior.check_functions(unravel(thetas[0]), "init")
    prior_name = "log_prior" if posterior.data else "log_density"
    model = posterior.model(unravel, thetas[0].size)
    distinct = {theta.tobytes(): theta for theta in map(np.asarray, thetas)}.values()
    for theta in distinct:
        prior = float(model.log_prior(jnp.asarray(theta)))
        if not np.isfinite(prior):
            at = check.shown(unravel(jnp.asarray(theta)))
            raise ValueError(f"{prior_name} must be finite at init, got {prior} at {at}")
    if posterior.data is None or posterior.log_likelihood is None:
        return
    some = posterior.data.read(0, min(_ROWS_TO_TRY, posterior.n))
    each = jax.jit(model.each)
    for theta in distinct:
        values = np.asarray(each(theta, some))
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            at = check.shown(unravel(jnp.asarray(theta)))
            raise ValueError(f"log_likelihood must be finite at init, got {values[row]} for row {row} at {at}")


def _split(params: Params, chains: int) -> list[Params]:
    for name, leaf in named_leaves(params, "init"):
        shape = check.array(f"init{name}", leaf, "an array of floats").shape
        if not shape or shape[0] != chains:
            raise ValueError(f"init{name} must have a leading axis of chains={chains}, got shape {shape}")
    return [jax.tree.map(lambda leaf, i=i: np.asarray(leaf)[i], params) for i in range(chains)]
