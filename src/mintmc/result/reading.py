"""What everyone asks of a tree: where its draws are, what made them, whether its chains started apart."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

NUMBERS_JUDGED = 250_000
"""Draws times parameters by which a run is judged: of longer runs every so many draws, so that judging them takes
little beside making them. A chain is judged by a thousand draws at least."""
_DRAWS_PER_CHAIN = 1000
APART = 0.5
"""Chains whose starts spread less than this, in standard deviations of what they sample, started in one place."""
PARAMS = "params_form"
"""The attribute of a tree that says how params are put together from its variables."""
_STRETCH = 2**18
"""Draws whose counts are read at a time."""
WITHIN = (0.01, 0.99)
"""The quantiles between which most draws of a parameter lie."""


def draws_group(tree: Any) -> str:
    """The group that holds the draws."""
    for group in ("posterior", "tempered_posterior"):
        if group in tree.children:
            return group
    raise ValueError(f"tree must have a group posterior or tempered_posterior, got {sorted(tree.children)}")


def moved_group(tree: Any) -> str:
    """The group that holds what the chains moved: the draws, or their coordinates where a parameter is constrained."""
    free = "unconstrained_posterior"
    return free if free in tree.children else draws_group(tree)


def flat_draws(tree: Any, names: Iterable[str], draws: Any = slice(None)) -> np.ndarray:
    """Those ``draws`` of every chain, one chain after the other, as the flat vectors that chains move (number, d)."""
    part = tree[moved_group(tree)].isel(draw=draws)
    leaves = [part[name].transpose("chain", "draw", ...).values for name in names]
    return np.concatenate([leaf.reshape(leaf.shape[0] * leaf.shape[1], -1) for leaf in leaves], axis=-1)


def settings_of(tree: Any) -> dict[str, Any]:
    """The settings of the sampler that made a tree."""
    settings: dict[str, Any] = json.loads(tree.attrs["sampler_settings"])
    return settings


def smaller_steps(settings: dict[str, Any]) -> str:
    """Advice to who accepts too few moves: a step that was adapted fits where the chain was in warm-up."""
    proposal = settings.get("proposal")
    if isinstance(proposal, dict) and "step_size" in proposal and proposal["step_size"] is None:
        return "its step was adapted in warm-up and does not fit where it is now; use a longer warm-up or nearer starts"
    return "use a smaller step"


def thinned(group: Any, *names: str) -> Any:
    """What to judge a run by, as a dataset in memory: every so many draws of a long run; ``names`` or everything."""
    dataset = group.to_dataset()
    dataset = dataset[list(names)] if names else dataset
    return dataset.isel(draw=slice(None, None, judged_every(dataset))).load()


def judged_every(dataset: Any) -> int:
    """Which draws are judged: all of a short run (1), every so many of a long one."""
    chains, draws = dataset.sizes["chain"], dataset.sizes["draw"]
    width = sum(variable.size for variable in dataset.data_vars.values()) // (chains * draws)
    return judged_step(chains, draws, int(width))


def judged_step(chains: int, draws: int, width: int, least: float = 0.0) -> int:
    """Of how many draws one is judged, where each has so many numbers; ``least`` of all chains are, if there are."""
    most = max(NUMBERS_JUDGED // (chains * width), _DRAWS_PER_CHAIN, int(-(-least // chains)))
    return -(-draws // most)


def rows_touched(tree: Any) -> float:
    """All rows that a run has read, before its draws and for them; counts are read a stretch at a time."""
    counts = tree["sample_stats"]["data_touched"]
    draws = range(0, counts.sizes["draw"], _STRETCH)
    of_draws = sum(float(counts.isel(draw=slice(first, first + _STRETCH)).sum()) for first in draws)
    return of_draws + float(sum(tree.attrs["data_touched_setup"]))


def started_apart(tree: Any, scale: Any) -> bool:
    """Whether the user chose starts that differ, in units of ``scale`` (by parameter), in some parameter at least."""
    if not tree.attrs.get("starts_apart") or "start" not in tree.children or tree["start"].sizes["chain"] < 2:
        return False
    starts = tree["start"].to_dataset()
    spreads = [
        np.max(starts[name].std("chain", ddof=1).values / np.maximum(scale[name].values, np.finfo(np.float32).tiny))
        for name in starts.data_vars
    ]
    return float(max(spreads)) >= APART


def started_beyond(tree: Any, judged: Any) -> bool:
    """Whether a chain started where the draws seldom are, in some parameter: it came from elsewhere."""
    starts = tree["start"].to_dataset()

    def is_beyond(name: Any) -> bool:
        low, high = np.quantile(judged[name].values, WITHIN, axis=(0, 1))
        return bool(((starts[name].values < low) | (starts[name].values > high)).any())

    return any(is_beyond(name) for name in starts.data_vars)
