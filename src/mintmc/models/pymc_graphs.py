"""PyTensor graphs as JAX functions, with data that a batch may replace.

A graph holds its data as constants and shared variables, and their number n in the shapes that it allocates. For a
batch of b rows the graph is built again with inputs of b rows in their place and b for n where an operation asks for a
shape; then PyTensor's JAX backend makes a function of it. Batch sizes are few, so each graph is built once and kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.data import Rows
from mintmc.data.array import row_count
from mintmc.models.bridged import ONE_AT_A_TIME, imported
from mintmc.params import Params

_SHAPED = {"Alloc": 1, "SpecifyShape": 1, "BroadcastTo": 1, "Reshape": 1}
"""Operations that ask for a shape, and from which of their inputs on."""


@contextmanager
def quiet() -> Iterator[None]:
    """Without PyTensor's words on BLAS, which is not used, and on float64, which JAX need not have."""
    with ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Explicitly requested dtype")
        warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")
        warnings.filterwarnings("ignore", message="Skipping .* as JAX tracing would remove it")
        yield


def backend() -> Any:
    """PyMC's door to JAX. To import it switches JAX to float64 for the whole process: that is undone."""
    before = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    try:
        with quiet():
            return imported("pymc.sampling.jax", "pymc")
    finally:
        jax.config.update("jax_enable_x64", before)


def jaxified(inputs: Sequence[Any], outputs: Sequence[Any]) -> Callable[..., list[Array]]:
    """A function of JAX arrays from a graph."""
    with quiet(), jax.ensure_compile_time_eval():  # constants must be arrays, not tracers, wherever this is called
        function = backend().get_jaxified_graph(inputs=list(inputs), outputs=list(outputs))

    def call(*values: Any) -> list[Array]:
        with quiet():
            return list(function(*values))

    return call


def leaves_of(graphs: Sequence[Any]) -> list[Any]:
    """The constants and shared variables that graphs are made of, shapes excepted."""
    walks, graphs = _walks(), list(graphs)
    shapes = {entry for node in walks.io_toposort([], graphs) for entry in _shape_inputs(node)}
    return [leaf for leaf in walks.graph_inputs(graphs) if value_of(leaf) is not None and leaf not in shapes]


def depends_on(graphs: Sequence[Any], variables: Iterable[Any]) -> bool:
    """Whether graphs are computed from any of some variables."""
    return not set(variables).isdisjoint(_walks().ancestors(list(graphs)))


def _walks() -> Any:
    """PyTensor's walks through graphs, wherever its version has them."""
    try:
        return import_module("pytensor.graph.traversal")
    except ImportError:
        return import_module("pytensor.graph.basic")


def value_of(leaf: Any) -> np.ndarray | None:
    """What a constant or a shared variable holds, if that is an array."""
    value = leaf.get_value(borrow=True) if hasattr(leaf, "get_value") else getattr(leaf, "data", None)
    return value if isinstance(value, np.ndarray) else None


def _shape_inputs(node: Any) -> list[Any]:
    first = _SHAPED.get(type(node.op).__name__)
    return [] if first is None else list(node.inputs[first:])


def per_row(terms: Sequence[Array]) -> Array:
    """One log-likelihood for each row: those of all observed variables together."""
    return jnp.asarray(sum(term.reshape(term.shape[0], -1).sum(1) for term in terms))


@dataclass(frozen=True, eq=False)
class RowGraph:
    """Elementwise log densities as a function of params and of some rows."""

    inputs: Sequence[Any]  # variables of params
    names: Sequence[str]  # of params, in the same order
    outputs: Sequence[Any]  # each with the rows as its leading axis
    leaves: Mapping[str, Sequence[Any]]  # by the name of a part of the data: constants and shared variables
    lengths: Sequence[Any]  # variables that hold n: the lengths of named dims
    n: int
    _built: dict[int, Callable[..., list[Array]]] = field(default_factory=dict)

    def __call__(self, params: Params, rows: Rows) -> Array:
        """One log-likelihood for each row."""
        with ONE_AT_A_TIME:
            size = row_count(rows)
            function = self._built.get(size) or self._built.setdefault(size, self._build(size))
            values = function(*(params[name] for name in self.names), *(rows[name] for name in self.leaves))
        return per_row(values)

    def _build(self, size: int) -> Callable[..., list[Array]]:
        tensor = imported("pytensor.tensor", "pymc")
        new: dict[Any, Any] = {length: tensor.constant(size, dtype=length.dtype) for length in self.lengths}
        batch = []
        for name, same in self.leaves.items():
            value = value_of(same[0])
            assert value is not None
            batch.append(tensor.tensor(name, dtype=value.dtype, shape=(size, *value.shape[1:])))
            new |= dict.fromkeys(same, batch[-1])
        with quiet():
            outputs = _rebuilt(self.outputs, new, self.n, size)
        return jaxified([*self.inputs, *batch], outputs)


def _rebuilt(outputs: Sequence[Any], new: dict[Any, Any], n: int, size: int) -> list[Any]:
    """Graphs with some variables replaced, and one number of rows by another."""
    for node in _walks().io_toposort([], list(outputs)):
        inputs = [new.get(variable, variable) for variable in node.inputs]
        if (first := _SHAPED.get(type(node.op).__name__)) is not None:
            inputs[first:] = _resized(node.inputs[first:], inputs[first:], n, size)
        if inputs != list(node.inputs):
            new |= zip(node.outputs, node.clone_with_new_inputs(inputs, strict=False).outputs, strict=True)
    return [new.get(output, output) for output in outputs]


def _resized(before: Sequence[Any], inputs: Sequence[Any], n: int, size: int) -> list[Any]:
    """The inputs that make a shape, with the first n among what is known replaced: rows come before other axes."""
    tensor = imported("pytensor.tensor", "pymc")
    known = imported("pymc.pytensorf", "pymc").constant_fold(list(before), raise_not_constant=False)
    result = list(inputs)
    for place, value in enumerate(known):
        if isinstance(value, np.ndarray) and (value == n).any():
            entries = np.array(value)
            entries.flat[np.flatnonzero(entries == n)[0]] = size
            result[place] = tensor.constant(entries, dtype=value.dtype)
            return result
    return result


@dataclass(frozen=True, eq=False)
class ValueTransform:
    """A value transform of PyMC in the form of NumPyro's."""

    kind: str
    backward: Callable[..., list[Array]]
    forward: Callable[..., list[Array]]
    log_det: Callable[..., list[Array]]

    @classmethod
    def of(cls, model: Any, rv: Any) -> ValueTransform:
        """That of a free variable; refuses bounds that other variables set."""
        transform, free, inputs = model.rvs_to_transforms[rv], model.rvs_to_values[rv], rv.owner.inputs
        value = rv.type(rv.name)
        maps = [(free, transform.backward(free, *inputs)), (value, transform.forward(value, *inputs))]
        maps.append((free, transform.log_jac_det(free, *inputs)))
        kind = type(transform).__name__
        if depends_on([output for _, output in maps], model.basic_RVs):
            wanted = "the same support whatever other variables are"
            raise ValueError(f"free variable {rv.name!r} must have {wanted}, got transform {kind} of others")
        return cls(kind, *(jaxified([given], [output]) for given, output in maps))

    def __call__(self, free: Array) -> Array:
        """The constrained value."""
        return self.backward(free)[0]

    def inv(self, value: Array) -> Array:
        """The way back."""
        return self.forward(value)[0]

    def log_abs_det_jacobian(self, free: Array, value: Array) -> Array:
        """Of the way forth."""
        return self.log_det(free)[0]

    def __repr__(self) -> str:
        return self.kind
