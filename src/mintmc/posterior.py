"""The posterior: what a user must write."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from mintmc import check
from mintmc.data import ArrayData, DiskData, Rows, named_leaves, open_data, row_count
from mintmc.energy import Density, Model, Referenced, block_size

_ROWS_AT_A_TIME = 2**16

Params = Any
"""A pytree of float arrays: one point of the parameter space."""


class Posterior:
    """Log-likelihood of one observation, the observations, and a prior.

    Parameters
    ----------
    log_likelihood
        ``(params, datum) -> scalar``, written with ``jax.numpy``; ``datum`` is one row of ``data``.
    data
        An array, or a pytree of arrays, with one leading axis of length n; or data on disk: a path, a memory map, a
        Zarr array, or what ``mintmc.open_data`` returns.
    log_prior
        ``params -> scalar``; None is a flat prior. Where it is -inf the likelihood may be anything, even NaN.
    log_jacobian
        ``params -> scalar``: log |d constrained / d params|, if params are a transform of what the prior is written in
        (a rate on its logarithm, say). It belongs to the coordinates, so no sampler ever tempers it, and it is no part
        of the energy. A Jacobian inside ``log_prior`` is tempered with the prior, and the law then depends on the
        parametrisation.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(1.0, 1.0, size=1000)
    >>> posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    >>> posterior.n
    1000
    >>> posterior.energy(2.0) > posterior.energy(1.0)
    True
    """

    def __init__(
        self,
        log_likelihood: Callable[[Params, Any], Array],
        data: Rows,
        log_prior: Callable[[Params], Any] | None = None,
        *,
        log_jacobian: Callable[[Params], Any] | None = None,
    ):
        self.log_likelihood: Callable | None = check.function("log_likelihood", log_likelihood)
        self.log_prior = _flat if log_prior is None else check.function("log_prior", log_prior)
        self.log_jacobian = _checked_jacobian(log_jacobian)
        self.data: ArrayData | DiskData | None = _source(data)

    @classmethod
    def from_density(
        cls, log_density: Callable[[Params], Array], log_jacobian: Callable[[Params], Any] | None = None
    ) -> Posterior:
        """A target without data, given by its log density: for full-batch samplers and ladders.

        ``log_jacobian`` is as for ``Posterior``: a factor of the target that is never tempered.

        Examples
        --------
        >>> import mintmc
        >>> density = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
        >>> density.n, density.energy(2.0)
        (0, 2.0)
        """
        posterior = cls.__new__(cls)
        posterior.log_likelihood = None
        posterior.log_prior = check.function("log_density", log_density)
        posterior.log_jacobian = _checked_jacobian(log_jacobian)
        posterior.data = None
        return posterior

    @property
    def n(self) -> int:
        """The number of observations; 0 for a density without data."""
        return 0 if self.data is None else self.data.n

    @property
    def has_prior(self) -> bool:
        """Whether a prior was given beside a likelihood."""
        return self.log_likelihood is not None and self.log_prior is not _flat

    def energy(self, params: Params) -> float:
        """``-(log prior + sum of log-likelihoods)`` on all data, without the Jacobian; infinite where one is -inf.

        Exact up to float64 in the sum: differences between nearby states are right to 1e-2 at n = 1e6 although
        the likelihood is evaluated in float32.
        """
        return float(self.density(params).energy())

    def model(self, unravel: Callable[[Array], Params], dim: int) -> Model:
        """The same posterior as a function of the flat vector that ``unravel`` turns into params."""
        log_likelihood = self.log_likelihood
        source = self.data if isinstance(self.data, DiskData) else None
        return Model(
            log_likelihood=log_likelihood and (lambda theta, datum: log_likelihood(unravel(theta), datum)),
            log_prior=_on_vectors(self.log_prior, unravel),
            n=self.n,
            block=block_size(self.n, self.data.numbers_per_row, dim, on_disk=source is not None) if self.data else 1,
            source=source,
            log_jacobian=self.log_jacobian and _on_vectors(self.log_jacobian, unravel),
            has_prior=self.has_prior,
        )

    def referenced(self, params: Params) -> Posterior:
        """The same posterior, every row beside its log-likelihood at a reference state."""
        theta, unravel = flatten(params, "reference")
        each = jax.jit(self.model(unravel, theta.size).each)
        data, log_likelihood = self.data, check.function("log_likelihood", self.log_likelihood)

        def beside(rows: Rows) -> Referenced:
            at_a_time = range(0, row_count(rows), _ROWS_AT_A_TIME)
            blocks = [jax.tree.map(lambda leaf, a=first: leaf[a : a + _ROWS_AT_A_TIME], rows) for first in at_a_time]
            return Referenced(rows, np.concatenate([np.asarray(each(theta, block)) for block in blocks]))

        def alone(rows: Rows) -> Referenced:
            # Full passes have no use for the reference, and no compiled program should wait for another one in them.
            return Referenced(rows, np.zeros(row_count(rows), theta.dtype))

        if isinstance(data, DiskData):
            both: Any = data.mapped(beside, in_pass=alone)
        else:
            both = beside(data.read(0, data.n) if data else None)
        return Posterior(
            lambda params, datum: log_likelihood(params, datum.rows),
            both,
            self.log_prior,
            log_jacobian=self.log_jacobian,
        )

    def density(self, params: Params) -> Density:
        """Log prior and log-likelihood on all data, as the samplers keep them."""
        return self._density(*flatten(params, "params"))

    @cached_property
    def rows(self) -> Rows:
        """The observations on the device, in their own order; None if they stay on disk."""
        with jax.ensure_compile_time_eval():  # so that a first use under jit caches arrays, not tracers
            return jax.tree.map(jnp.asarray, self.data.rows) if isinstance(self.data, ArrayData) else None

    def _density(self, theta: Array, unravel: Callable[[Array], Params]) -> Density:
        # One compilation for each structure of params, kept as long as the posterior.
        structure = str(jax.tree.map(jnp.shape, unravel(theta)))
        if structure not in self._compiled:
            self._compiled[structure] = jax.jit(self.model(unravel, theta.size).density)
        density = self._compiled[structure](theta, self.rows)
        if isinstance(self.data, DiskData):
            jax.block_until_ready(density)
            self.data.check_reads()
        return density

    @cached_property
    def _compiled(self) -> dict[str, Callable]:
        return {}


def _source(data: Rows) -> ArrayData | DiskData:
    """Where observations live: what is on disk already stays there."""
    if isinstance(data, (ArrayData, DiskData)):
        return data
    if isinstance(data, (str, Path, np.memmap)) or type(data).__module__.startswith("zarr."):
        return open_data(data)
    return ArrayData(data)


def flatten(params: Params, name: str) -> tuple[Array, Callable[[Array], Params]]:
    """Params as one float vector, and the function that undoes it."""
    leaves = named_leaves(params)
    if not leaves:
        raise ValueError(f"{name} must hold at least one array of floats, got {params!r}")
    for path, leaf in leaves:
        try:
            array = np.asarray(leaf)
        except (TypeError, ValueError):
            raise TypeError(f"{name}{path} must be an array of floats, got {leaf!r}") from None
        if not np.issubdtype(array.dtype, np.floating):
            raise TypeError(f"{name}{path} must be an array of floats, got dtype {array.dtype}")
        if array.size == 0:
            raise ValueError(f"{name}{path} must not be empty, got shape {array.shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name}{path} must be finite, got {array}")
    return ravel_pytree(jax.tree.map(jnp.asarray, params))


def _flat(params: Params) -> float:
    return 0.0


def _checked_jacobian(log_jacobian: Any) -> Callable[[Params], Any] | None:
    return None if log_jacobian is None else check.function("log_jacobian", log_jacobian)


def _on_vectors(function: Callable[[Params], Any], unravel: Callable[[Array], Params]) -> Callable[[Array], Array]:
    return lambda theta: jnp.asarray(function(unravel(theta)), theta.dtype)
