"""Where to run again from if modes were found that leaps did not know."""

from __future__ import annotations

from itertools import cycle, islice
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from mintmc import check
from mintmc.params import Params
from mintmc.posterior import Posterior
from mintmc.result.draws import params_at
from mintmc.run.initial import PerChain

if TYPE_CHECKING:
    import xarray


def late_starts(posterior: Posterior, tree: xarray.DataTree, *, like: Params = None) -> PerChain:
    """A start in every mode that was found after the draws of a run with leaps, for another run.

    ``Leaps`` looks again when all draws are made, with other hot chains. What it finds then is not among the modes that
    it leapt between; ``diagnose`` says so. A run from here goes down from these starts first, so it knows them. Chains
    that are left start in the modes that were known, the heaviest first.

    Parameters
    ----------
    posterior, tree
        What was sampled, and what ``sample`` returned for ``Leaps``.
    like
        Params of the same form, such as ``init``, if they are of a class of your own.

    Returns
    -------
    PerChain
        A start for each chain: as many as the run had, or as there are such modes if they are more.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, numpy as np, mintmc
    >>> at = 60 * jnp.stack([jnp.cos(jnp.arange(40.0)), jnp.sin(jnp.arange(40.0))], axis=1)
    >>> many = mintmc.Posterior.from_density(lambda x: jax.nn.logsumexp(-0.5 * ((x - at) ** 2).sum(axis=1)))
    >>> settings = {"draws": 100, "warmup": 30, "progress": False}
    >>> tree = mintmc.sample(many, mintmc.Leaps(starts=8), init=np.zeros(2), **settings)  # stopped far too early
    >>> start = mintmc.late_starts(many, tree)
    >>> again = mintmc.sample(many, mintmc.Leaps(), init=start, **settings | {"chains": len(start.params)})
    >>> again.modes.sizes["mode"] > tree.modes.sizes["mode"]
    True
    """
    check.instance("posterior", posterior, Posterior, "a mintmc.Posterior")
    late = check.tree(tree, "modes", attributes=("modes_late",)).attrs["modes_late"]
    if not len(late):
        raise ValueError("tree must have modes that were found late (attribute modes_late), got none")
    flat = posterior.flat(params_at(tree, 0, 0, like=like))
    modes = tree["modes"].to_dataset()
    leaves = [modes[f"end_{name}"].values.reshape(modes.sizes["mode"], -1) for name in flat.names]
    known = np.concatenate(leaves, axis=1)[np.argsort(-modes["weight"].values)]
    chains = max(len(late), tree["sample_stats"].sizes["chain"])
    thetas = islice(cycle([*np.asarray(late), *known]), chains)
    each = [flat.unravel(jnp.asarray(theta, flat.dtype)) for theta in thetas]
    return PerChain(jax.tree.map(lambda *leaf: np.stack(leaf), *each))
