"""Hot chains that cross between modes: where descents to all of them may start.

On data, MINT on small batches at several temperatures, T = n / n_eff with n_eff from 100 to 1,000 observations: one of
them crosses between modes and is not yet so hot that it leaves them. Without data, tempered Metropolis-Hastings. All of
it takes as long as a few passes over the data.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from mintmc.posterior import FlatTarget
from mintmc.proposals import Langevin
from mintmc.run.initial import PerChain
from mintmc.run.sample import sample
from mintmc.samplers.metropolis import MINT, MetropolisHastings

_WORTH = (1000, 300, 100)
"""Observations that the hot posteriors are worth."""
_HOT = (10.0, 100.0, 1000.0)
"""Temperatures of a density without data."""
_DRAWS, _THIN, _WARMUP = 400, 10, 500
_ALPHA = 0.9


def explore(target: FlatTarget, thetas: list[Any], sampler: Any, states: int, seed: int) -> np.ndarray:
    """States (number, d) of hot chains from the given starts; ``sampler`` says how, None lets it choose."""
    posterior = target.posterior
    starts = [target.unravel(theta) for theta in thetas]
    init = PerChain(jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *starts))
    samplers = [sampler] if sampler is not None else _hot_samplers(target)
    settings: dict[str, Any] = {"draws": _DRAWS, "thin": _THIN, "warmup": _WARMUP, "chains": len(thetas)}
    found = []
    for number, hot in enumerate(samplers):
        tree = sample(posterior, hot, init=init, seed=seed + number, progress=False, audit=False, **settings)
        found.append(flat_draws(tree, target))
    rng = np.random.default_rng(seed)
    each = -(-states // len(found))
    chosen = [draws[rng.choice(len(draws), min(each, len(draws)), replace=False)] for draws in found]
    # In turn, so that the first few are from all temperatures.
    order = [draws[i] for i in range(each) for draws in chosen if i < len(draws)]
    return np.concatenate([np.stack([np.asarray(theta) for theta in thetas]), np.stack(order)])[:states]


def flat_draws(tree: Any, target: FlatTarget) -> np.ndarray:
    """All draws of a tree as flat vectors (number, d)."""
    group = tree["posterior" if "posterior" in tree.children else "tempered_posterior"]
    shape = group.sizes["chain"] * group.sizes["draw"]
    parts = [values.transpose("chain", "draw", ...).values.reshape(shape, -1) for values in group.data_vars.values()]
    result: np.ndarray = np.concatenate(parts, axis=1)
    if result.shape[1] != target.dim:
        raise ValueError(f"explore must be a tree of draws of {target.dim} parameters, got {result.shape[1]}")
    return result


def _hot_samplers(target: FlatTarget) -> list[Any]:
    n = target.n
    if n == 0:
        return [MetropolisHastings(Langevin(), temperature=temperature) for temperature in _HOT]
    temper = target.model.tempered(None)
    hot: list[Any] = []
    for worth in _WORTH:
        size = int(np.ceil(worth ** (1 / _ALPHA)))
        if size < n / 2:
            hot.append(MINT(size, temperature=n / worth, proposal=Langevin(), temper=temper))
    few = [MetropolisHastings(Langevin(), temperature=t, temper=temper) for t in _HOT if t < n]
    return hot or few or [MetropolisHastings(Langevin(), temper=temper)]
