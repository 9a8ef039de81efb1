"""A posterior from a NumPyro model: its own sites, densities and bijections, run on whatever rows a batch holds.

Arguments whose leading axis is that of the data are rows; a batch replaces them, plates of the data shrink to its
size, and the observed sites' log densities are read one by one. Exact: the same densities that NumPyro would sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.models.bridged import ModelPosterior, Parts, alike, check_rows, check_runs, imported, points
from mintmc.models.numpyro_runs import Runs, Whole, somewhere, traced
from mintmc.models.numpyro_sites import Sites, check_sites, dims_of, log_prob, rows_axis
from mintmc.params import Params
from mintmc.transforms import Coordinates

_ADVICE = "model must run on any rows alone (pass the data as arguments of the model, and make no use of other rows)"
_LOCAL = "latent sites must not belong to single rows: marginalise {!r} out of the model"
_PRIOR_DRAWS = 200
"""Whose median is the start: so many that it is near the middle even of a wide prior."""


def from_numpyro(model: Callable[..., Any], *args: Any, **kwargs: Any) -> ModelPosterior:
    """The posterior of a NumPyro model, for any sampler of mintmc.

    Parameters
    ----------
    model
        A NumPyro model whose observed sites all have one axis of rows, in a plate or not.
    *args, **kwargs
        What the model is called with, the data among it: arrays whose leading axis is that of the rows.

    Returns
    -------
    ModelPosterior
        A ``Posterior`` that also has ``init``, ``sample_prior(key)`` and ``left_out``. Params are a dict from the
        names of latent sites to values in their own, constrained space. Deterministic sites are in the tree, but for
        those that depend on rows: ``left_out`` names them.

    Examples
    --------
    >>> import numpy as np, numpyro, mintmc
    >>> from numpyro import distributions as dist
    >>> def model(x, y):
    ...     slope = numpyro.sample("slope", dist.Normal(0, 1))
    ...     sd = numpyro.sample("sd", dist.HalfNormal(1))
    ...     with numpyro.plate("rows", len(y)):
    ...         numpyro.sample("y", dist.Normal(slope * x, sd), obs=y)
    >>> x = np.linspace(-1, 1, 100)
    >>> posterior = mintmc.from_numpyro(model, x, y=2 * x)
    >>> posterior.n, sorted(posterior.init)
    (100, ['sd', 'slope'])
    >>> posterior.energy({"slope": 2.0, "sd": 0.1}) < posterior.energy({"slope": 1.0, "sd": 0.1})
    True
    """
    imported("numpyro", "numpyro")
    check.function("model", model)
    whole = Whole(model, args, kwargs)
    first = whole.first()
    sites = check_sites(first)
    axes = _axes(first, sites, whole)
    n = _rows(first, axes)
    runs = Runs.of(whole, n, _data_plates(first, sites, axes))
    axes |= _factors_with_rows(runs, first, sites, n)
    transforms = _transforms(whole, first, sites)
    init = _init(runs, first, sites, transforms)
    prior = [*sites.latent, *(name for name in sites.factors if name not in axes)]
    left_out = _check_rest(runs, prior, sites.deterministic, init, transforms)
    kept = [name for name in sites.deterministic if name not in left_out]

    def log_prior(params: Params) -> Array:
        trace = runs.trace(params, runs.few(1))
        return jnp.asarray(sum(jnp.sum(log_prob(trace[name])) for name in prior))

    def deterministics(params: Params) -> dict[str, Any]:
        return _values(runs.trace(params, runs.few(1)), kept)

    parts = Parts(
        log_likelihood=lambda params, rows: _per_row(runs.trace(params, rows), axes),
        rows=runs.rows,
        log_prior=log_prior,
        init=init,
        sample_prior=lambda key: _values(runs.drawn(key), sites.latent),
        transforms=transforms,
        deterministics=deterministics if kept else None,
        dims=dims_of(first, [*sites.latent, *kept]),
        left_out=tuple(left_out),
    )
    check_rows(parts, lambda params: _per_row(whole.trace(params), axes), n, _ADVICE)
    return ModelPosterior(parts)


def _axes(first: Any, sites: Sites, whole: Whole) -> dict[str, int]:
    """Where the rows of each observed site run, counted from the end; of factors if nothing else is observed."""
    rowed = sites.observed or [name for name in sites.factors if log_prob(first[name]).ndim]
    if not rowed:
        raise ValueError(f"model must have an observed site with rows, got only factors without: {sites.factors}")
    return {name: rows_axis(first[name], whole.lengths()) for name in rowed}


def _rows(first: Any, axes: Mapping[str, int]) -> int:
    """The number of rows, one for all observed sites."""
    lengths = {name: int(log_prob(first[name]).shape[axis]) for name, axis in axes.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise ValueError(f"observed sites must all have the same rows, got different numbers of them: {listed}")
    return next(iter(lengths.values()))


def _data_plates(first: Any, sites: Sites, axes: Mapping[str, int]) -> frozenset[str]:
    """The plates that hold rows; refuses latent sites in one."""
    plates = {
        frame.name for name, axis in axes.items() for frame in first[name]["cond_indep_stack"] if frame.dim == axis
    }
    for name in sites.latent:
        if local := [frame.name for frame in first[name]["cond_indep_stack"] if frame.name in plates]:
            raise ValueError(f"{_LOCAL.format(name)}, got one in plate {local[0]!r}")
    return frozenset(plates)


def _factors_with_rows(runs: Runs, first: Any, sites: Sites, n: int) -> dict[str, int]:
    """The axes of rows of factors that have some; refuses latent sites whose shape depends on the rows."""
    fewer = max(1, min(2, n - 1))
    found: dict[str, Any] = {}

    def run() -> None:  # traced, for shapes alone
        trace = runs.anywhere(runs.few(fewer))
        found.update({name: trace[name]["fn"].shape() for name in sites.latent})
        found.update({name: log_prob(trace[name]).shape for name in sites.factors})

    check_runs(partial(jax.eval_shape, run), _ADVICE)
    for name in sites.latent:
        before, now = first[name]["fn"].shape(), found[name]
        if before != now:
            raise ValueError(f"{_LOCAL.format(name)}, got shape {before} for {n} rows and {now} for {fewer}")
    axes: dict[str, int] = {}
    for name in sites.factors:
        before, now = log_prob(first[name]).shape, found[name]
        changed = [axis for axis, sizes in enumerate(zip(before, now, strict=False)) if sizes == (n, fewer)]
        if changed and n > 1:
            axes[name] = changed[0] - len(before)
    return axes


def _per_row(trace: Any, axes: Mapping[str, int]) -> Array:
    """One log-likelihood for each row: the observed sites' together."""
    total: Any = 0.0
    for name, axis in axes.items():
        each = jnp.moveaxis(log_prob(trace[name]), axis, 0)
        total = total + each.reshape(each.shape[0], -1).sum(1)
    return jnp.asarray(total)


