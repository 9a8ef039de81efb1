"""A posterior made from a model of another library, and the proof that its rows stand alone.

Mini-batches need log p(y | theta) = sum_i l_i(theta), each l_i computable from row i. A library writes the whole
sum; a bridge runs its model on some rows instead. Whether that gives the same l_i is not to be seen from the model (one
that standardises its covariates by their own mean gives others), so it is tried: at several points, on batches of
one row and of some, values and directional derivatives must be those of the whole model. Derivatives too, because a
large constant in l_i hides a small error of what matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from threading import RLock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.data import Rows
from mintmc.params import Params
from mintmc.posterior import Posterior
from mintmc.transforms import Coordinates

ONE_AT_A_TIME = RLock()
"""Held while another library works on a model: what it keeps for a process, threads would mix up."""
_POINTS = 2
"""At which rows are compared: two, since at one an error may vanish by chance."""
_RADII = (1.0, 1.0, 0.3, 0.1, 0.03, 0.0)
"""How far from the start such points may lie, in coordinates without bounds, until enough are found."""
_SOME = 7
"""Rows of the larger batch that is tried: not a size that anything else has."""
_CLOSE = 1e-3
"""Of two computations in float32, relative; a mistake changes the first digit."""


@dataclass(frozen=True)
class Parts:
    """What a bridge finds in a model."""

    log_likelihood: Callable[[Params, Rows], Array]  # one for each of some rows
    rows: Rows
    log_prior: Callable[[Params], Array]
    init: Params
    sample_prior: Callable[[Array], Params]
    transforms: Mapping[str, Any] = field(default_factory=dict)
    deterministics: Callable[[Params], Mapping[str, Any]] | None = None
    dims: Mapping[str, Sequence[str]] = field(default_factory=dict)
    coords: Mapping[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def take(self, batch: np.ndarray) -> Rows:
        """Some rows, by their numbers."""
        return jax.tree.map(lambda leaf: leaf[batch], self.rows)


class ModelPosterior(Posterior):
    """A ``Posterior`` from a model of another library: what ``from_numpyro`` and ``from_pymc`` return.

    Attributes
    ----------
    init
        Where chains may start: a dict from the model's names to values in its own, constrained space.
    left_out
        Names of deterministic variables that belong to rows, which no draw holds.
    """

    def __init__(self, parts: Parts):
        super().__init__(
            parts.log_likelihood,
            parts.rows,
            parts.log_prior,
            transforms=parts.transforms or None,
            batched=True,
            deterministics=parts.deterministics,
            dims=parts.dims,
            coords=parts.coords,
        )
        self.init = parts.init
        self.left_out = parts.left_out
        self._sample_prior = parts.sample_prior

    def sample_prior(self, key: Array) -> Params:
        """One draw of the parameters from the prior; ``init=posterior.sample_prior`` starts every chain at its own."""
        return check.called("sample_prior", self._sample_prior, key)


def imported(package: str, extra: str) -> Any:
    """An optional package; an error says how to get it."""
    try:
        return import_module(package)
    except ImportError as error:
        name = package.split(".")[0]
        raise ImportError(f"models of {name} need it installed: pip install 'mintmc[{extra}]'") from error


def points(init: Params, transforms: Mapping[str, Any]) -> Iterator[tuple[Params, Params]]:
    """Params around a start, by and by nearer to it, each with a direction to differentiate in."""
    coordinates = Coordinates(transforms)
    start = coordinates.free(jax.tree.map(jnp.asarray, init))
    generator = np.random.default_rng(0)
    for radius in _RADII:
        there, step = (
            jax.tree.map(lambda leaf: jnp.asarray(generator.uniform(-1, 1, leaf.shape), leaf.dtype), start)
            for _ in range(2)
        )
        there = jax.tree.map(partial(_moved, radius), start, there)
        yield jax.jvp(coordinates.constrain, (there,), (step,))


def _moved(size: float, start: Array, step: Array) -> Array:
    return start + size * step


def check_rows(parts: Parts, whole: Callable[[Params], Array], n: int, advice: str) -> None:
    """Refuse a model whose rows, some of them taken alone, have other log-likelihoods than in the whole model."""
    some = np.random.default_rng(1).permutation(n)[:_SOME]
    batches = [some, some[:1], some[-1:]]
    for batch in batches:  # shapes first, which take no compiling
        each = check_runs(partial(jax.eval_shape, parts.log_likelihood, parts.init, parts.take(batch)), advice)
        if each.shape != batch.shape:
            raise ValueError(f"{advice}, got log-likelihoods of shape {each.shape} for {len(batch)} rows")
    of_all, of_some = jax.jit(_with_slope(whole)), jax.jit(_with_slope(parts.log_likelihood))
    found = 0
    for params, step in points(parts.init, parts.transforms):
        wanted = jax.tree.map(np.asarray, of_all(params, step))
        if wanted[0].shape != (n,):
            raise ValueError(f"model must give one log-likelihood for each of n={n} rows, got shape {wanted[0].shape}")
        if not all(np.isfinite(values[some]).all() for values in wanted):
            continue
        for batch in batches:
            got = of_some(params, step, parts.take(batch))
            for one, other in zip(got, wanted, strict=True):
                if not alike(one, other[batch]):
                    told = f"{float(one[0]):g} for row {batch[0]} alone and {other[batch][0]:g} among all"
                    raise ValueError(f"{advice}, got {told}")
        found += 1
        if found == _POINTS:
            return
    if not found:
        raise ValueError("model must have a finite log-likelihood around its start, got none that is")


def check_runs(run: Callable[[], Any], advice: str) -> Any:
    """What a model gives on some rows; refuses one that needs all."""
    try:
        return run()
    except Exception as error:  # whatever a user's model may raise
        raise ValueError(f"{advice}, got {check.first_line(error)}") from error


def alike(one: Any, other: Any) -> bool:
    """Whether two computations of the same agree, as far as their precision goes."""
    one, other = (np.asarray(value) for value in (one, other))
    if one.shape != other.shape:
        return False
    if other.dtype.kind not in "fc":
        return bool((one == other).all())
    largest = np.abs(other[np.isfinite(other)]).max(initial=0.0)
    return np.allclose(one, other, rtol=_CLOSE, atol=float(1e-2 * _CLOSE * largest), equal_nan=True)


def check_present(what: str, values: Any) -> None:
    """Refuse missing observations."""
    if isinstance(values, np.ma.MaskedArray) and values.mask.any():
        row = np.argwhere(np.ma.getmaskarray(values))[0, 0]
        raise ValueError(f"{what} must have no missing values, got a masked one in row {row}")
    array = np.asarray(values)
    if array.dtype.kind == "f" and np.isnan(array).any():
        missing = np.argwhere(np.isnan(array))
        row = missing[0, 0] if array.ndim else 0
        raise ValueError(f"{what} must have no missing values, got nan in row {row} ({len(missing)} such values)")


def _with_slope(function: Callable[..., Array]) -> Callable[..., tuple[Array, Array]]:
    """A function of params, and its derivative along a step."""

    def both(params: Params, step: Params, *args: Any) -> tuple[Array, Array]:
        value, slope = jax.jvp(lambda params: function(params, *args), (params,), (step,))
        return value, slope

    return both
