"""A posterior from a PyMC model: its own densities and transforms, by PyTensor's JAX backend.

Log densities are derived in the constrained space, without a Jacobian; PyMC's own value transforms are the coordinates
in which chains move. Data, constants or ``pm.Data``, whose leading axis is that of the observed variables become rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.models.bridged import ModelPosterior, Parts, check_present, check_rows, imported
from mintmc.models.pymc_graphs import RowGraph, ValueTransform, jaxified, leaves_of, per_row, quiet, value_of
from mintmc.params import Params
from mintmc.transforms import Coordinates

_ADVICE = "model must give any rows alone the log-likelihoods that they have among all (rows are leading axes of data)"
_TRIES = 2000
"""Draws of a prior among which one must lie within its transforms."""
_LOCAL = "free variables must not belong to single rows: marginalise {!r} out of the model"


def from_pymc(model: Any) -> ModelPosterior:
    """The posterior of a PyMC model, for any sampler of mintmc.

    Parameters
    ----------
    model
        A ``pymc.Model`` whose observed variables all have the rows of the data as their leading axis. The values of
        ``pm.Data`` are those of now.

    Returns
    -------
    ModelPosterior
        A ``Posterior`` that also has ``init``, ``sample_prior(key)`` and ``left_out``. Params are a dict from the
        names of free variables to values in their own, constrained space. Deterministic variables, dims and coords are
        in the tree, but for deterministic variables with one value for each row: ``left_out`` names them.

    Examples
    --------
    >>> import numpy as np, mintmc, pytest
    >>> pm = pytest.importorskip("pymc", reason="needs mintmc[pymc]")
    >>> x = np.linspace(-1, 1, 100)
    >>> with pm.Model() as model:
    ...     slope = pm.Normal("slope", 0, 1)
    ...     y = pm.Normal("y", slope * x, pm.HalfNormal("sd", 1), observed=2 * x)
    >>> posterior = mintmc.from_pymc(model)
    >>> posterior.n, sorted(posterior.init)
    (100, ['sd', 'slope'])
    >>> posterior.energy({"slope": 2.0, "sd": 0.1}) < posterior.energy({"slope": 1.0, "sd": 0.1})
    True
    """
    pymc = imported("pymc", "pymc")
    check.instance("model", model, pymc.Model, "a pymc.Model")
    _check_variables(model)
    _check_local(model)
    bounded = [rv for rv in model.free_RVs if model.rvs_to_transforms[rv] is not None]
    transforms = {rv.name: ValueTransform.of(model, rv) for rv in bounded}
    graphs, init = _Graphs.of(model), _init(model, transforms)
    everywhere = graphs.function(list(graphs.likelihood.values()))
    n = _rows(graphs.likelihood, jax.eval_shape(everywhere, init))
    likelihood = graphs.on_rows(n, _lengths(model, n))
    kept = _kept(graphs, likelihood, init)
    prior = graphs.function([*graphs.prior, *graphs.potentials.values()])
    shown = graphs.function([graphs.deterministic[name] for name in kept]) if kept else None
    dims, coords = _dims(model, [*init, *kept])
    parts = Parts(
        log_likelihood=likelihood,
        rows={name: value_of(same[0]) for name, same in likelihood.leaves.items()},
        log_prior=lambda params: jnp.asarray(sum(jnp.sum(term) for term in prior(params))),
        init=init,
        sample_prior=lambda key: _draw(model, transforms, key),
        transforms=transforms,
        deterministics=shown and (lambda params: dict(zip(kept, shown(params), strict=True))),
        dims=dims,
        coords=coords,
        left_out=tuple(name for name in graphs.deterministic if name not in kept),
    )
    suspects = [name for name, value in init.items() if np.shape(value)[:1] == (n,)]
    advice = _LOCAL.format(suspects[0]) if suspects else _ADVICE
    check_rows(parts, lambda params: per_row(everywhere(params)), n, advice)
    return ModelPosterior(parts)


def _kept(graphs: _Graphs, likelihood: RowGraph, init: Params) -> list[str]:
    """The deterministic variables that do not belong to rows."""
    rows = [leaf for same in likelihood.leaves.values() for leaf in same]
    kept = []
    for name, graph in graphs.deterministic.items():
        (like,) = jax.eval_shape(graphs.function([graph]), init)
        if like.shape[:1] != (likelihood.n,) or not any(
            _is_same(leaf, row) for leaf in leaves_of([graph]) for row in rows
        ):
            kept.append(name)
    return kept


def _check_variables(model: Any) -> None:
    """Refuse what is no density of continuous parameters and complete data."""
    observed = {rv.name for rv in model.observed_RVs}
    for rv in model.basic_RVs:
        if rv.name.endswith("_unobserved") and rv.name.replace("_unobserved", "_observed") in observed:
            name = rv.name.removesuffix("_unobserved")
            raise ValueError(f"observed variables must have no missing values: drop such rows, got some in {name!r}")
        if type(rv.owner.op).__name__ == "MinibatchRandomVariable":
            raise ValueError(f"observed variables must be without total_size: samplers take batches, got {rv.name!r}")
    for rv in model.observed_RVs:
        for leaf in leaves_of([model.rvs_to_values[rv]]):
            check_present(f"observed variable {rv.name!r}", value_of(leaf))
    for rv in model.free_RVs:
        if rv.dtype not in ("float32", "float64"):
            wanted = f"continuous: marginalise {rv.name!r} out of the model"
            raise ValueError(f"free variables must be {wanted}, got dtype {rv.dtype}")
    if not model.free_RVs:
        raise ValueError(f"model must have a free variable, got {sorted(model.named_vars)}")
    if not model.observed_RVs:
        raise ValueError(f"model must have an observed variable, got none among {sorted(model.named_vars)}")


@dataclass(frozen=True, eq=False)
class _Graphs:
    """A model as functions of the values of its free variables, in their own space."""

    values: Mapping[str, Any]
    prior: Sequence[Any]
    likelihood: Mapping[str, Any]  # by observed variable
    potentials: Mapping[str, Any]
    deterministic: Mapping[str, Any]

    @classmethod
    def of(cls, model: Any) -> _Graphs:
        free = {rv: rv.type(rv.name) for rv in model.free_RVs}
        values = free | {rv: model.rvs_to_values[rv] for rv in model.observed_RVs}
        with quiet():
            terms = imported("pymc.logprob.basic", "pymc").conditional_logp(values)
        clone = imported("pytensor.graph.replace", "pymc").clone_replace

        def at_values(variables: Sequence[Any]) -> dict[str, Any]:
            graphs = clone(list(variables), replace=values, rebuild_strict=False) if variables else []
            return {variable.name: graph for variable, graph in zip(variables, graphs, strict=True)}

        return cls(
            values={rv.name: value for rv, value in free.items()},
            prior=[terms[value] for value in free.values()],
            likelihood={rv.name: terms[values[rv]] for rv in model.observed_RVs},
            potentials=at_values(model.potentials),
            deterministic=at_values(model.deterministics),
        )

    def function(self, outputs: Sequence[Any]) -> Callable[[Params], list[Array]]:
        """Graphs as a function of params."""
        call = jaxified(list(self.values.values()), outputs)
        return lambda params: call(*(params[name] for name in self.values))

    def on_rows(self, n: int, lengths: Sequence[Any]) -> RowGraph:
        """The likelihood as a function of params and rows; refuses potentials that depend on rows."""
        outputs = list(self.likelihood.values())
        for name, graph in self.potentials.items():
            if any(_has_rows(leaf, n) for leaf in leaves_of([graph])):
                wanted = "not depend on the data: make them an observed variable, such as pm.CustomDist"
                raise ValueError(f"potentials must {wanted}, got {name!r}, which uses an array of n={n} rows")
        leaves: dict[str, list[Any]] = {}
        for leaf in (leaf for leaf in leaves_of(outputs) if _has_rows(leaf, n)):
            same = next((each for each in leaves.values() if _is_same(each[0], leaf)), None)
            if same is None:
                same = leaves.setdefault(leaf.name or f"constant {len(leaves)}", [])
            same.append(leaf)
        return RowGraph(list(self.values.values()), list(self.values), outputs, leaves, lengths, n)


def _has_rows(leaf: Any, n: int) -> bool:
    value = value_of(leaf)
    return value is not None and value.shape[:1] == (n,)


def _is_same(leaf: Any, other: Any) -> bool:
    one, two = value_of(leaf), value_of(other)
    return one is two or (one is not None and two is not None and one.dtype == two.dtype and np.array_equal(one, two))


def _rows(likelihood: Mapping[str, Any], shapes: Sequence[Any]) -> int:
    """The number of rows, one for all observed variables."""
    for name, like in zip(likelihood, shapes, strict=True):
        if not like.shape:
            raise ValueError(f"observed variable {name!r} must have one log density for each row, got one for all")
    lengths = {name: int(like.shape[0]) for name, like in zip(likelihood, shapes, strict=True)}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise ValueError(f"observed variables must all have the same rows, got different numbers of them: {listed}")
    return next(iter(lengths.values()))


def _lengths(model: Any, n: int) -> list[Any]:
    """The variables that hold the lengths of the dims that rows run along, by name."""
    dims = model.named_vars_to_dims
    shared = [variable.name for variable in model.data_vars if _has_rows(variable, n)]
    rows = {dims[name][0] for name in (*shared, *(rv.name for rv in model.observed_RVs)) if dims.get(name)}
    return [length for dim, length in model.dim_lengths.items() if dim in rows and hasattr(length, "get_value")]


def _check_local(model: Any) -> None:
    """Refuse free variables along the dim of the rows, where dims have names."""
    dims = model.named_vars_to_dims
    rows = {dims[rv.name][0] for rv in model.observed_RVs if dims.get(rv.name)} - {None}
    for rv in model.free_RVs:
        if local := rows & set(dims.get(rv.name, ())):
            raise ValueError(f"{_LOCAL.format(rv.name)}, got one with dim {sorted(local)[0]!r}")


def _init(model: Any, transforms: Mapping[str, Any]) -> Params:
    """PyMC's initial point, in the constrained space."""
    with quiet():
        point = model.initial_point()
    free = {rv.name: jnp.asarray(point[model.rvs_to_values[rv].name]) for rv in model.free_RVs}
    return {name: np.asarray(transforms[name](leaf) if name in transforms else leaf) for name, leaf in free.items()}


