"""What made a run: enough to go on with it, and to refuse to go on with something else."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import version
from typing import Any

import jax
import numpy as np

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
        "data": data_fingerprint(posterior),
        "model": model_fingerprint(posterior, init[0]),
        "versions": {name: version(name) for name in ("mintmc", "jax", "numpy", "zarr")},
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }


def differences(stored: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    """What speaks against going on with a stored run, in words."""
    found = [
        f"{name} was {_short(stored.get(name))}, now {_short(asked[name])}"
        for name in asked
        if name not in ("versions", "machine") and stored.get(name) != asked[name]
    ]
    # Another release may draw other numbers from the same seed; another NumPy or Zarr does not.
    return found + [
        f"{name} was {stored['versions'].get(name)}, now {asked['versions'][name]}"
        for name in ("mintmc", "jax")
        if stored["versions"].get(name) != asked["versions"][name]
    ]


def data_fingerprint(posterior: Posterior) -> str | None:
    """A hash of all observations; None without data."""
    if posterior.data is None:
        return None
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(posterior.data.rows):
        digest.update(str((leaf.shape, leaf.dtype)).encode())
        digest.update(np.ascontiguousarray(leaf).data)
    return digest.hexdigest()[:16]


def model_fingerprint(posterior: Posterior, params: Params) -> str:
    """A hash of what log-likelihood and log prior compute, constants included: of their traces, not of their names."""
    digest = hashlib.sha256()

    def add(function: Any, *args: Any) -> None:
        traced = jax.make_jaxpr(function)(*args)
        digest.update(str(traced.jaxpr).encode())
        for constant in traced.consts:
            digest.update(np.asarray(constant).tobytes())

    add(posterior.log_prior, params)
    if posterior.data is not None and posterior.log_likelihood is not None:
        add(posterior.log_likelihood, params, jax.tree.map(lambda leaf: leaf[0], posterior.data.rows))
    return digest.hexdigest()[:16]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "..."
