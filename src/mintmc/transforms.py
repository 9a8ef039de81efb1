"""Constrained parameters: a user writes and reads them as they are, chains move in coordinates without bounds.

The maps are NumPyro's, or anything of that form. With y = t(x), x without bounds, the density of x is that of y times
|dt/dx|. The factor belongs to the coordinates: it is never tempered, so that the law of y at any temperature is the
same in whatever coordinates the chain moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.params import Params, named

_NAMES = ("positive", "unit", "interval", "ordered", "simplex", "correlation")
_CLOSE = 1e-3


@dataclass(frozen=True)
class Coordinates:
    """The map from coordinates without bounds to params, leaf by leaf; leaves without a transform stay as they are."""

    transforms: Mapping[str, Any] = field(default_factory=dict)  # by the name of a parameter

    @classmethod
    def of(cls, given: Any) -> Coordinates:
        """From what a user wrote."""
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            raise TypeError(f"transforms must be a dict from names of parameters, got {check.shown(given)}")
        return cls({name: _transform(name, what) for name, what in given.items()})

    def constrain(self, free: Params) -> Params:
        """Params from coordinates without bounds."""
        return self._each(free, lambda transform, leaf: transform(leaf))

    def free(self, params: Params) -> Params:
        """The other way."""
        return self._each(params, lambda transform, leaf: transform.inv(leaf))

    def after(self, as_free: Callable[[Array], Params]) -> Callable[[Array], Params]:
        """Params from flat vectors, by way of coordinates without bounds."""
        return lambda theta: self.constrain(as_free(theta))

    def log_jacobian(self, free: Params) -> Array:
        """Log |d params / d free|."""
        leaves = dict(named(free))
        terms = [
            jnp.sum(transform.log_abs_det_jacobian(leaves[name], transform(leaves[name])))
            for name, transform in self.transforms.items()
        ]
        return jnp.asarray(sum(terms))

    def check(self, argument: str, params: Params) -> None:
        """Refuse params that a transform cannot give, and transforms of what is no parameter."""
        leaves = dict(named(params))
        for name, transform in self.transforms.items():
            if name not in leaves:
                raise ValueError(f"transforms must name parameters of {argument}, {sorted(leaves)}, got {name!r}")
            leaf = jnp.asarray(leaves[name])
            try:
                free = transform.inv(leaf)
                back = np.asarray(transform(free))
                fits = np.isfinite(free).all() and back.shape == leaf.shape
                fits = fits and np.allclose(back, leaf, rtol=_CLOSE, atol=_CLOSE)
            except Exception:  # a transform may object to a shape in its own words
                fits = False
            if not fits:
                value = check.shown(np.asarray(leaf).tolist())
                raise ValueError(f"{argument}[{name!r}] must lie where its transform leads, {transform}, got {value}")

    def _each(self, params: Params, function: Callable[[Any, Any], Any]) -> Params:
        if not self.transforms:
            return params
        names = [name for name, _ in named(params)]
        leaves, structure = jax.tree.flatten(params)
        mapped = [
            function(self.transforms[name], leaf) if name in self.transforms else leaf
            for name, leaf in zip(names, leaves, strict=True)
        ]
        return jax.tree.unflatten(structure, mapped)


def _transform(name: Any, what: Any) -> Any:
    """A map by its name, or as it is."""
    if all(hasattr(what, part) for part in ("inv", "log_abs_det_jacobian")) and callable(what):
        return what
    word, *bounds = what if isinstance(what, tuple) and what else (what,)
    if not isinstance(word, str) or word not in _NAMES or len(bounds) != (2 if word == "interval" else 0):
        known = ", ".join(repr(each) for each in _NAMES if each != "interval")
        raise ValueError(
            f"transforms[{name!r}] must be {known}, ('interval', low, high), or a transform of NumPyro, got "
            f"{check.shown(what)}"
        )
    try:
        from numpyro.distributions import biject_to, constraints
    except ImportError as error:
        raise ImportError("transforms need NumPyro: pip install 'mintmc[numpyro]'") from error
    if word == "interval":
        low, high = (check.number(f"transforms[{name!r}]", bound, -math.inf) for bound in bounds)
        if not low < high:
            raise ValueError(f"transforms[{name!r}] must be an interval from low to high, got {check.shown(what)}")
        return biject_to(constraints.interval(low, high))
    constraint = {
        "positive": constraints.positive,
        "unit": constraints.unit_interval,
        "ordered": constraints.ordered_vector,
        "simplex": constraints.simplex,
        "correlation": constraints.corr_cholesky,
    }[word]
    return biject_to(constraint)