def _draw(model: Any, transforms: Mapping[str, Any], key: Array) -> Params:
    """One draw of the free variables from the prior, within what transforms allow.

    PyMC's ``ordered`` cuts a prior without telling its draws, so the first draw that lies within is taken.
    """
    coordinates = Coordinates(transforms)
    names = [rv.name for rv in model.free_RVs]
    for tries, seed in zip((1, _TRIES), np.asarray(jax.random.bits(key, (2,))), strict=True):
        with quiet():
            found = imported("pymc", "pymc").draw(model.free_RVs, draws=tries, random_seed=int(seed))
        arrays = [np.asarray(jnp.asarray(draws)) for draws in found]
        arrays = [draws[None] for draws in arrays] if tries == 1 else arrays
        for values in zip(*arrays, strict=True):
            params = dict(zip(names, values, strict=True))
            with contextlib.suppress(ValueError):
                coordinates.check("draw", params)
                return params
    raise ValueError(f"prior must be where transforms lead, got none of {_TRIES} draws that is")


def _dims(model: Any, names: Sequence[str]) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """The model's names of axes and along them, of what is in draws."""
    given = {name: model.named_vars_to_dims[name] for name in names if model.named_vars_to_dims.get(name)}
    dims = {name: [dim or f"{name}_dim_{i}" for i, dim in enumerate(axes)] for name, axes in given.items()}
    used = {dim for axes in dims.values() for dim in axes}
    return dims, {dim: list(along) for dim, along in model.coords.items() if dim in used and along is not None}
