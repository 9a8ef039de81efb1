"""What made a run: enough to go on with it, and to refuse to go on with something else."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from mintmc.params import Params
from mintmc.posterior import Posterior
from mintmc.store.encode import encode

FORMAT = 3
"""Of the store; another one cannot be gone on with."""
_IGNORED = ("versions.numpy", "versions.zarr")
"""Another release may draw other numbers from the same seed; another NumPy or Zarr does not. Another machine may round
otherwise, but the law of the draws is the same: the store says which machines made it."""
_INSTRUCTIONS = ("sse4_2", "avx", "fma", "avx2", "avx512f", "avx512_bf16", "amx_tile", "asimd", "sve")


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
    }


def machines_of(done: dict[str, Any] | None) -> list[str]:
    """The machines that made a run, this one last: the same draws need the same instructions (docs/runs.md)."""
    here = f"{platform.system()} {platform.machine()}, {instructions()}, Python {platform.python_version()}"
    return [*(machine for machine in (done or {}).get("machines", []) if machine != here), here]


def instructions() -> str:
    """The vector instructions that XLA compiles for: sums are added up in an order that depends on them.

    Examples
    --------
    >>> import os
    >>> before = os.environ.get("XLA_FLAGS", "")
    >>> os.environ["XLA_FLAGS"] = "--xla_cpu_max_isa=SSE4_2"
    >>> instructions().endswith("at most SSE4_2")
    True
    >>> os.environ["XLA_FLAGS"] = before
    """
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    flags = set(found[1].split()) if found else set()
    known = [name for name in _INSTRUCTIONS if name in flags] or [platform.processor() or "unknown instructions"]
    limit = re.search(r"xla_cpu_max_isa=(\S+)", os.environ.get("XLA_FLAGS", ""))
    return " ".join(known) + (f" at most {limit[1]}" if limit else "")


def differences(stored: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    """What speaks against going on with a stored run, in words."""
    before, now = (dict(_leaves("", {name: record.get(name) for name in asked})) for record in (stored, asked))
    return [
        f"{name} was {_short(before.get(name))}, now {_short(now.get(name))}"
        for name in dict.fromkeys((*before, *now))
        if name not in _IGNORED and before.get(name) != now.get(name)
    ]


def summary(record: dict[str, Any]) -> dict[str, str]:
    """The parts of a record by their names, each as a short text: two that differ anywhere differ here."""
    return {name: _short(value) for name, value in _leaves("", record) if name not in _IGNORED}


def model_fingerprint(posterior: Posterior, params: Params) -> str:
    """A hash of what log-likelihood and log prior compute, constants included: of their traces, not of their names."""
    digest = hashlib.sha256()

    def add(function: Any, *args: Any) -> None:
        # As arrays of the host: a float that came from Python would trace differently from the same one restored.
        traced = jax.make_jaxpr(function)(*jax.tree.map(np.asarray, args))
        # JAX prints in colour where there is a terminal or a notebook: the model is the same elsewhere.
        digest.update(traced.jaxpr.pretty_print(use_color=False).encode())
        for constant in _constants(traced):
            digest.update(np.asarray(constant).tobytes())

    add(posterior.log_prior, params)
    if posterior.log_jacobian is not None:
        add(posterior.log_jacobian, params)
    if posterior.coordinates.transforms:
        add(posterior.coordinates.constrain, posterior.coordinates.free(params))
    if posterior.presented.deterministics is not None:
        add(posterior.presented.values, params)
    if posterior.data is not None and posterior.log_likelihood is not None:
        rows = posterior.data.read(0, 1)
        add(posterior.log_likelihood, params, rows if posterior.batched else jax.tree.map(lambda leaf: leaf[0], rows))
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
        inner = name if key in ("kind", "dict") else f"{name}.{key}".lstrip(".")
        yield from _leaves(inner, part)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else f"{text[:90]}... ({hashlib.sha256(text.encode()).hexdigest()[:16]})"
