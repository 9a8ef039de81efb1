"""Groups that ArviZ asks for after a run: the log-likelihood of every row at every draw, and data drawn anew.

Both are made in blocks, of draws that are thinned until the array is no larger than 200 MB: leave-one-out estimates
need some hundred draws, not all of a long run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from mintmc import check
from mintmc.data import ArrayData, DiskData
from mintmc.energy import Referenced
from mintmc.params import Params
from mintmc.posterior import Posterior
from mintmc.result.arrays import new_store
from mintmc.result.draws import Draws
from mintmc.result.over_rows import OverRows, by_row, returned_by_row
from mintmc.result.predict import check_blocks, made_of
from mintmc.result.tempered import refuse_tempered

if TYPE_CHECKING:
    import xarray

_ROWS_AT_A_TIME = 2**16


def add_log_likelihood(
    tree: xarray.DataTree,
    posterior: Posterior,
    *,
    like: Params = None,
    draws: int | None = None,
    out: Any = None,
    batch: int | None = None,
    name: str = "y",
    allow_tempered: bool = False,
) -> xarray.DataTree:
    """Add group ``log_likelihood``, of every row at every draw (chain, draw, obs), to a tree; returns the tree.

    ``mintmc.loo``, ``mintmc.compare`` and ArviZ's own functions then work on it. Beyond some 100,000 rows draws must be
    few to fit: attribute ``draws_of_each_chain`` of the group says how many there are.

    Parameters
    ----------
    tree
        What ``sample`` returned. It is changed in memory, not where it is stored.
    posterior
        What was sampled. Its log-likelihood must be normalised: what it leaves out, LOO leaves out.
    like
        Params of the same form, such as ``init``, if they are of a class of your own.
    draws
        So many of each chain, evenly spaced; None is as many as make 200 MB.
    out
        A new path for a Zarr store, needed beyond 200 MB. The group is read from it as it is used.
    batch
        How many log-likelihoods to find at once; None lets their size decide.
    name
        Of the variable.
    allow_tempered
        Draws at T > 1 are not draws of the posterior, and refused unless this is True.

    Examples
    --------
    >>> import numpy as np, jax, mintmc
    >>> x = np.random.default_rng(0).normal(size=100)
    >>> posterior = mintmc.Posterior(lambda mean, x: jax.scipy.stats.norm.logpdf(x, mean), x)
    >>> tree = mintmc.sample(posterior, mintmc.MetropolisHastings(), init=0.0, progress=False)
    >>> tree = mintmc.add_log_likelihood(tree, posterior)
    >>> tree.log_likelihood["y"].dims, tree.log_likelihood["y"].shape
    (('chain', 'draw', 'obs'), (4, 1000, 100))
    >>> bool(0.5 < mintmc.loo(tree).p < 1.5)
    True
    >>> simulate = lambda mean, x, key: mean + jax.random.normal(key)
    >>> tree = mintmc.add_posterior_predictive(tree, posterior, simulate)
    >>> sorted(tree.children)[:3]
    ['log_likelihood', 'observed_data', 'posterior']
    """
    check_blocks(batch, name)
    rows, found, place = _checked(tree, posterior, like, out)
    refuse_tempered(tree, "a log-likelihood", check.flag("allow_tempered", allow_tempered))
    posterior.check_functions(_example(found), "the draws")
    one = check.function("log_likelihood", posterior.log_likelihood)
    of_rows = one if posterior.batched else jax.vmap(one, (None, 0))

    def each(params: Params, rows: Any, key: Any, numbers: Any) -> dict[str, Any]:
        return {name: of_rows(params, rows.rows if isinstance(rows, Referenced) else rows)}

    shapes = found.shapes
    row = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), rows.read(0, 1))
    returned = jax.eval_shape(each, shapes, row, None, None)[name]
    work = OverRows(each, {name: jax.ShapeDtypeStruct((), returned.dtype)}, rows)
    chosen = work.chosen(found, draws, place)
    return _added(
        tree, log_likelihood=work.computed("log_likelihood", chosen, made_of(tree), out=place, seed=0, batch=batch)
    )


def add_posterior_predictive(
    tree: xarray.DataTree,
    posterior: Posterior,
    function: Callable[..., Any],
    *,
    seed: int = 0,
    observed: str | Callable[[Any], Any] | None = None,
    like: Params = None,
    draws: int | None = None,
    out: Any = None,
    batch: int | None = None,
    name: str = "y",
    allow_tempered: bool = False,
) -> xarray.DataTree:
    """Add groups ``posterior_predictive``, data drawn anew from every draw, and ``observed_data``; returns the tree.

    Parameters
    ----------
    tree, posterior, like, draws, out, batch, allow_tempered
        As for ``add_log_likelihood``.
    function
        ``(params, datum, key) -> array``: what is observed, drawn anew, given the rest of the row.
    seed
        Of the keys.
    observed
        What of a row is observed: the name of a column, or ``datum -> array``. None is column ``name`` of data that
        have columns, and otherwise all of it.
    name
        Of the variable in both groups.

    Examples
    --------
    See ``add_log_likelihood``.
    """
    check.function("function", function)
    check_blocks(batch, name)
    rows, found, place = _checked(tree, posterior, like, out)
    refuse_tempered(tree, "a predictive check", check.flag("allow_tempered", allow_tempered))
    seed = check.integer("seed", seed, 0, 2**32 - 1)
    pick = _observed(observed, name, rows)
    returned = returned_by_row(function, name, seed, found, rows)
    data = _observations(pick, name, rows)
    if set(returned) != {name} or returned[name].shape != data[name].shape[1:]:
        wanted = f"an array like what is observed, of shape {data[name].shape[1:]}"
        raise ValueError(f"function must return {wanted}, got {check.form(dict(returned))}")
    work = OverRows(by_row(function, name, True), returned, rows)
    chosen = work.chosen(found, draws, place)
    made = work.computed("posterior_predictive", chosen, made_of(tree), out=place, seed=seed, batch=batch)
    return _added(tree, posterior_predictive=made, observed_data=data)


def _checked(tree: Any, posterior: Any, like: Params, out: Any) -> tuple[ArrayData | DiskData, Draws, Any]:
    """The rows, the draws and the place to write to; refuses what does not belong together."""
    check.instance("posterior", posterior, Posterior, "a mintmc.Posterior")
    found = Draws.of(tree, like)
    if posterior.data is None:
        raise ValueError("posterior must have data, got a density without data")
    if "n" in tree.attrs and int(tree.attrs["n"]) != posterior.n:
        raise ValueError(f"posterior must be what was sampled, of {tree.attrs['n']} rows, got one of {posterior.n}")
    return posterior.data, found, new_store(out)


def _example(draws: Draws) -> Params:
    """Params of the right form."""
    return jax.tree.map(lambda like: np.zeros(like.shape, like.dtype), draws.shapes)


def _observed(observed: Any, name: str, rows: ArrayData | DiskData) -> Callable[[Any], Any]:
    """How to find in rows what was observed."""
    example = rows.read(0, 1)
    if callable(observed):
        datum = jax.tree.map(lambda leaf: leaf[0], example)
        found = check.returned("observed", observed, datum)
        if not hasattr(found, "dtype"):
            raise ValueError(f"observed must return an array for a row, {check.form(datum)}, got {check.form(found)}")
        return lambda rows: jax.vmap(observed)(rows)
    if observed is None and not isinstance(example, dict) and len(jax.tree.leaves(example)) == 1:
        return lambda rows: jax.tree.leaves(rows)[0]
    column = name if observed is None else observed
    if not isinstance(example, dict) or column not in example:
        columns = sorted(example) if isinstance(example, dict) else "datum -> array"
        raise ValueError(f"observed must say what of a row is observed, one of {columns}, got {check.shown(observed)}")
    return lambda rows: rows[column]


def _observations(pick: Callable[[Any], Any], name: str, rows: ArrayData | DiskData) -> Any:
    """What was observed, as a dataset."""
    from xarray import Dataset

    ends = range(0, rows.n, _ROWS_AT_A_TIME)
    values = np.concatenate([pick(rows.read(first, min(first + _ROWS_AT_A_TIME, rows.n))) for first in ends])
    dims = ("obs", *(f"{name}_dim_{axis}" for axis in range(values.ndim - 1)))
    return Dataset({name: (dims, values)}, {"obs": np.arange(rows.n)})


def _added(tree: xarray.DataTree, **groups: Any) -> xarray.DataTree:
    from xarray import DataTree

    for group, dataset in groups.items():
        tree[group] = DataTree(dataset)
    return tree
