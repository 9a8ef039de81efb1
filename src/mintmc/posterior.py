"""The posterior: what a user must write."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.compiled import RECENT
from mintmc.data import ArrayData, DiskData, Rows
from mintmc.data.formats import find
from mintmc.data.source import Source
from mintmc.energy import Density, Model, Referenced, block_size
from mintmc.params import Params, flatten, form_of, raveled

_ROWS_AT_A_TIME = 2**16


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
        self.log_likelihood: Callable[..., Any] | None = check.function("log_likelihood", log_likelihood)
        self.log_prior = _flat if log_prior is None else check.function("log_prior", log_prior)
        self.log_jacobian = _checked_jacobian(log_jacobian)
        self.data: ArrayData | DiskData | None = _source(data)
        self.beside: Callable[[Rows], Any] = _as_they_are  # what a batch from disk should know of its rows

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
        posterior.beside = _as_they_are
        return posterior

    @property
    def n(self) -> int:
        """The number of observations; 0 for a density without data."""
        return 0 if self.data is None else self.data.n

    @property
    def on_disk(self) -> bool:
        """Whether the observations stay in a file."""
        return self.data is not None and self.data.on_disk

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
        by_host = self.data is not None and self.data.by_host
        each = None if log_likelihood is None else (lambda theta, datum: log_likelihood(unravel(theta), datum))
        return Model(
            log_likelihood=each,
            log_prior=_on_vectors(self.log_prior, unravel),
            n=self.n,
            block=block_size(self.n, self.data.numbers_per_row, dim, by_host) if self.data else 1,
            source=self.data if by_host else None,
            finds_reference=self.on_disk,
            log_jacobian=self.log_jacobian and _on_vectors(self.log_jacobian, unravel),
            has_prior=self.has_prior,
        )

    def flat(self, params: Params, name: str = "init") -> FlatTarget:
        """The same posterior as a function of flat vectors like that of ``params``; one object for all such params."""
        theta, unravel = flatten(params, name)
        structure = str(jax.tree.structure(params)), tuple(form_of(leaf) for leaf in jax.tree.leaves(params))
        if structure not in self._flat:
            model = self.model(unravel, theta.size)
            self._flat[structure] = FlatTarget(self, model, unravel, raveled, theta.size, theta.dtype)
        return self._flat[structure]

    def referenced(self, params: Params) -> Posterior:
        """The same posterior, every row beside its log-likelihood at a reference state.

        Rows on disk stay as they are; ``beside`` then finds the log-likelihoods of a batch.
        """
        target = self.flat(params, "reference")
        theta, data = target.ravel(params), self.data
        key = np.asarray(theta).tobytes()
        if key in self._referenced:
            return self._referenced[key]
        log_likelihood = check.function("log_likelihood", self.log_likelihood)
        assert data is not None
        if data.on_disk:
            same = Posterior(log_likelihood, data, self.log_prior, log_jacobian=self.log_jacobian)
            same.beside = lambda rows: Referenced(rows, target.model.each(theta, rows))
        else:
            each = target.compiled(("each",), lambda: jax.jit(target.model.each))
            blocks = [data.read(first, first + _ROWS_AT_A_TIME) for first in range(0, data.n, _ROWS_AT_A_TIME)]
            at_reference = np.concatenate([np.asarray(each(theta, block)) for block in blocks])
            both = ArrayData(Referenced(data.read(0, data.n), at_reference))
            same = Posterior(log_likelihood, both, self.log_prior, log_jacobian=self.log_jacobian)
        self._referenced.clear()  # one at a time: it holds a copy of the data
        self._referenced[key] = same
        return same

    def check_functions(self, params: Params, name: str) -> None:
        """Refuse functions that do not give one float for such params, without running them."""
        shape = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, params))
        like = f"params like {name}, {check.form(shape)}"
        check.scalar("log_density" if self.data is None else "log_prior", self.log_prior, shape, takes=like)
        if self.log_jacobian is not None:
            check.scalar("log_jacobian", self.log_jacobian, shape, takes=like)
        if self.data is not None and self.log_likelihood is not None:
            rows = self.data.read(0, 1)
            datum = jax.tree.map(lambda leaf: leaf[0], rows.rows if isinstance(rows, Referenced) else rows)
            takes = f"{like} and a row of data, {check.form(datum)}"
            check.scalar("log_likelihood", self.log_likelihood, shape, datum, takes=takes)

    def density(self, params: Params) -> Density:
        """Log prior and log-likelihood on all data, as the samplers keep them."""
        target = self.flat(params, "params")

        def build() -> Callable[[Array, Rows], Density]:
            check_counted(self)
            self.check_functions(params, "params")
            return jax.jit(target.model.density)

        density = target.compiled(("density",), build)(target.ravel(params), self.rows)
        if self.data is not None and self.data.on_disk:
            jax.block_until_ready(density)
            self.data.check_reads()
        result: Density = density
        return result

    @property
    def rows(self) -> Rows:
        """The observations as programs read them, in their own order; None if the host must read them from a file."""
        return None if self.data is None else self.data.resident

    @cached_property
    def _flat(self) -> dict[Any, FlatTarget]:
        return {}

    @cached_property
    def _referenced(self) -> dict[bytes, Posterior]:
        return {}


@dataclass(frozen=True, eq=False)
class FlatTarget:
    """A posterior as a function of flat vectors: what kernels and runs work with.

    It keeps what was compiled for it, so that a second run of the same kind compiles nothing.
    """

    posterior: Posterior
    model: Model
    unravel: Callable[[Array], Params]
    ravel: Callable[[Params], Array]
    dim: int
    dtype: Any
    _programs: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        """The number of observations."""
        return self.posterior.n

    def compiled(self, key: Any, build: Callable[[], Any]) -> Any:
        """What ``build`` returned when it was first asked for under this key, if that is not too long ago."""
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = build()
        RECENT.used(self, self._programs, key)
        return found

    def forget(self, key: Any) -> None:
        """Let go of what was compiled under a key."""
        self._programs.pop(key, None)

    def shared_by(self, sharers: int) -> FlatTarget:
        """The same, each of whose full passes so many devices make together."""
        if sharers == self.model.sharers:
            return self
        model = replace(self.model, sharers=sharers)
        result: FlatTarget = self.compiled(("shared", sharers), lambda: replace(self, model=model, _programs={}))
        return result


def _source(data: Rows) -> ArrayData | DiskData:
    """Where observations live: what is on disk already stays there."""
    if isinstance(data, (ArrayData, DiskData)):
        return data
    is_file = isinstance(data, (str, os.PathLike, np.memmap)) or type(data).__module__.startswith("zarr.")
    if is_file or (isinstance(data, Source) and not isinstance(data, type)):
        return DiskData(find(data, None, "data"))
    return ArrayData(data)


def check_counted(posterior: Posterior) -> None:
    """Refuse more rows than full passes, and programs that pick single rows, can count."""
    if posterior.n > check.LARGEST_COUNT:
        wanted = f"at most {check.LARGEST_COUNT} rows for full passes (MINT, SGLD and SGHMC make none)"
        raise ValueError(f"data must have {wanted}, got n = {posterior.n}")


def _flat(params: Params) -> float:
    return 0.0


def _as_they_are(rows: Rows) -> Rows:
    return rows


def _checked_jacobian(log_jacobian: Any) -> Callable[[Params], Any] | None:
    return None if log_jacobian is None else check.function("log_jacobian", log_jacobian)


def _on_vectors(function: Callable[[Params], Any], unravel: Callable[[Array], Params]) -> Callable[[Array], Array]:
    return lambda theta: jnp.asarray(function(unravel(theta)), theta.dtype)
