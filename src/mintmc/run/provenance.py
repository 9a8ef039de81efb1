"""What made a run: enough to go on with it, and to refuse to go on with something else."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from mintmc.posterior import Params, Posterior
from mintmc.run.encode import encode

FORMAT = 1
"""Of the store; another one cannot be gone on with."""


def provenance(posterior: Posterior, sampler: Any, init: list[Params], **run: int) -> dict[str, Any]:
    """A record of a run: ``init`` is where each chain starts, ``run`` has its other settings (chains, seed, ...)."""
    return {
        "format": FORMAT,
        "sampler": encode(sampler),
        "init": encode(init),
        **run,
        "n": posterior.n,
        "data": posterior.data and posterior.data.fingerprint(),
        "model": model_fingerprint(posterior, init[0]),
        "versions": {name: version(name) for name in ("mintmc", "jax", "numpy", "zarr")},
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def differences(stored: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    """What speaks against going on with a stored run, in words."""
    # Another release may draw other numbers from the same seed; another machine, NumPy or Zarr does not.
    ignored = ("machine", "versions.numpy", "versions.zarr")
    before, now = (dict(_leaves("", {name: record.get(name) for name in asked})) for record in (stored, asked))
    return [
        f"{name} was {_short(before.get(name))}, now {_short(now.get(name))}"
        for name in dict.fromkeys((*before, *now))
        if name not in ignored and before.get(name) != now.get(name)
    ]


def model_fingerprint(posterior: Posterior, params: Params) -> str:
    """A hash of what log-likelihood and log prior compute, constants included: of their traces, not of their names."""
    digest = hashlib.sha256()

    def add(function: Any, *args: Any) -> None:
        # As arrays of the host: a float that came from Python would trace differently from the same one restored.
        traced = jax.make_jaxpr(function)(*jax.tree.map(np.asarray, args))
        digest.update(str(traced.jaxpr).encode())
        for constant in _constants(traced):
            digest.update(np.asarray(constant).tobytes())

    add(posterior.log_prior, params)
    if posterior.log_jacobian is not None:
        add(posterior.log_jacobian, params)
    if posterior.data is not None and posterior.log_likelihood is not None:
        add(posterior.log_likelihood, params, jax.tree.map(lambda leaf: leaf[0], posterior.data.read(0, 1)))
    return digest.hexdigest()[:16]


def _constants(traced: ClosedJaxpr | Jaxpr) -> Iterator[Any]:
    """All arrays that a function was closed over, those of functions within it too (which are not printed)."""
    if isinstance(traced, ClosedJaxpr):
        yield from traced.consts
        traced = traced.jaxpr
    for equation in traced.eqns:
        yield from (value.val for value in equation.invars if isinstance(value, Literal))
        for inner in jax.tree.leaves(equation.params):
            if isinstance(inner, (ClosedJaxpr, Jaxpr)):
                yield from _constants(inner)


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a record by their dotted names."""
    if not isinstance(value, dict):
        yield name, value
        return
    for key, part in value.items():
        # How settings are encoded is nobody's concern.
        inner = name if key in ("fields", "settings", "dict") else f"{name}.{key}".lstrip(".")
        yield from _leaves(inner, part)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "..."
