"""What speaks against the law that draws come from: their moves, the steps of stochastic gradients, float32.

Everything is judged by what it does to the draws, in standard deviations: 0.1 of one in a mean, or 5% of one in the
spread, is too much. An estimate must be sure of itself, too, or right runs would be blamed for its own noise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

MAX_BIAS, MAX_SPREAD = 0.055, 0.03
"""Errors of the draws, in standard deviations and of them, that are said: below the 0.1 and 5% that are too much,
because they are estimates."""
SURE = 3.0
"""Standard errors that an estimate must be away from 0."""
MAX_WITHOUT_VARIANCE = 0.01
MAX_IMPOSSIBLE = 0.01
"""Moves to states of likelihood zero that batches would make, of all that were audited."""
MAX_TAILS = 0.1
"""Of the logarithm of an acceptance probability, that a penalty for normal noise leaves."""
MAX_BEYOND = 3.0
"""Distances from the centre at which draws were made, over those at which moves were checked."""
MIN_FALL = 0.7
"""Of the density at three standard deviations, over a normal's, where moves are drawn from a normal: see
``modes/tails.py``."""
MIN_STEPS_PER_DEVIATION = 3.0
"""Neighbouring floats in a standard deviation of the draws; with 3 the grid adds 1% to the variance."""


def audits(tree: Any) -> list[dict[str, Any]]:
    """What the audit at the end of a run found, an entry for each rung on batches."""
    return json.loads(tree.attrs.get("audit", "null")) or []


def law_numbers(tree: Any) -> dict[str, float]:
    """What the audit says of a run without a ladder, in standard deviations."""
    if "ladder" in tree.children:
        return {}
    named = {}
    if "slowest_fall" in tree.attrs:
        named["slowest_fall"] = float(tree.attrs["slowest_fall"])
    for entry in audits(tree):
        if "bias" in entry:
            named["expected_bias"] = entry["bias"]
        named["expected_spread"] = entry["spread"]
        if "skewness" in entry:
            named["ratio_skewness"] = entry["skewness"]
        if "controlled" in entry:
            named["residual_noise"] = entry["log_ratio_noise"]
            named["ratio_kurtosis"] = entry["excess_kurtosis"]
        if "distance" in entry:
            named["centre_distance"] = entry["distance"]
            named["centre_farthest"] = entry["farthest"]
            named["centre_checked"] = entry["checked"]
    return named


def law_warnings(tree: Any, judged: Any) -> Iterator[str]:
    """What speaks against the law of the draws, with advice; ``judged`` is a dataset of draws."""
    for entry in audits(tree):
        where = f"rung {entry['rung']} (T = {entry['temperature']:.4g})" if "ladder" in tree.children else "this run"
        yield from _about_steps(entry) if "kind" in entry else _about_audit(entry, where, _names(judged))
    yield from _about_tails(tree.attrs.get("slowest_fall", 1.0))
    yield from _about_precision(judged, np.max(tree.attrs.get("step_size") or [np.inf]))


def audit_sentences(entries: list[dict[str, Any]]) -> Iterator[str]:
    """What an audit of moves says against a run that has not made its draws."""
    for entry in entries:
        yield from _about_audit(entry, f"T = {entry['temperature']:.4g}", [])


def _about_audit(entry: dict[str, Any], where: str, names: list[str]) -> Iterator[str]:
    if entry["undefined"]:
        yield f"{entry['undefined']} of {entry['pairs']} states drawn have an undefined likelihood on all data (NaN)"
    if entry["impossible"] or entry["impossible_moves"] > MAX_IMPOSSIBLE:
        yield (
            f"{entry['impossible']} of {entry['pairs']} states drawn have likelihood zero on all data, and of as many "
            f"moves about {entry['impossible_moves']:.1f} lead to such states: the support depends on the parameters, "
            "which a batch cannot see; use MetropolisHastings"
        )
        return
    advice = "use a larger batch or a higher temperature"
    if entry["without_variance"] > MAX_WITHOUT_VARIANCE:
        yield (
            f"{entry['without_variance']:.0%} of the batches of {where} show no variance where there is some (rare "
            f"events?), so their noise is taken for none: {advice}"
        )
    if "controlled" in entry and not entry["tails"] <= MAX_TAILS:
        yield (
            f"the residuals of {where} are heavy-tailed: few rows make up its noise of {entry['log_ratio_noise']:.2g} "
            f"(skewness {entry['skewness']:.2g}, excess kurtosis {entry['excess_kurtosis']:.2g} of the ratio over "
            "batches), most batches miss them, and the penalty cannot make up for that: use a larger batch"
        )
    if entry.get("farthest", 0) > MAX_BEYOND * entry.get("checked", np.inf):
        yield (
            f"draws of {where} were up to {entry['farthest']:.1f} standard deviations from the expansion's centre, "
            f"its moves were checked up to {entry['checked']:.1f}: its noise is not known out there; run longer, or "
            "start chains apart"
        )
    shape = f"(ratios over batches: skewness {entry['skewness']:.2g}, excess kurtosis {entry['excess_kurtosis']:.2g})"
    bias, error = abs(entry["bias"]), entry["bias_error"]
    if bias > MAX_BIAS and bias > SURE * error:
        name = names[entry["parameter"]] if entry["parameter"] < len(names) else "a parameter"
        yield (
            f"against all data, the moves of {where} shift the mean of {name} by about {entry['bias']:+.2f} ± "
            f"{error:.2f} standard deviations {shape}: {advice}"
        )
    spread, error = entry["spread"], entry["spread_error"]
    if abs(spread) > MAX_SPREAD and abs(spread) > SURE * error:
        yield (
            f"against all data, the moves of {where} make the draws about {abs(spread):.0%} ± {error:.0%} too "
            f"{'wide' if spread > 0 else 'narrow'} {shape}: {advice}"
        )
    if np.isnan(entry["bias"]):
        yield f"no move of {where} that was compared with all data could be made: {advice}, or use smaller steps"


def _about_steps(entry: dict[str, Any]) -> Iterator[str]:
    spread, error = entry["spread"], entry["spread_error"]
    if not np.isfinite(spread):
        yield "the step is too large: a normal posterior with this curvature would diverge; use a smaller step"
    elif abs(spread) > MAX_SPREAD and abs(spread) > SURE * error:
        where = "in some direction" if entry["kind"] == "steps" else f"(± {error:.0%}) on average over all directions"
        yield (
            f"steps and gradient noise make the draws about {abs(spread):.0%} too {'wide' if spread > 0 else 'narrow'} "
            f"{where}, by the curvature and the gradients on all data; use a smaller step or a larger batch"
        )


def _about_tails(fall: float) -> Iterator[str]:
    if fall < MIN_FALL:
        yield (
            "tails are heavier than those of the normal distribution that moves are drawn from (at three standard "
            f"deviations the log density has fallen by {4.5 * fall:.2g} instead of 4.5), so they are visited too "
            "seldom: use Hamiltonian, or Langevin"
        )


def _about_precision(judged: Any, step: float) -> Iterator[str]:
    for name, values in judged.data_vars.items():
        draws = values.values
        flat = draws.reshape(draws.shape[0] * draws.shape[1], -1)
        apart = np.spacing(np.abs(flat).max(axis=0))
        deviation = flat.std(axis=0, dtype=np.float64)
        # What never moved may have been refused every move for another reason than that steps are lost in rounding.
        limit = MIN_STEPS_PER_DEVIATION * apart
        coarse = np.flatnonzero((deviation < limit) & ((deviation > 0) | (step < limit)))
        if coarse.size:
            j = coarse[0]
            yield (
                f"{draws.dtype} is too coarse for {name}: near {flat[0, j]:.6g} neighbouring numbers are "
                f"{apart[j]:.2g} apart, and the draws have a standard deviation of {deviation[j]:.2g}; centre and "
                "scale the parameter, or use float64 (jax.config.update('jax_enable_x64', True))"
            )


def _names(judged: Any) -> list[str]:
    """Names of the flat parameters, such as ``beta[3]``."""
    named = []
    for name, values in judged.data_vars.items():
        shape = values.shape[2:]
        named += [f"{name}{list(index) if shape else ''}" for index in np.ndindex(shape)]
    return named
