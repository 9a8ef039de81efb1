"""Numbers of the 50-mode experiment, from draws and energies alone: modes, rungs, rings, cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mintmc import EquiEnergy
from mintmc.experiments.report import mean_and_error
from mintmc.ladder.rings import ring_count, subset_size
from mintmc.result.modes import relative_variance

PAPER_TEMPERATURES = (1.00, 19.41, 27.13, 37.93, 53.02, 74.06, 103.51)
PAPER_BATCHES = (100_000, 5378, 3841, 2743, 1959, 1400, 1000)
PAPER_OCCUPANCY = (
    (51.08, 4.76, 6.45, 8.44, 10.00, 9.73, 9.55),
    (40.15, 5.01, 7.14, 9.63, 12.20, 12.72, 13.16),
    (34.80, 4.91, 7.16, 10.11, 13.09, 14.37, 15.57),
    (29.93, 4.78, 7.05, 10.23, 13.97, 15.82, 18.22),
    (22.20, 4.17, 6.42, 9.93, 14.40, 18.17, 24.71),
    (13.60, 3.16, 5.12, 8.45, 13.69, 20.02, 35.96),
    (6.08, 1.74, 3.07, 5.60, 10.44, 18.71, 54.37),
)
"""Li & Wong (2017), Table 2: percentage of the draws of each chain (row) in each energy ring."""


def modes_of(theta: np.ndarray) -> np.ndarray:
    """Which of the modes 2 e_j a state belongs to: the j of its largest coordinate."""
    result: np.ndarray = theta.argmax(axis=-1)
    return result


def weights(modes: np.ndarray, d: int) -> np.ndarray:
    """Share of the draws in each mode."""
    return np.bincount(modes.ravel(), minlength=d) / modes.size


def weight_curve(modes: np.ndarray, d: int, points: int = 30) -> dict[str, list[Any]]:
    """Relative variance of the weights in the first draws of all chains, against their number."""
    chains, draws = modes.shape
    at = np.unique(np.geomspace(min(draws, 20), draws, points).astype(int))
    return {
        "draws": [int(chains * t) for t in at],
        "relative_variance": [relative_variance(weights(modes[:, :t], d)) for t in at],
    }


def mode_numbers(theta: np.ndarray) -> dict[str, Any]:
    """How well draws (chain, draw, d) at T = 1 know the d modes."""
    d = theta.shape[-1]
    modes = modes_of(theta)
    w = weights(modes, d)
    variance = relative_variance(w)
    share, error = mean_and_error((theta[..., 0] > 1).astype(float))
    return {
        "modes_visited": int((w > 0).sum()),
        "weights": w.tolist(),
        "relative_variance": variance,
        "relative_variance_of_each_chain": [relative_variance(weights(chain, d)) for chain in modes],
        # N independent draws have a relative variance of (d - 1)/N.
        "independent_draws_worth": (d - 1) / variance if variance else float("inf"),
        "share_above_1": share,
        # The coordinates are exchangeable, so the spread of their shares is the error of each.
        "share_error": float(np.std((theta > 1).mean(axis=(0, 1)), ddof=1)),
        "share_error_of_batch_means": error,
        "switches_per_draw": float(np.mean(np.diff(modes, axis=1) != 0)),
        "curve": weight_curve(modes, d),
    }


def leap_numbers(tree: Any) -> dict[str, float]:
    """What a run with leaps knows of itself."""
    return {
        "modes_found": tree["modes"].sizes["mode"],
        "modes_unseen": float(tree.attrs["modes_unseen"]),
        "leap_acceptance": float(tree["sample_stats"]["leap_rate"].mean()),
    }


def energy_numbers(energy: np.ndarray) -> dict[str, float]:
    """Mean and spread of energies (chain, draw)."""
    mean, error = mean_and_error(energy)
    spread = {"sd": energy.std(), "smallest": energy.min(), "largest": energy.max()}
    return {"mean": mean, "error": error, **{name: float(value) for name, value in spread.items()}}


def rung_numbers(ladder: Any, reference: Any) -> list[dict[str, Any]]:
    """For every rung: mean energy over T, ours beside the reference run, and how they differ."""
    table: list[dict[str, Any]] = []
    for k, temperature in enumerate(ladder["temperature"].values):
        (ours, error), (truth, truth_error) = (
            mean_and_error(run["energy"].values[k] / temperature) for run in (ladder, reference)
        )
        table.append(
            {
                "temperature": float(temperature),
                "batch_size": int(ladder["batch_size"][k]),
                "ours": ours,
                "error": error,
                "reference": truth,
                "reference_error": truth_error,
                "relative_difference": ours / truth - 1,
                "z": (ours - truth) / float(np.hypot(error, truth_error)),
                "acceptance": float(ladder["acceptance_rate"][k].mean()),
                "noise": float(ladder["log_ratio_noise"][k].mean()),
                **_jumps(ladder, k),
                "swap_rate": None if k + 1 == reference.sizes["rung"] else float(reference["swap_rate"][k].mean()),
            }
        )
    return table


def _jumps(ladder: Any, k: int) -> dict[str, float | None]:
    """Mean acceptance of the jumps that rung k tried. The hottest has none to try."""
    if k + 1 == ladder.sizes["rung"]:
        return {"jump_acceptance": None, "empty_rings": None}
    # NaN: none was tried.
    rate, empty = (float(np.nan_to_num(ladder[name].values[k]).mean()) for name in ("jump_rate", "empty_rings"))
    return {"jump_acceptance": rate, "empty_rings": empty}


def jump_numbers(ladder: Any) -> list[dict[str, Any]]:
    """For every rung: the range of its energies, and whether its jumps are accepted."""
    return [
        {
            "temperature": float(temperature),
            "batch_size": int(ladder["batch_size"][k]),
            **energy_numbers(ladder["energy"].values[k]),
            **_jumps(ladder, k),
        }
        for k, temperature in enumerate(ladder["temperature"].values)
    ]


def occupancy(energy: np.ndarray, edges: Sequence[float]) -> np.ndarray:
    """Share of each rung's draws in every ring, (rung, ring); ring j has edges[j-1] <= energy < edges[j]."""
    rings = np.searchsorted(np.asarray(edges), energy, side="right")
    return np.array([np.bincount(rung.ravel(), minlength=len(edges) + 1) / rung.size for rung in rings])


