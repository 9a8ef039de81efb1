"""Whether the rungs of a ladder work together, in a table and in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mintmc.acceptance.penalty import implied_temperature
from mintmc.result.diagnosis import MAX_HEATING, MAX_NOISE, MIN_ESS_PER_CHAIN
from mintmc.result.modes import agreement
from mintmc.result.reading import moved_group, settings_of, smaller_steps, started_apart, thinned
from mintmc.result.rungs import Rungs, exchange_of, ladder_of

MIN_RATE = 0.05
"""Below this share of accepted moves, jumps or swaps, a rung or a pair of rungs hardly works."""
MAX_UNFED = 0.01
"""Share of a rung's states that may find nothing in the hotter rung's rings."""
MIN_P_VALUE = 1e-3
MAX_HOT_GAP = 0.5
"""Between the means of the hottest rung in different chains, in its standard deviations."""
FAR = 6.0
"""Standard deviations from its draws at which a state is not of the same mode."""


def ladder_numbers(tree: Any, rungs: Rungs) -> dict[str, float]:
    """The worst of every kind, over all rungs."""
    ladder = ladder_of(tree)
    numbers: dict[str, float] = {
        "rungs": len(rungs.temperature),
        "lowest_rung_acceptance": float(np.nanmin(rungs.acceptance)),
        "largest_rung_noise": float(np.nanmax(rungs.noise)),
        f"lowest_{exchange_of(tree)}_rate": float(np.min(rungs.exchange[:-1])),
    }
    if np.isfinite(rungs.unfed[:-1]).any():
        numbers["unfed"] = float(np.nanmax(rungs.unfed[:-1]))
    if "round_trips" in ladder:
        numbers["round_trips"] = int(ladder["round_trips"].sum())
    return numbers


def mode_numbers(labels: Any) -> dict[str, float]:
    """Whether the chains agree on the weights of modes."""
    found = agreement(_labels(labels))
    return {"mode_chi_square": found.chi_square / max(found.freedom, 1)}


def mode_warnings(labels: Any) -> Iterator[str]:
    """Modes that no draw is in, and chains that disagree about the others."""
    # What `mode_weights` returned knows of modes that no draw is in.
    is_known = hasattr(labels, "data_vars") and "label" in labels
    visited = set(np.unique(_labels(labels)).tolist())
    unvisited = sorted(set(range(labels.sizes["mode"] if is_known else int(max(visited)) + 1)) - visited)
    if unvisited:
        yield f"no draw is in mode {', '.join(map(str, unvisited))}: use a hotter ladder or other starts"
    yield from disagreement(_labels(labels), "run longer, with more frequent exchanges or more rungs")


def disagreement(labels: Any, advice: str) -> Iterator[str]:
    """Chains that disagree about the weights of modes; ``labels`` are whole numbers (chain, draw)."""
    found = agreement(labels)
    if found.p_value < MIN_P_VALUE:
        yield (
            f"the chains disagree on the weights of the modes (chi-square {found.chi_square:.0f} on "
            f"{found.freedom} degrees of freedom): {advice}"
        )


def _labels(labels: Any) -> Any:
    return labels["label"].values if hasattr(labels, "data_vars") and "label" in labels else labels


def ladder_warnings(tree: Any, rungs: Rungs) -> Iterator[str]:
    """What speaks against a ladder, with advice."""
    exchange, ladder = exchange_of(tree), ladder_of(tree)
    yield from _about_starts(tree, ladder)
    yield from _about_rings(tree, ladder)
    yield from _about_lower_states(tree, ladder)
    for k, rate in enumerate(rungs.acceptance):
        if rate < MIN_RATE:
            advice = smaller_steps(settings_of(tree))
            yield f"{_name(rungs, k)} accepts only {rate:.1%} of its moves in a chain: {advice}"
    yield from _about_noise(rungs, exchange, settings_of(tree).get("penalty"))
    energy = ladder["energy"].values
    for k, rate in enumerate(rungs.exchange[:-1]):
        pair = f"rungs {k} and {k + 1} (T = {rungs.temperature[k]:.4g} and {rungs.temperature[k + 1]:.4g})"
        if energy[k].max() < energy[k + 1].min():
            yield f"{pair} do not overlap: no state of one has an energy that the other knows; put rungs between them"
        elif rate < MIN_RATE:
            yield f"{pair} hardly overlap: {rate:.1%} of {exchange}s are accepted; put a rung between them"
    for k, share in enumerate(rungs.unfed[:-1]):
        if share > MAX_UNFED:
            yield (
                f"{_name(rungs, k)} finds nothing to jump to in {share:.1%} of its states: rings of rung {k + 1} are "
                "empty there; use wider rings, a longer feed or a rung between them"
            )
    if "round_trips" in ladder:
        trips = ladder["round_trips"].values
        if not trips.all():
            yield (
                f"{int((trips == 0).sum())} of {trips.size} chains made no round trip between the coldest and the "
                "hottest rung: run longer or use more rungs"
            )


def _about_starts(tree: Any, ladder: Any) -> Iterator[str]:
    """Chains that started in one place cannot disagree about modes that none of them reached."""
    if "hot_sd" not in ladder:
        return
    hot = _by_name(tree, ladder["hot_sd"].values.mean(axis=0))
    if not started_apart(tree, hot):
        yield (
            "the chains started in one place, so that they agree says nothing about modes that none of them reached: "
            "start them apart, over the range of the hottest rung (init=key -> params, or PerChain)"
        )
    means, deviations = ladder["hot_mean"].values, ladder["hot_sd"].values
    if len(means) > 1:
        gap = means.std(axis=0, ddof=1) / np.maximum(deviations.mean(axis=0), np.finfo(np.float32).tiny)
        if gap.max() > MAX_HOT_GAP:
            yield (
                f"the hottest rung does not forget where it started (its means differ by {gap.max():.1f} of its "
                "standard deviations between chains), so round trips count for nothing: use a hotter ladder"
            )


def _about_rings(tree: Any, ladder: Any) -> Iterator[str]:
    """What a chain of an equi-energy sampler cannot know of its own error: its rings are finite."""
    groups = ladder.attrs.get("ring_groups")
    chains = ladder.sizes["chain"]
    if groups is None or chains == 1:
        return
    if groups == 1:
        yield (
            "the chains share their rings, so they are one ladder: R-hat, ESS and errors of weights do not know how "
            "finite the rings are; run with share_rings=False, or again with other seeds and compare"
        )
        return
    effective = _effective_between(tree)
    if effective < MIN_ESS_PER_CHAIN * chains:
        yield (
            f"the chains' means spread as those of {effective:.0f} draws in all would: their rings differ by more than "
            "their own draws can tell; use a longer feed, larger rings or more draws"
        )


def _effective_between(tree: Any) -> float:
    """Independent draws that would give means as far apart as those of the chains, of the worst parameter."""
    lowest = np.inf
    for values in thinned(tree[moved_group(tree)]).data_vars.values():
        draws = values.values.reshape(*values.shape[:2], -1).astype(float)
        between = draws.mean(axis=1).var(axis=0, ddof=1) / len(draws)
        within = draws.reshape(-1, draws.shape[-1]).var(axis=0)
        lowest = min(lowest, float(np.min(within / np.maximum(between, 1e-30 + 1e-12 * within))))
    return lowest


def _about_lower_states(tree: Any, ladder: Any) -> Iterator[str]:
    """A state of lower energy than rung 0 ever comes back to, far from its draws, is a mode that it lost."""
    if "lowest_state" not in ladder:
        return
    draws = thinned(tree[moved_group(tree)])
    flat = np.concatenate([v.values.reshape(v.sizes["chain"] * v.sizes["draw"], -1) for v in draws.values()], axis=-1)
    mean, deviation = flat.mean(axis=0), np.maximum(flat.std(axis=0), np.finfo(np.float32).tiny)
    reached = float(np.nanmin(ladder["energy"].values[0]))
    starts = np.concatenate([v.values.reshape(v.sizes["chain"], -1) for v in tree["start"].to_dataset().values()], -1)
    states = np.concatenate([ladder["lowest_state"].values, starts])
    energies = np.concatenate([ladder["lowest_energy"].values, ladder["start_energy"].values])
    away = np.abs((states - mean) / deviation).max(axis=1)
    lost = np.flatnonzero((energies < reached) & (away > FAR))
    if lost.size:
        best = lost[np.argmin(energies[lost])]
        yield (
            f"a state with an energy {reached - energies[best]:.3g} below all that rung 0 drew was seen, "
            f"{away[best]:.0f} standard deviations from its draws: a narrow mode that it has left for ever; use more "
            "rungs, or start chains there"
        )


def _by_name(tree: Any, flat: np.ndarray) -> dict[str, Any]:
    """A flat vector of parameters as arrays by name, in the order of the draws."""
    import xarray

    named, at = {}, 0
    for name, values in tree["start"].to_dataset().data_vars.items():
        size = values[0].size
        named[str(name)] = xarray.DataArray(flat[at : at + size].reshape(values.shape[1:]))
        at += size
    return named


def _about_noise(rungs: Rungs, exchange: str, penalty: bool | None) -> Iterator[str]:
    for k, (noise, between) in enumerate(zip(rungs.noise, rungs.exchange_noise, strict=True)):
        if noise > MAX_NOISE:
            yield f"log-ratio noise {noise:.1f} of {_name(rungs, k)} is above {MAX_NOISE:g}: use larger batches"
        if between > MAX_NOISE:
            yield (
                f"log-ratio noise {between:.1f} of {exchange}s of {_name(rungs, k)} is above {MAX_NOISE:g}: "
                "use larger batches or a rung between it and the next"
            )
        # The noise heats a rung only where nothing corrects for it.
        hot = float(implied_temperature(noise)) if penalty is False else 1.0
        if hot > MAX_HEATING:
            yield (
                f"without penalty the noise heats {_name(rungs, k)} to up to T = {hot * rungs.temperature[k]:.4g}: "
                "use penalty=True or larger batches"
            )


def _name(rungs: Rungs, k: int) -> str:
    return f"rung {k} (T = {rungs.temperature[k]:.4g})"
