"""Where chains start: around one point, at a function of a key, or at one point for each."""

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
from mintmc.flat import FlatTarget
from mintmc.params import Params, as_floats, flatten, is_params
from mintmc.posterior import Posterior
from mintmc.result.tree import check_names

_ROWS_TO_TRY = 10_000
_HALVINGS = 20


@dataclass(frozen=True)
class PerChain:
    """Initial params with a leading axis of chains.

    Parameters
    ----------
    params
        Each leaf with a leading axis of chains.
    apart
        False if they lie around one point, as those of a run that is resumed may: chains that agree then say nothing
        about modes that none of them reached.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> init = mintmc.PerChain({"mean": np.array([-1.0, 1.0])})   # two chains
    """

    params: Any
    apart: bool = True

    def __post_init__(self) -> None:
        check.flag("apart", self.apart)


def initial_states(posterior: Posterior, init: Any, chains: int, key: Array) -> tuple[list[Array], Params]:
    """A flat vector for each chain, and the first chain's params."""
    if isinstance(init, PerChain):
        each = _split(init.params, chains)
    elif not is_params(init):
        each = [check.called("init", init, jax.random.fold_in(key, chain)) for chain in range(chains)]
    else:
        each = [init] * chains
    name = "init" if is_params(init) else "init(key)"
    each = [as_floats(params, name) for params in each]
    for params in each:
        flatten(params, name)
    shapes = [jax.tree.map(jnp.shape, params) for params in each]
    for other in shapes[1:]:
        if other != shapes[0]:
            raise ValueError(f"{name} must give params of one shape, {shapes[0]}, got {check.shown(other)}")
    check_names(name, each[0])
    return [posterior.vector(params, name) for params in each], each[0]


def is_one_point(init: Any) -> bool:
    """Whether it is one params pytree, for all chains."""
    return not isinstance(init, PerChain) and is_params(init)


def starts_apart(init: Any) -> bool:
    """Whether the user chose where each chain starts, so that their agreement tells something about other modes."""
    return init.apart if isinstance(init, PerChain) else not is_params(init)


class Start:
    """Where chains may start: refuses a log density that is not a scalar, or not finite (on at most 10,000 rows)."""

    def __init__(self, target: FlatTarget):
        posterior, model = target.posterior, target.model
        self.unravel = target.unravel
        self.without_data = target.compiled(("without data",), lambda: jax.jit(model.without_data))
        self.prior_name = "log_prior" if posterior.data else "log_density"
        self.each: Callable[[Array], np.ndarray] | None = None
        if posterior.data is None or posterior.log_likelihood is None:
            return
        some = posterior.data.read(0, min(_ROWS_TO_TRY, posterior.n))
        each = target.compiled(("each",), lambda: jax.jit(model.each))
        self.each = lambda theta: np.asarray(each(theta, some))

    def check(self, theta: Array) -> None:
        """Refuse a point where a chain cannot start."""
        if fault := self.fault(theta):
            at = jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), self.unravel(theta))
            raise ValueError(f"{fault} at {check.shown(at)}")

    def fault(self, theta: Array) -> str | None:
        """What speaks against starting at a point, in words."""
        prior, jacobian = self.without_data(theta)
        for name, value in ((self.prior_name, prior), ("log_jacobian", jacobian)):
            if value is not None and not np.isfinite(value):
                return f"{name} must be finite at init, got {value}"
        values = np.zeros(0) if self.each is None else self.each(theta)
        wrong = np.flatnonzero(~np.isfinite(values))
        return (
            f"log_likelihood must be finite at init, got {values[wrong[0]]} for row {wrong[0]}" if wrong.size else None
        )

    def dispersed(self, thetas: list[Array], scale: float, key: Array) -> list[Array]:
        """The first point as it is, the others shifted by normal numbers of this scale, or halves of it that fit."""
        apart = thetas[:1]
        for chain, theta in enumerate(thetas[1:], start=1):
            shift = scale * jax.random.normal(jax.random.fold_in(key, chain), theta.shape, theta.dtype)
            tries = (theta + shift / 2**halvings for halvings in range(_HALVINGS))
            apart.append(next((there for there in tries if self.fault(there) is None), theta))
        return apart


def _split(params: Params, chains: int) -> list[Params]:
    for name, leaf in named_leaves(params, "init"):
        shape = check.array(f"init{name}", leaf, "an array of floats").shape
        if not shape or shape[0] != chains:
            raise ValueError(f"init{name} must have a leading axis of chains={chains}, got shape {shape}")
    return [jax.tree.map(lambda leaf, i=i: np.asarray(leaf)[i], params) for i in range(chains)]
