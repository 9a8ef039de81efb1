"""What a user wrote, as functions of flat vectors, and whether it can be computed at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import check
from mintmc.energy import Model, Referenced, block_size
from mintmc.params import Params


def model_of(posterior: Any, as_free: Callable[[Array], Params], unravel: Callable[[Array], Params], dim: int) -> Model:
    """What a ``Posterior`` has to compute, of flat vectors that stand for params without bounds, and for params."""
    data = posterior.data
    by_host = data is not None and data.by_host
    given, coordinates = posterior.log_likelihood, posterior.coordinates
    one: Callable[..., Any] | None = None
    rows: Callable[..., Any] | None = None
    if given is not None and posterior.batched:
        rows = lambda theta, rows: given(unravel(theta), rows)  # noqa: E731
        one = lambda theta, datum: given(unravel(theta), jax.tree.map(lambda leaf: leaf[None], datum))[0]  # noqa: E731
    elif given is not None:
        one = lambda theta, datum: given(unravel(theta), datum)  # noqa: E731
    jacobian = posterior.log_jacobian and _on_vectors(posterior.log_jacobian, unravel)
    if coordinates.transforms:
        jacobian = _on_vectors(coordinates.log_jacobian, as_free)
    return Model(
        log_likelihood=one,
        log_prior=_on_vectors(posterior.log_prior, unravel),
        n=posterior.n,
        block=block_size(posterior.n, data.numbers_per_row, dim, by_host) if data else 1,
        source=data if by_host else None,
        finds_reference=posterior.on_disk,
        log_jacobian=jacobian,
        has_prior=posterior.has_prior,
        log_likelihoods=rows,
    )


def check_written(posterior: Any, params: Params, name: str) -> None:
    """Refuse functions that do not give one float for params like those of this name, without running them."""
    shape = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, params))
    like = f"params like {name}, {check.form(shape)}"
    check.scalar("log_density" if posterior.data is None else "log_prior", posterior.log_prior, shape, takes=like)
    if posterior.log_jacobian is not None:
        check.scalar("log_jacobian", posterior.log_jacobian, shape, takes=like)
    if posterior.data is not None and posterior.log_likelihood is not None:
        rows = posterior.data.read(0, 1)
        rows = rows.rows if isinstance(rows, Referenced) else rows
        if posterior.batched:
            two = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape[1:]), leaf.dtype), rows)
            check.floats("log_likelihood", posterior.log_likelihood, (2,), shape, two, takes=f"{like} and two rows")
            check.of_its_row("log_likelihood", posterior.log_likelihood, shape, two)
        else:
            datum = jax.tree.map(lambda leaf: leaf[0], rows)
            takes = f"{like} and a row of data, {check.form(datum)}"
            check.scalar("log_likelihood", posterior.log_likelihood, shape, datum, takes=takes)
            check.of_its_row("log_likelihood", posterior.log_likelihood, shape, datum)


def _on_vectors(function: Callable[[Params], Any], unravel: Callable[[Array], Params]) -> Callable[[Array], Array]:
    return lambda theta: jnp.asarray(function(unravel(theta)), theta.dtype)
