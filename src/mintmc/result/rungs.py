"""Numbers of every rung of a ladder, over all chains, and the table that shows them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mintmc.result.law import audits


class Rungs(NamedTuple):
    """What is told of the rungs, each an array (rung,); NaN where there is nothing to tell."""

    temperature: np.ndarray
    batch_size: np.ndarray
    acceptance: np.ndarray  # of local moves, in the worst chain
    noise: np.ndarray
    exchange: np.ndarray  # rate of jumps into, or of swaps with, the next hotter rung
    exchange_noise: np.ndarray
    energy: np.ndarray  # mean above the lowest observed, over T
    unfed: np.ndarray  # share of states whose ring of the next hotter rung is empty


def summary(tree: Any) -> Rungs:
    """Numbers of each rung, over all chains."""
    ladder, exchange = ladder_of(tree), exchange_of(tree)
    temperature, energy = ladder["temperature"].values, ladder["energy"].values
    # Energies estimated on batches are noisy: their lowest would be none that was visited.
    exact = ladder["batch_size"].values == ladder["batch_size"].values[0]
    unfed = [_unfed(ladder, k) for k in range(len(temperature) - 1)]
    # A rung that never tried has not exchanged anything; the hottest has nothing to try.
    rate = [*np.nan_to_num(_means(ladder[f"{exchange}_rate"].values[:-1])), np.nan]
    return Rungs(
        temperature=temperature,
        batch_size=ladder["batch_size"].values,
        acceptance=ladder["acceptance_rate"].values.min(axis=1),
        noise=_noise(tree, ladder),
        exchange=np.array(rate),
        exchange_noise=_means(ladder[f"{exchange}_noise"].values),
        energy=(energy.mean(axis=(1, 2)) - energy[exact].min()) / temperature,
        unfed=np.array([*unfed, np.nan]),
    )


def _noise(tree: Any, ladder: Any) -> np.ndarray:
    """Noise of local moves, weighed by how likely they are where the rung was audited."""
    noise = ladder["log_ratio_noise"].values.mean(axis=1).copy()
    for entry in audits(tree):
        noise[entry["rung"]] = entry["log_ratio_noise"]
    result: np.ndarray = noise
    return result


def _unfed(ladder: Any, k: int) -> float:
    """Share of rung k's states whose ring of rung k + 1 is empty: when it wanted to jump, or at the end."""
    if "empty_rings" not in ladder:
        return np.nan
    found = float(np.nan_to_num(_means(ladder["empty_rings"].values[k : k + 1]))[0])
    edges, filled = ladder["ring_edges"].values[k + 1], ladder["ring_occupancy"].values[k + 1] > 0
    at_the_end = [
        1 - filled[chain][np.searchsorted(edges[chain], energies, side="right")].mean()
        for chain, energies in enumerate(ladder["energy"].values[k])
    ]
    return max(found, float(np.mean(at_the_end)))


def _means(values: np.ndarray) -> np.ndarray:
    """Means (rung,) over the chains of (rung, chain) that have a number; NaN if none has."""
    known = np.isfinite(values)
    count = known.sum(axis=1)
    return np.where(count > 0, np.where(known, values, 0).sum(axis=1) / np.maximum(count, 1), np.nan)


def ladder_of(tree: Any) -> Any:
    """The group of the ladder."""
    if "ladder" not in tree.children:
        raise ValueError(f"tree must have a group ladder, got {sorted(tree.children)}")
    return tree["ladder"]


def exchange_of(tree: Any) -> str:
    """How rungs exchange states: "jump" or "swap"."""
    return "jump" if "jump_rate" in ladder_of(tree) else "swap"


def columns(tree: Any, rungs: Rungs) -> dict[str, list[str]]:
    """What is told of each rung, in words; a column that says nothing is left out."""
    exchange = exchange_of(tree)
    every = {
        "rung": [str(k) for k in range(len(rungs.temperature))],
        "T": [f"{value:.4g}" for value in rungs.temperature],
        "batch": [f"{value:,}" if value else "" for value in rungs.batch_size],
        "acceptance": _rounded(rungs.acceptance),
        "noise": _rounded(rungs.noise),
        f"{exchange} rate": _rounded(rungs.exchange),
        "energy/T": _rounded(rungs.energy),
        "unfed": _rounded(rungs.unfed),
    }
    return {name: cells for name, cells in every.items() if any(cells)}


def table(tree: Any, rungs: Rungs) -> str:
    """A line for each rung."""
    told = columns(tree, rungs)
    widths = [max(len(name), *map(len, cells)) for name, cells in told.items()]
    lines = [tuple(told), *zip(*told.values(), strict=True)]
    return "\n".join(
        "  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines
    )


def _rounded(values: np.ndarray) -> list[str]:
    return ["" if np.isnan(value) else f"{value:.2f}" for value in values]