def nearest_rungs(temperatures: Sequence[float], wanted: Sequence[float]) -> list[int]:
    """The rung that is nearest to each wanted temperature, in ratio."""
    distance = np.abs(np.log(np.asarray(temperatures))[:, None] - np.log(np.asarray(wanted)))
    return [int(k) for k in distance.argmin(axis=0)]


def counted_data(sampler: EquiEnergy, n: int) -> float:
    """Data that a sweep of all rungs of one chain reads, in units of n, by counting."""
    ladder = sampler.settled_ladder
    rows, rings = ladder.rows(n), ring_count(sampler.rings, ladder)
    total = 0.0
    for k, size in enumerate(rows):
        jumps = 0.0 if k + 1 == len(rows) else sampler.jump_probabilities[k]
        hotter = rows[min(k + 1, len(rows) - 1)]
        if size == n:
            # A jump costs nothing where the stored energy is exact, and one pass otherwise.
            move, jump = n, 0 if hotter == n else n
        else:
            # A move reads its batch at both ends of the comparison and, with gradients, of the proposal.
            move, jump = (4 if sampler.proposal.uses_gradient else 2) * size, 2 * size
        # Which ring a state belongs to is told on the hotter rung's subset.
        jump += subset_size(hotter, n, rings)
        steps = 1 if sampler.steps is None else sampler.steps[k]
        total += steps * ((1 - jumps) * move + jumps * jump) + (subset_size(size, n, rings) if k > 0 else 0)
    return total / n


def cost_numbers(tree: Any, n: int) -> dict[str, float]:
    """What a sweep of all rungs of one chain took."""
    data = tree["sample_stats"]["data_touched"].values
    return {
        "data_per_sweep": float(data.mean()) / n,
        "seconds_per_sweep": tree.attrs["sampling_time"] / data.size,
        "sweeps": int(data.size),
    }
