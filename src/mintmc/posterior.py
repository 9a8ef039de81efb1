"""The posterior: what a user must write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax import Array

from mintmc import check
from mintmc.data import ArrayData, DiskData, Rows
from mintmc.data.given import data_of
from mintmc.energy import Density, Model, Referenced
from mintmc.flat import FlatTarget
from mintmc.markup import Html, card, table
from mintmc.modelled import check_written, model_of
from mintmc.params import Params, flatten, form_of
from mintmc.shown import Shown
from mintmc.transforms import Coordinates

_ROWS_AT_A_TIME = 2**16


class Posterior:
    """Log-likelihood of one observation, the observations, and a prior.

    Parameters
    ----------
    log_likelihood
        ``(params, datum) -> scalar``, written with ``jax.numpy``; ``datum`` is one row of ``data``.
    data
        An array, or a pytree of arrays, with one leading axis of length n; or data on disk: a path, a memory map, a
        Zarr array, or what ``mintmc.open_data`` returns. A table (of pandas, Polars or pyarrow, or in a file) is a
        dict of its columns; words are codes there, and ``posterior.data.categories`` says what they stand for.
    log_prior
        ``params -> scalar``; None is a flat prior. Where it is -inf the likelihood may be anything, even NaN.
    log_jacobian
        ``params -> scalar``: log |d constrained / d params|, if params are a transform of what the prior is written in
        (a rate on its logarithm, say). It belongs to the coordinates, so no sampler ever tempers it, and it is no part
        of the energy. A Jacobian inside ``log_prior`` is tempered with the prior, and the law then depends on the
        parametrisation. ``transforms`` does all this by itself.
    transforms
        Where parameters must stay, by name: ``{"sigma": "positive", "weights": "simplex"}``. ``"positive"``,
        ``"unit"`` (0 to 1), ``("interval", low, high)``, ``"ordered"``, ``"simplex"``, ``"correlation"`` (the Cholesky
        factor of a correlation matrix), or a transform of NumPyro. ``init``, draws, and what the functions here are
        called with are constrained; chains move without bounds, and group ``unconstrained_posterior`` of the tree says
        where.
    batched
        Whether ``log_likelihood`` takes rows with a leading axis and returns their log-likelihoods, one for each: a
        network that is faster on many rows at once.
    deterministics
        ``params -> dict``: what else should be in the tree, computed from params.
    dims, coords
        Names of the axes of parameters, ``{"slope": ["feature"]}``, and along them, ``{"feature": ["age", "sex"]}``.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(1.0, 1.0, size=1000)
    >>> posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    >>> posterior.n
    1000
    >>> posterior.energy(2.0) > posterior.energy(1.0)
    True

    A scale that must be positive, and its square beside it:

    >>> import jax.numpy as jnp
    >>> def log_likelihood(p, x):
    ...     return -0.5 * ((x - p["mean"]) / p["sd"]) ** 2 - jnp.log(p["sd"])
    >>> square = lambda p: {"variance": p["sd"] ** 2}
    >>> posterior = mintmc.Posterior(log_likelihood, x, transforms={"sd": "positive"}, deterministics=square)
    >>> tree = mintmc.sample(posterior, mintmc.MetropolisHastings(), init={"mean": 1.0, "sd": 2.0}, progress=False)
    >>> sorted(tree.posterior.data_vars), bool((tree.posterior["sd"] > 0).all())
    (['mean', 'sd', 'variance'], True)
    """

    def __init__(
        self,
        log_likelihood: Callable[[Params, Any], Array],
        data: Rows,
        log_prior: Callable[[Params], Any] | None = None,
        *,
        log_jacobian: Callable[[Params], Any] | None = None,
        transforms: Mapping[str, Any] | None = None,
        batched: bool = False,
        deterministics: Callable[[Params], Mapping[str, Any]] | None = None,
        dims: Mapping[str, Sequence[str] | str] | None = None,
        coords: Mapping[str, Any] | None = None,
    ):
        self.log_likelihood: Callable[..., Any] | None = check.function("log_likelihood", log_likelihood)
        self.log_prior = _flat if log_prior is None else check.function("log_prior", log_prior)
        self.data: ArrayData | DiskData | None = data_of(data)
        self.batched = check.flag("batched", batched)
        self._describe(log_jacobian, transforms, Shown.of(deterministics, dims, coords))
        self.beside: Callable[[Rows], Any] = _as_they_are  # what a batch from disk should know of its rows

    @classmethod
    def from_density(
        cls,
        log_density: Callable[[Params], Array],
        log_jacobian: Callable[[Params], Any] | None = None,
        *,
        transforms: Mapping[str, Any] | None = None,
        deterministics: Callable[[Params], Mapping[str, Any]] | None = None,
        dims: Mapping[str, Sequence[str] | str] | None = None,
        coords: Mapping[str, Any] | None = None,
    ) -> Posterior:
        """A target without data, given by its log density: for full-batch samplers and ladders.

        ``log_jacobian`` is as for ``Posterior``, a factor of the target that is never tempered, and so are the others.

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
        posterior.data, posterior.batched = None, False
        posterior._describe(log_jacobian, transforms, Shown.of(deterministics, dims, coords))
        posterior.beside = _as_they_are
        return posterior

    def like(self, log_likelihood: Callable[..., Any], data: Rows) -> Posterior:
        """The same with another log-likelihood of other rows, of the same form."""
        other = Posterior(log_likelihood, data, self.log_prior, batched=self.batched)
        other.log_jacobian, other.coordinates, other.presented = self.log_jacobian, self.coordinates, self.presented
        return other

    def _describe(self, log_jacobian: Any, transforms: Any, presented: Shown) -> None:
        if log_jacobian is not None and transforms is not None:
            given = check.shown(log_jacobian)
            raise ValueError(f"log_jacobian must be None beside transforms, which bring their own, got {given}")
        self.log_jacobian = None if log_jacobian is None else check.function("log_jacobian", log_jacobian)
        self.coordinates, self.presented = Coordinates.of(transforms), presented

    def __repr__(self) -> str:
        told = (f"{name}={value}" for name, value in self._described().items())
        return f"{type(self).__name__}({', '.join(told)})"

    def _repr_html_(self) -> Html:
        title = f"{type(self).__name__} of {self.n:,} rows" if self.n else f"{type(self).__name__} without data"
        return card(title, table(("part", "what it is"), self._described().items()))

    def _described(self) -> dict[str, str]:
        """What it is made of, in words."""
        if self.data is None:
            told = {"log_density": check.named(self.log_prior)}
        else:
            prior = check.named(self.log_prior) if self.has_prior else "flat"
            told = {"log_likelihood": check.named(self.log_likelihood), "data": repr(self.data), "log_prior": prior}
        if self.log_jacobian is not None:
            told["log_jacobian"] = check.named(self.log_jacobian)
        if self.coordinates.transforms:
            told["transforms"] = check.shown(
                {name: type(kind).__name__ for name, kind in self.coordinates.transforms.items()}
            )
        return told

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

    def flat(self, params: Params, name: str = "init") -> FlatTarget:
        """The same posterior as a function of flat vectors without bounds, for params like these; one object for all.

        ``name`` is that of the argument that the params came from.
        """
        flatten(params, name)
        structure = str(jax.tree.structure(params)), tuple(form_of(leaf) for leaf in jax.tree.leaves(params))
        if structure not in self._flat:
            self.coordinates.check(name, params)
            self.presented.check(name, params)
            theta, as_free = flatten(self.coordinates.free(params), name)
            unravel = self.coordinates.after(as_free)
            model = model_of(self, as_free, unravel, theta.size)
            settings = (self.coordinates, self.presented, theta.size, theta.dtype)
            self._flat[structure] = FlatTarget(self, model, as_free, unravel, *settings)
        return self._flat[structure]

    def vector(self, params: Params, name: str = "init") -> Array:
        """Params as the flat vector that chains move; refuses what cannot be."""
        target = self.flat(params, name)
        self.coordinates.check(name, params)
        return target.ravel(params)

    def model(self, as_free: Callable[[Array], Params], dim: int) -> Model:
        """What there is to compute, as functions of flat vectors."""
        return model_of(self, as_free, self.coordinates.after(as_free), dim)

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
            same = self.like(log_likelihood, data)
            same.beside = lambda rows: Referenced(rows, target.model.each(theta, rows))
        else:
            each = target.compiled(("each",), lambda: jax.jit(target.model.each))
            blocks = [data.read(first, first + _ROWS_AT_A_TIME) for first in range(0, data.n, _ROWS_AT_A_TIME)]
            at_reference = np.concatenate([np.asarray(each(theta, block)) for block in blocks])
            both = ArrayData(Referenced(data.read(0, data.n), at_reference))
            same = self.like(log_likelihood, both)
        self._referenced.clear()  # one at a time: it holds a copy of the data
        self._referenced[key] = same
        return same

    def check_functions(self, params: Params, name: str) -> None:
        """Refuse functions that do not give one float for such params, without running them."""
        check_written(self, params, name)

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


def check_counted(posterior: Posterior) -> None:
    """Refuse more rows than full passes, and programs that pick single rows, can count."""
    if posterior.n > check.LARGEST_COUNT:
        wanted = f"at most {check.LARGEST_COUNT} rows for full passes (MINT, SGLD and SGHMC make none)"
        raise ValueError(f"data must have {wanted}, got n = {posterior.n}")


def _flat(params: Params) -> float:
    return 0.0


def _as_they_are(rows: Rows) -> Rows:
    return rows
