"""Predictions: a function of params and of an input, for every draw and every input.

Its mean over draws is the posterior mean of the prediction; with a random function (a key is given, one for each chain,
draw and input) its draws are draws of the posterior predictive law.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mintmc import check
from mintmc.data import ArrayData, DiskData, Rows, open_data
from mintmc.params import Params
from mintmc.result.arrays import new_store
from mintmc.result.draws import Draws
from mintmc.result.over_rows import OverRows, by_row, returned_by_row
from mintmc.result.tempered import warn_if_tempered

if TYPE_CHECKING:
    import xarray


def predict(
    tree: xarray.DataTree,
    function: Callable[..., Any],
    inputs: Rows,
    *,
    seed: int | None = None,
    like: Params = None,
    draws: int | None = None,
    out: Any = None,
    batch: int | None = None,
    name: str = "prediction",
) -> xarray.Dataset:
    """Predictions of every draw for every input, in blocks: a dataset with dims (chain, draw, obs, ...).

    Parameters
    ----------
    tree
        What ``sample`` returned. Draws at T > 1 are not draws of the posterior: a warning says so.
    function
        ``(params, input) -> array``, or a dict of arrays by name, written with ``jax.numpy``; with a ``seed``
        ``(params, input, key)``, for predictions that are random.
    inputs
        An array, or a pytree of arrays, with one leading axis; or data on disk, as for ``Posterior``.
    seed
        Of the keys; None for a function without one.
    like
        Params of the same form, such as ``init``, if they are of a class of your own.
    draws
        So many of each chain, evenly spaced; None is as many as make 200 MB.
    out
        A new path for a Zarr store, if the predictions are too large for memory. They are read from it as they are
        used.
    batch
        How many predictions to make at once; None lets their size decide.
    name
        Of the variable, if the function returns an array.

    Examples
    --------
    >>> import numpy as np, jax, jax.numpy as jnp, mintmc
    >>> x = np.random.default_rng(0).normal(size=200)
    >>> y = 2 * x + np.random.default_rng(1).normal(size=200)
    >>> def log_likelihood(p, row):
    ...     return -0.5 * (row["y"] - p["slope"] * row["x"]) ** 2
    >>> posterior = mintmc.Posterior(log_likelihood, {"x": x, "y": y})
    >>> tree = mintmc.sample(posterior, mintmc.MetropolisHastings(), init={"slope": 2.0}, progress=False)
    >>> line = mintmc.predict(tree, lambda p, x: p["slope"] * x, np.array([0.0, 1.0, 2.0]))
    >>> line["prediction"].dims, line["prediction"].shape
    (('chain', 'draw', 'obs'), (4, 1000, 3))
    >>> noisy = mintmc.predict(
    ...     tree, lambda p, x, key: p["slope"] * x + jax.random.normal(key), np.array([1.0]), seed=0
    ... )
    >>> bool(0.9 < noisy["prediction"].std() < 1.1)
    True
    """
    check.function("function", function)
    check_blocks(batch, name)
    is_random = seed is not None
    seed = None if seed is None else check.integer("seed", seed, 0, 2**32 - 1)
    place, rows, found = new_store(out), _inputs(inputs), Draws.of(tree, like)
    returned = returned_by_row(function, name, seed, found, rows)
    work = OverRows(by_row(function, name, is_random), returned, rows)
    chosen = work.chosen(found, draws, place)
    warn_if_tempered(tree, "predict")
    return work.computed("predictions", chosen, made_of(tree), out=place, seed=seed or 0, batch=batch)


def check_blocks(batch: Any, name: Any) -> None:
    """Refuse a size of blocks, or a name, that cannot be."""
    if batch is not None:
        check.integer("batch", batch, 1)
    if not isinstance(name, str) or not name or name in ("chain", "draw", "obs"):
        raise ValueError(f"name must be a word other than chain, draw and obs, got {check.shown(name)}")


def made_of(tree: Any) -> dict[str, Any]:
    """What a group that was computed from draws says of them."""
    kept = ("inference_library", "inference_library_version", "sampler", "temperature")
    return {name: tree.attrs[name] for name in kept if name in tree.attrs}


def _inputs(given: Rows) -> ArrayData | DiskData:
    """Rows, checked; what is on disk stays there."""
    if isinstance(given, (ArrayData, DiskData)):
        return given
    is_file = isinstance(given, (str, os.PathLike))
    try:
        return open_data(given) if is_file else ArrayData(given)
    except (TypeError, ValueError, OSError) as error:
        ours = "source" if is_file else "data"
        if not str(error).startswith(ours):
            raise
        raise type(error)(f"inputs{str(error).removeprefix(ours)}") from None
