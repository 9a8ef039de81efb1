"""What a NumPyro model is made of, read from one run; what cannot be sampled from mini-batches is refused here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from mintmc import check
from mintmc.models.bridged import check_present

_KNOWN = ("sample", "deterministic", "plate")


class Sites(NamedTuple):
    """The names of a model's sites, by what they are."""

    latent: list[str]
    observed: list[str]
    factors: list[str]
    deterministic: list[str]


def check_sites(trace: Mapping[str, Any]) -> Sites:
    """Sort sites; refuses what is no density of continuous parameters and complete data."""
    sites = Sites([], [], [], [])
    for name, site in trace.items():
        if site["type"] not in _KNOWN:
            wanted = "sample and deterministic sites and plates only: give what is learned a prior"
            raise ValueError(f"model must have {wanted}, got {site['type']} site {name!r}")
        if site["type"] == "plate":
            size, part = site["args"]
            if part is not None and part != size:
                raise ValueError(
                    f"plates must not be subsampled: the sampler does it, got {name!r} with {part} of {size}"
                )
        elif site["type"] == "deterministic":
            sites.deterministic.append(name)
        else:
            _check_sample(name, site)
            kind = sites.factors if _is_factor(site) else sites.observed if site["is_observed"] else sites.latent
            kind.append(name)
    if not sites.latent:
        raise ValueError(f"model must have a latent site, got sites {sorted(trace)}")
    if not sites.observed and not sites.factors:
        raise ValueError(f"model must have an observed site, got none among {sorted(trace)}")
    return sites


def _check_sample(name: str, site: Any) -> None:
    if site["scale"] is not None:
        raise ValueError(f"sites must not be scaled: the sampler tempers, got {name!r} under handlers.scale")
    if any(type(part).__name__ == "MaskedDistribution" for part in _layers(site["fn"])):
        raise ValueError(f"sites must not be masked: drop the rows with missing values, got {name!r} with a mask")
    if site["is_observed"]:
        check_present(f"observed site {name!r}", site["value"])
    elif site["fn"].support.is_discrete:
        raise ValueError(f"latent sites must be continuous: marginalise {name!r} out of the model, got a discrete one")


def _layers(distribution: Any) -> Iterable[Any]:
    while distribution is not None:
        yield distribution
        distribution = getattr(distribution, "base_dist", None)


def _is_factor(site: Any) -> bool:
    return bool(site["is_observed"]) and any(type(part).__name__ == "Unit" for part in _layers(site["fn"]))


def log_prob(site: Any) -> Array:
    """The log density of a site, one number for each of its independent parts."""
    return jnp.asarray(site["fn"].log_prob(site["value"]))


def rows_axis(site: Any, lengths: set[int]) -> int:
    """Along which axis of a site's log densities rows run, counted from the end: one as long as an argument."""
    shape, name = log_prob(site).shape, site["name"]
    if not shape:
        wanted = "one log density for each row (is to_event one too many?), or be a numpyro.factor if it has no rows"
        raise ValueError(f"observed site {name!r} must have {wanted}, got one for all")
    fits = [axis - len(shape) for axis, size in enumerate(shape) if size in lengths]
    if not fits:
        wanted = "rows that are given: pass the data as arguments of the model, as arrays"
        raise ValueError(
            f"observed site {name!r} must have {wanted}, got shape {shape} and arguments with leading lengths "
            f"{check.shown(sorted(lengths))}"
        )
    in_plates = [axis for axis in fits if axis in {frame.dim for frame in site["cond_indep_stack"]}]
    return (in_plates or fits)[0]


def dims_of(trace: Mapping[str, Any], names: list[str]) -> dict[str, list[str]]:
    """The names of plates as names of the axes that they make, where nothing else has that name."""
    dims = {}
    for name in names:
        site, shape = trace[name], jnp.shape(trace[name]["value"])
        events = len(site["fn"].event_shape) if site["type"] == "sample" else 0
        axes = [f"{name}_dim_{axis}" for axis in range(len(shape))]
        plates = {len(shape) - events + frame.dim: frame for frame in site["cond_indep_stack"]}
        for axis, frame in plates.items():
            if axis >= 0 and shape[axis] == frame.size and frame.name not in names:
                axes[axis] = frame.name
        if any(axis < len(axes) and axes[axis] == frame.name for axis, frame in plates.items() if axis >= 0):
            dims[name] = axes
    return dims
