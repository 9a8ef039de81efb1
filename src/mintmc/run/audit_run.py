"""The audit at the end of a run on batches: some of its moves, or the size of its steps, against all data.

Chains are audited at draws spread over the whole run, rungs of a ladder (whose draws are not kept) where they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc.flat import FlatTarget
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.result.audit import FEWEST_PAIRS, audit_moves, pair_count
from mintmc.result.audit_pairs import Trial
from mintmc.result.reading import draws_group, flat_draws
from mintmc.result.steps import audit_steps
from mintmc.run.protocol import Standing

if TYPE_CHECKING:
    import xarray

_DRAWS_FOR_SCALE = 2000


def audit_run(
    target: FlatTarget,
    standings: Mapping[int, Standing],
    tree: xarray.DataTree | None,
    seed: int,
    audited: Callable[[], object],
) -> list[dict[str, Any]]:
    """Audit the moves of a run: one entry for each rung on batches, or one for a run without a ladder.

    Without a tree of draws, chains are audited where they stand. ``audited`` is called after each entry.
    """
    found = []
    for rung, standing in standings.items():
        kernel: Any = standing.kernel
        # Rungs read rows beside their likelihoods at a reference; here rows are read as they are.
        kernel = replace(kernel, target=replace(kernel.target, model=target.model))
        found.append({"rung": rung, **_audit(target, kernel, standing, tree, seed)})
        audited()
    return found


def _audit(target: FlatTarget, kernel: Any, standing: Standing, tree: Any, seed: int) -> dict[str, Any]:
    if not isinstance(kernel, MetropolisKernel):
        step = float(tree["sample_stats"]["step_size"].mean())
        control = None if standing.centres is None else standing.centres[0].expansion
        return audit_steps(target.posterior, kernel, _flat(tree, target), step, seed, control)
    in_place = tree is None or "ladder" in tree.children
    trial = _of_rung(kernel, standing) if in_place else _of_draws(target, kernel, standing, tree)
    found = audit_moves(target, trial, seed).to_json()
    return found if standing.centres is None else {**found, **_distances(standing, trial)}


def _distances(standing: Standing, trial: Trial) -> dict[str, float]:
    """How far from the centres draws were, and how far away moves were checked, in standard deviations."""
    normals = [centre.laplace for centre in standing.centres or () if centre.laplace is not None]
    if not normals or trial.draws is None:
        return {"controlled": 1.0}
    # By the nearest centre: chains may be in different modes.
    draws, checked = (
        np.min([normal.distance(states) for normal in normals], axis=0) for states in (trial.draws, trial.thetas)
    )
    return {
        "controlled": 1.0,
        "distance": float(np.sqrt(np.mean(draws**2))),
        "farthest": float(draws.max()),
        "checked": float(checked.max()),
    }


def _of_draws(target: FlatTarget, kernel: MetropolisKernel, standing: Standing, tree: Any) -> Trial:
    """Pairs from draws of all chains, evenly spaced."""
    draws = tree[draws_group(tree)]
    chains, length = draws.sizes["chain"], draws.sizes["draw"]
    count = min(pair_count(target.n), chains * length)
    chain = np.arange(count) % chains
    draw = ((np.arange(count) + 0.5) / count * length).astype(int)
    at = np.unique(draw)
    thetas = _flat(tree, target, at).reshape(chains, len(at), -1)[chain, np.searchsorted(at, draw)]
    controls = None if standing.centres is None else [standing.centres[c].expansion for c in chain]
    return Trial(kernel, thetas, [standing.tunings[c] for c in chain], _flat(tree, target), controls)


def _flat(tree: Any, target: FlatTarget, at: np.ndarray | None = None) -> np.ndarray:
    """Draws (of all chains, one after the other) as flat vectors: those ``at`` some places, or enough for moments."""
    draws = tree[draws_group(tree)]
    every = -(-draws.sizes["chain"] * draws.sizes["draw"] // _DRAWS_FOR_SCALE)
    return flat_draws(tree, target.names, slice(None, None, every) if at is None else at)


def _of_rung(kernel: MetropolisKernel, standing: Standing) -> Trial:
    """Several moves from where each chain stands."""
    chains = len(standing.thetas)
    chain = np.arange(max(FEWEST_PAIRS, chains)) % chains
    thetas, tunings = np.stack([standing.thetas[c] for c in chain]), [standing.tunings[c] for c in chain]
    controls = None if standing.centres is None else [standing.centres[c].expansion for c in chain]
    return Trial(kernel, thetas, tunings, None, controls)
