"""What a user wrote, as functions of flat vectors, and whether it can be computed at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import check
from mintmc.data import ArrayData, DiskData
from mintmc.energy import Model, Referenced, block_size
from mintmc.params import Params
from mintmc.transforms import Coordinates


class Written(Protocol):
    """Functions and data as a user gives them: a ``Posterior``."""

    log_likelihood: Callable[..., Any] | None
    log_prior: Callable[..., Any]
    log_jacobian: Callable[..., Any] | None
    data: ArrayData | DiskData | None
    batched: bool
    coordinates: Coordinates

    @property
    def n(self) -> int:
        """The number of observations."""
        ...

    @property
    def on_disk(self) -> bool:
        """Whether they stay in a file."""
        ...

    @property
    def has_prior(self) -> bool:
        """Whether a prior was given beside a likelihood."""
        ...


def model_of(
    written: Written, as_free: Callable[[Array], Params], unravel: Callable[[Array], Params], dim: int
) -> Model:
    """What there is to compute, of flat vectors that stand for params without bounds, and for params."""
    data = written.data
    by_host = data is not None and data.by_host
    given, coordinates = written.log_likelihood, written.coordinates
    one: Callable[..., Any] | None = None
    rows: Callable[..., Any] | None = None
    if given is not None and written.batched:
        rows = lambda theta, rows: given(unravel(theta), rows)  # noqa: E731
        one = lambda theta, datum: given(unravel(theta), jax.tree.map(lambda leaf: leaf[None], datum))[0]  # noqa: E731
    elif given is not None:
        one = lambda theta, datum: given(unravel(theta), datum)  # noqa: E731
    jacobian = written.log_jacobian and _on_vectors(written.log_jacobian, unravel)
    if coordinates.transforms:
        jacobian = _on_vectors(coordinates.log_jacobian, as_free)
    return Model(
        log_likelihood=one,
        log_prior=_on_vectors(written.log_prior, unravel),
        n=written.n,
        block=block_size(written.n, data.numbers_per_row, dim, by_host) if data else 1,
        source=data if by_host else None,
        finds_reference=written.on_disk,
        log_jacobian=jacobian,
        has_prior=written.has_prior,
        log_likelihoods=rows,
    )


def check_written(written: Written, params: Params, name: str) -> None:
    """Refuse functions that do not give one float for params like those of this name, without running them."""
    shape = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, params))
    like = f"params like {name}, {check.form(shape)}"
    check.scalar("log_density" if written.data is None else "log_prior", written.log_prior, shape, takes=like)
    if written.log_jacobian is not None:
        check.scalar("log_jacobian", written.log_jacobian, shape, takes=like)
    if written.data is not None and written.log_likelihood is not None:
        rows = written.data.read(0, 1)
        rows = rows.rows if isinstance(rows, Referenced) else rows
        if written.batched:
            two = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape[1:]), leaf.dtype), rows)
            check.floats("log_likelihood", written.log_likelihood, (2,), shape, two, takes=f"{like} and two rows")
            check.of_its_row("log_likelihood", written.log_likelihood, shape, two)
        else:
            datum = jax.tree.map(lambda leaf: leaf[0], rows)
            takes = f"{like} and a row of data, {check.form(datum)}"
            check.scalar("log_likelihood", written.log_likelihood, shape, datum, takes=takes)
            check.of_its_row("log_likelihood", written.log_likelihood, shape, datum)


def _on_vectors(function: Callable[[Params], Any], unravel: Callable[[Array], Params]) -> Callable[[Array], Array]:
    return lambda theta: jnp.asarray(function(unravel(theta)), theta.dtype)