def _values(trace: Any, names: list[str]) -> dict[str, Any]:
    return {name: jnp.asarray(trace[name]["value"]) for name in names}


def _transforms(whole: Whole, first: Any, sites: Sites) -> dict[str, Any]:
    """NumPyro's bijections where a support has bounds; refuses bounds that other parameters set."""
    from numpyro.distributions import biject_to
    from numpyro.distributions.transforms import IdentityTransform

    second = traced(somewhere(whole.model, 1), whole.args, whole.kwargs)
    transforms = {}
    for name in sites.latent:
        here, there = (biject_to(trace[name]["fn"].support) for trace in (first, second))
        value = first[name]["value"]
        if not alike(here(here.inv(value)), there(here.inv(value))):
            wanted = "the same support whatever other parameters are"
            raise ValueError(f"latent site {name!r} must have {wanted}, got {check.shown(first[name]['fn'].support)}")
        if not isinstance(getattr(here, "base_transform", here), IdentityTransform):
            transforms[name] = here
    return transforms


def _init(runs: Runs, first: Any, sites: Sites, transforms: Mapping[str, Any]) -> Params:
    """The prior's median in coordinates without bounds; where the prior cannot be drawn from, a point near 0."""
    coordinates = Coordinates(transforms)

    def free(key: Array) -> Params:
        return coordinates.free(_values(runs.drawn(key), sites.latent))

    try:
        draws = jax.jit(jax.vmap(free))(jax.random.split(jax.random.key(0), _PRIOR_DRAWS))
    except NotImplementedError:  # improper
        return jax.tree.map(np.asarray, _values(first, sites.latent))
    middle = jax.tree.map(lambda leaf: jnp.median(leaf, axis=0), draws)
    return jax.tree.map(np.asarray, coordinates.constrain(middle))


def _check_rest(
    runs: Runs, prior: list[str], deterministic: list[str], init: Params, transforms: Mapping[str, Any]
) -> list[str]:
    """The deterministic sites that depend on rows; refuses a prior that does.

    What depends on rows differs between the model on one row and on all.
    """

    def read(run: Callable[..., Any]) -> Any:
        def both(params: Params, *rows: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            trace = run(params, *rows)
            return {name: log_prob(trace[name]) for name in prior}, _values(trace, deterministic)

        return jax.jit(both)

    on_one, on_all = read(runs.trace), read(runs.whole.trace)
    left_out: list[str] = []
    for params, _ in list(points(init, transforms))[:2]:
        densities, values = check_runs(partial(on_one, params, runs.few(1)), _ADVICE)
        wanted = on_all(params)
        for name, density in densities.items():
            if not alike(density, wanted[0][name]):
                raise ValueError(
                    "prior and factors must not depend on the rows, outside of their plate, got "
                    f"{name!r}, another on all rows than on one"
                )
        left_out += [name for name, value in values.items() if not alike(value, wanted[1][name])]
    return list(dict.fromkeys(left_out))
