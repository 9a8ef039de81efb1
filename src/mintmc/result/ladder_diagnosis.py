"""Whether the rungs of a ladder work together, in a table and in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mintmc import check
from mintmc.acceptance.penalty import implied_temperature
from mintmc.result.diagnose import (
    MAX_HEATING,
    MAX_NOISE,
    MIN_ESS_PER_CHAIN,
    Diagnosis,
    draws_group,
    settings_of,
    smaller_steps,
    started_apart,
    thinned,
)
from mintmc.result.law import audits
from mintmc.result.modes import agreement

if TYPE_CHECKING:
    import xarray

MIN_RATE = 0.05
"""Below this share of accepted moves, jumps or swaps, a rung or a pair of rungs hardly works."""
MAX_UNFED = 0.01
"""Share of a rung's states that may find nothing in the hotter rung's rings."""
MIN_P_VALUE = 1e-3
MAX_HOT_GAP = 0.5
"""Between the means of the hottest rung in different chains, in its standard deviations."""
FAR = 6.0
"""Standard deviations from its draws at which a state is not of the same mode."""


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


def diagnose_ladder(tree: xarray.DataTree, labels: Any = None) -> Diagnosis:
    """Say in a table and in words whether the rungs of a ladder work together.

    Parameters
    ----------
    tree
        What ``sample`` returned for ``EquiEnergy``, ``MINTEE`` or ``ParallelTempering``.
    labels
        What ``mode_weights`` returned, or the mode of every draw, whole numbers (chain, draw): to tell whether the
        chains agree on the weights of the modes, and whether one was never visited.

    Examples
    --------
    >>> import jax.numpy as jnp, mintmc
    >>> from mintmc.result.ladder_diagnosis import diagnose_ladder
    >>> two_modes = mintmc.Posterior.from_density(lambda x: jnp.logaddexp(-0.5 * (x - 9) ** 2, -0.5 * (x + 9) ** 2))
    >>> sampler = mintmc.EquiEnergy(mintmc.Ladder.geometric(hottest=50, rungs=4), feed=2000)
    >>> starts = mintmc.PerChain(jnp.array([-9.0, 9.0]))
    >>> tree = mintmc.sample(two_modes, sampler, init=starts, draws=2000, warmup=500, chains=2, progress=False)
    >>> diagnose_ladder(tree).numbers["rungs"]
    4
    """
    check.tree(tree, "ladder", attributes=("sampler_settings",))
    import xarray

    rungs, exchange, ladder = summary(tree), _exchange(tree), _ladder(tree)
    numbers: dict[str, float] = {
        "rungs": len(rungs.temperature),
        "lowest acceptance of a rung": float(np.nanmin(rungs.acceptance)),
        "largest log-ratio noise of a rung": float(np.nanmax(rungs.noise)),
        f"lowest {exchange} rate": float(np.min(rungs.exchange[:-1])),
    }
    if np.isfinite(rungs.unfed[:-1]).any():
        numbers["states without a ring to jump to"] = float(np.nanmax(rungs.unfed[:-1]))
    if "round_trips" in ladder:
        numbers["round trips"] = int(ladder["round_trips"].sum())
    warnings = list(ladder_warnings(tree))
    if labels is not None:
        # What `mode_weights` returned knows of modes that no draw is in.
        known = labels.sizes["mode"] if isinstance(labels, xarray.Dataset) and "label" in labels else None
        labels = labels["label"].values if known is not None else labels
        found = agreement(labels)
        numbers["weights of modes, chi-square per degree of freedom"] = found.chi_square / max(found.freedom, 1)
        visited = set(np.unique(labels).tolist())
        unvisited = sorted(set(range(known or int(max(visited)) + 1)) - visited)
        if unvisited:
            warnings.append(f"no draw is in mode {', '.join(map(str, unvisited))}: use a hotter ladder or other starts")
        if found.p_value < MIN_P_VALUE:
            warnings.append(
                f"the chains disagree on the weights of the modes (chi-square {found.chi_square:.0f} on "
                f"{found.freedom} degrees of freedom): run longer, with more frequent {exchange}s or more rungs"
            )
    return Diagnosis(numbers, tuple(warnings), _table(rungs, exchange))


def summary(tree: xarray.DataTree) -> Rungs:
    """Numbers of each rung, over all chains."""
    ladder, exchange = _ladder(tree), _exchange(tree)
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
    return noise


def ladder_warnings(tree: xarray.DataTree) -> Iterator[str]:
    """What speaks against a ladder, with advice."""
    rungs, exchange, ladder = summary(tree), _exchange(tree), _ladder(tree)
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
    for values in thinned(tree[draws_group(tree)]).data_vars.values():
        draws = values.values.reshape(*values.shape[:2], -1).astype(float)
        between = draws.mean(axis=1).var(axis=0, ddof=1) / len(draws)
        within = draws.reshape(-1, draws.shape[-1]).var(axis=0)
        lowest = min(lowest, float(np.min(within / np.maximum(between, 1e-30 + 1e-12 * within))))
    return lowest


def _about_lower_states(tree: Any, ladder: Any) -> Iterator[str]:
    """A state of lower energy than rung 0 ever comes back to, far from its draws, is a mode that it lost."""
    if "lowest_state" not in ladder:
        return
    draws = thinned(tree[draws_group(tree)])
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


def _ladder(tree: Any) -> Any:
    if "ladder" not in tree.children:
        raise ValueError(f"tree must have a group ladder, got {sorted(tree.children)}")
    return tree["ladder"]


def _exchange(tree: Any) -> str:
    return "jump" if "jump_rate" in _ladder(tree) else "swap"


def _name(rungs: Rungs, k: int) -> str:
    return f"rung {k} (T = {rungs.temperature[k]:.4g})"


def _table(rungs: Rungs, exchange: str) -> str:
    """A line for each rung; a column that says nothing is left out."""
    columns = {
        "rung": [str(k) for k in range(len(rungs.temperature))],
        "T": [f"{value:.4g}" for value in rungs.temperature],
        "batch": [f"{value:,}" if value else "" for value in rungs.batch_size],
        "acceptance": _rounded(rungs.acceptance),
        "noise": _rounded(rungs.noise),
        f"{exchange} rate": _rounded(rungs.exchange),
        "energy/T": _rounded(rungs.energy),
        "unfed": _rounded(rungs.unfed),
    }
    told = {name: cells for name, cells in columns.items() if any(cells)}
    widths = [max(len(name), *map(len, cells)) for name, cells in told.items()]
    lines = [tuple(told), *zip(*told.values(), strict=True)]
    return "\n".join(
        "  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines
    )


def _rounded(values: np.ndarray) -> list[str]:
    return ["" if np.isnan(value) else f"{value:.2f}" for value in values]
