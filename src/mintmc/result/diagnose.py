"""Whether a run can be trusted, in words and numbers.

*Warnings* speak against a run. *Notes* say what it cannot know. What is judged where: the moves and the mixing here,
the law that the draws come from in ``result/law.py``, the rungs of a ladder in ``result/ladder_diagnosis.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc import check
from mintmc.acceptance.penalty import implied_temperature
from mintmc.result.diagnosis import MAX_HEATING, MAX_NOISE, MAX_RHAT, MIN_ESS_PER_CHAIN, Diagnosis
from mintmc.result.ladder_diagnosis import ladder_numbers, ladder_warnings, mode_numbers, mode_warnings
from mintmc.result.law import law_numbers, law_warnings
from mintmc.result.leap_diagnosis import leap_notes, leap_numbers, leap_warnings
from mintmc.result.mixing import mixing
from mintmc.result.reading import (
    draws_group,
    moved_group,
    rows_touched,
    settings_of,
    smaller_steps,
    started_apart,
    started_beyond,
    thinned,
)
from mintmc.result.rungs import summary, table
from mintmc.result.worst import known_names, stacked

if TYPE_CHECKING:
    import xarray

_STATISTICS = ("acceptance_rate", "log_ratio_noise", "data_touched")
_ATTRIBUTES = ("temperature", "sampler_settings", "undefined_moves", "data_touched_setup")


def diagnose(tree: xarray.DataTree, labels: Any = None, *, var_names: Sequence[str] | None = None) -> Diagnosis:
    """Say in words and numbers whether the draws of a run can be trusted.

    A long run is judged by every so many of its draws (250,000 numbers, a thousand draws a chain at least), which
    takes a fraction of the time that making them took; its ESS is that of the draws judged, at least.

    Parameters
    ----------
    tree
        What ``sample`` returned. Of a ladder, the rungs are judged too, and shown in a table.
    labels
        What ``mode_weights`` returned, or the mode of every draw, whole numbers (chain, draw): to tell whether the
        chains agree on the weights of the modes, and whether one was never visited.
    var_names
        Parameters, or quantities computed from them (deterministics), by whose R-hat and ESS the run is judged; None
        takes all parameters. Name those that matter where single ones do not: effects of exchangeable units, say.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(size=10_000)
    >>> posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    >>> sampler = mintmc.MINT(batch_size=100, alpha=0.5)
    >>> tree = mintmc.sample(posterior, sampler, init=0.0, draws=5000, progress=False)
    >>> mintmc.diagnose(tree).trusted
    True
    """
    group = moved_group(check.tree(tree, "sample_stats", attributes=_ATTRIBUTES))
    for name in _STATISTICS:
        if name not in tree["sample_stats"]:
            raise ValueError(f"tree must have {name} in sample_stats, got {sorted(map(str, tree['sample_stats']))}")
    settings = settings_of(tree)
    judged = thinned(tree[group])
    named = judged if var_names is None else thinned(tree[draws_group(tree)], *known_names(tree, var_names))
    numbers = {
        "temperature": float(tree.attrs["temperature"]),
        **_movement(tree),
        **_mixing(tree, named),
        **law_numbers(tree),
    }
    # Noise heats the chain only where nothing corrects for it; recycled estimates have a law of their own (audited).
    if settings.get("penalty") is False and settings.get("estimator") != "recycled":
        numbers["implied_temperature"] = numbers["temperature"] * _heating(tree)
    warnings = [*_warnings(numbers, settings, tree), *law_warnings(tree, judged)]
    rungs = None
    if "ladder" in tree.children:
        rungs = summary(tree)
        numbers |= ladder_numbers(tree, rungs)
        warnings += ladder_warnings(tree, rungs)
    if "modes" in tree.children:
        of_leaps = leap_numbers(tree)
        numbers |= of_leaps
        warnings += leap_warnings(tree, of_leaps)
    if labels is not None:
        numbers |= mode_numbers(labels)
        warnings += mode_warnings(labels)
    shown = "" if rungs is None else table(tree, rungs)
    return Diagnosis(numbers, tuple(warnings), shown, notes=tuple(_notes(tree, judged)))


def _movement(tree: Any) -> dict[str, float]:
    noise, rate = _moves(tree)
    known = np.isfinite(noise)
    # A hopeless proposal has a huge noise, and nothing depends on it: weighed by how likely the move is.
    weight = np.maximum(rate[known], 1e-12)
    return {
        "acceptance": float(rate.mean()),
        "lowest_acceptance": float(rate.mean(axis=1).min()),
        "undefined_moves": int(tree.attrs["undefined_moves"]),
        "noise_mean": float(np.average(noise[known], weights=weight)) if known.any() else np.nan,
        "noise_95": float(np.quantile(noise[known], 0.95)) if known.any() else np.nan,
    }


def _moves(tree: Any) -> tuple[np.ndarray, np.ndarray]:
    """Noise and acceptance rates of the draws that are judged."""
    stats = thinned(tree["sample_stats"], "log_ratio_noise", "acceptance_rate")
    return stats["log_ratio_noise"].values, stats["acceptance_rate"].values


def _mixing(tree: Any, judged: Any) -> dict[str, float]:
    found = mixing(stacked(judged))
    touched = rows_touched(tree)
    bulk, tail = float(np.min(found.ess_bulk)), float(np.min(found.ess_tail))
    # A parameter that never changed has no R-hat: NaN says so.
    agreement = {"rhat": float(np.max(found.rhat))} if judged.sizes["chain"] > 1 else {}
    per_million = {"ess_per_million": bulk / touched * 1e6} if touched else {}  # a density has no data
    return {**agreement, "ess_bulk": bulk, "ess_tail": tail, **per_million}


def _heating(tree: Any) -> float:
    # Moves that are rejected anyway do not heat: weigh the noise by how likely a move is. Good to a tenth.
    noise, weight = _moves(tree)
    known = np.isfinite(noise)
    if not known.any():
        return np.nan
    return float(implied_temperature(np.average(noise[known], weights=np.maximum(weight[known], 1e-12))))


def _warnings(numbers: dict[str, float], settings: dict[str, Any], tree: Any) -> Iterator[str]:
    chains = tree["sample_stats"].sizes["chain"]
    yield from _about_moves(numbers, settings)
    stats = tree["sample_stats"]
    if "bound_violations" in stats and (violations := int(stats["bound_violations"].sum())):
        yield (
            f"bounds were violated {violations:,} times: this run is not exact, its draws come from another law than "
            "they should; use larger bounds"
        )
    if "overflows" in stats and (overflows := int(stats["overflows"].sum())):
        yield f"{overflows} updates of the bright rows did not fit: use a larger capacity"
    if "diverging" in stats and (diverged := int(stats["diverging"].sum())):
        yield (
            f"{diverged} trajectories diverged: there are places that they cannot enter; use smaller steps "
            "(a larger target_acceptance) or other parameters"
        )
    rhat = numbers.get("rhat", 1.0)
    if np.isnan(rhat):
        yield "R-hat is not a number: a parameter never changed in any chain"
    elif rhat > MAX_RHAT:
        yield f"R-hat {rhat:.3f} is above {MAX_RHAT}: the chains disagree; run longer"
    wanted = MIN_ESS_PER_CHAIN * chains
    if not min(numbers["ess_bulk"], numbers["ess_tail"]) >= wanted:
        yield f"ESS is below {wanted} ({MIN_ESS_PER_CHAIN} a chain): run longer"


def _about_moves(numbers: dict[str, float], settings: dict[str, Any]) -> Iterator[str]:
    rate, noise = numbers["lowest_acceptance"], numbers["noise_mean"]
    quieter = "use a larger batch" + (" or a smaller alpha" if "alpha" in settings else " or smaller steps")
    if rate < 0.05:
        advice = quieter if noise > 1 else smaller_steps(settings)
        if settings.get("estimator") == "recycled":
            advice = "recycled estimates need lambda near tau/2 or below; use estimator='common'"
        yield f"a chain accepts only {rate:.1%} of its moves: {advice}"
    # Recycled and growing tests know what to do with noise; the audit says whether they do.
    if settings.get("estimator", "common") == "common" and "epsilon" not in settings and noise > MAX_NOISE:
        yield f"log-ratio noise {noise:.1f} is above {MAX_NOISE:g}: {quieter}"
    if np.isnan(noise):
        yield "the noise of the log ratio is not known (a batch of one row has no variance): use a larger batch"
    hot = numbers.get("implied_temperature")
    if hot and hot > MAX_HEATING * numbers["temperature"]:
        yield (
            f"without penalty the noise heats the chain to about T = {hot:.4g}, {numbers['temperature']:.4g} wanted: "
            f"use penalty=True, or {quieter.removeprefix('use ')}"
        )
    if numbers["undefined_moves"]:
        yield f"{numbers['undefined_moves']} moves had an undefined ratio (NaN) and were rejected: check log_likelihood"


def _notes(tree: Any, judged: Any) -> Iterator[str]:
    if "modes" in tree.children:
        yield from leap_notes(tree)
    elif "ladder" not in tree.children:
        yield from _about_starts(tree, judged)
    if "audit" in tree.attrs and tree.attrs["audit"] == "null":
        yield "its moves on batches were not compared with all data (audit=False, or not finished)"


def _about_starts(tree: Any, judged: Any) -> Iterator[str]:
    """What chains cannot know that were sent out from too near."""
    if not started_apart(tree, judged.std(("chain", "draw"))):
        yield (
            "the chains started in one place: a mode that none of them reached would not be seen; "
            "start them apart (init=key -> params, or PerChain) to find out"
        )
    elif not started_beyond(tree, judged):
        yield (
            "the chains started within the range of their draws: a mode outside of it would not be seen; "
            "start them farther apart (init=key -> params, or PerChain) to find out"
        )
