"""Whether a run can be trusted, in words and numbers.

*Warnings* speak against a run. *Notes* say what it cannot know. What is judged where: the moves and the mixing here,
the law that the draws come from in ``result/law.py``, the rungs of a ladder in ``result/ladder_diagnosis.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc import check
from mintmc.acceptance.penalty import implied_temperature
from mintmc.result.law import law_numbers, law_warnings

if TYPE_CHECKING:
    import xarray

MAX_RHAT = 1.01
MIN_ESS_PER_CHAIN = 100
MAX_NOISE = 4.0
"""Above this the penalty rejects most moves, and normality of the tails matters."""
MAX_HEATING = 1.05
IMPLIED = "temperature that the noise implies"
_DRAWS_JUDGED = 100_000
"""Of longer runs every so many draws are judged, so that judging them takes no longer than making them."""
APART = 0.5
"""Chains whose starts spread less than this, in standard deviations of what they sample, started in one place."""
_STATISTICS = ("acceptance_rate", "log_ratio_noise", "data_touched")
_ATTRIBUTES = ("temperature", "sampler_settings", "undefined_moves", "data_touched_setup")


@dataclass(frozen=True)
class Diagnosis:
    """What ``diagnose`` found: numbers by name, warnings with advice, notes. It prints as a short report."""

    numbers: dict[str, float]
    warnings: tuple[str, ...]
    table: str = ""
    notes: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        """True if nothing speaks against the run."""
        return not self.warnings

    def __str__(self) -> str:
        width = max(map(len, self.numbers))
        lines = [f"  {name:<{width}}  {_round(value)}" for name, value in self.numbers.items()]
        verdict = "Nothing speaks against this run." if self.trusted else "This run should not be trusted as it is:"
        table = [self.table] if self.table else []
        notes = ["What it cannot know:", *(f"  - {note}" for note in self.notes)] if self.notes else []
        return "\n".join([*table, *lines, verdict, *(f"  - {warning}" for warning in self.warnings), *notes])


def diagnose(tree: xarray.DataTree) -> Diagnosis:
    """Say in words and numbers whether the draws of a run can be trusted.

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
    group = draws_group(check.tree(tree, "sample_stats", attributes=_ATTRIBUTES))
    for name in _STATISTICS:
        if name not in tree["sample_stats"]:
            raise ValueError(f"tree must have {name} in sample_stats, got {sorted(map(str, tree['sample_stats']))}")
    settings = settings_of(tree)
    judged = thinned(tree[group])
    numbers = {
        "temperature": float(tree.attrs["temperature"]),
        **_movement(tree),
        **_mixing(tree, judged),
        **law_numbers(tree),
    }
    # Noise heats the chain only where nothing corrects for it; recycled estimates have a law of their own (audited).
    if settings.get("penalty") is False and settings.get("estimator") != "recycled":
        numbers[IMPLIED] = numbers["temperature"] * _heating(tree)
    warnings = [*_warnings(numbers, settings, tree), *law_warnings(tree, judged)]
    if "ladder" in tree.children:
        # Not at the top: it needs what is here.
        from mintmc.result.ladder_diagnosis import ladder_warnings

        warnings += ladder_warnings(tree)
    return Diagnosis(numbers, tuple(warnings), notes=tuple(_notes(tree, judged)))


def draws_group(tree: xarray.DataTree) -> str:
    """The group that holds the draws."""
    for group in ("posterior", "tempered_posterior"):
        if group in tree.children:
            return group
    raise ValueError(f"tree must have a group posterior or tempered_posterior, got {sorted(tree.children)}")


def settings_of(tree: xarray.DataTree) -> dict[str, Any]:
    """The settings of the sampler that made a tree."""
    return json.loads(tree.attrs["sampler_settings"])


def smaller_steps(settings: dict[str, Any]) -> str:
    """Advice to who accepts too few moves: a step that was adapted fits where the chain was in warm-up."""
    proposal = settings.get("proposal")
    if isinstance(proposal, dict) and "step_size" in proposal and proposal["step_size"] is None:
        return "its step was adapted in warm-up and does not fit where it is now; use a longer warm-up or nearer starts"
    return "use a smaller step"


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


def thinned(group: Any, *names: str) -> Any:
    """What to judge a run by, as a dataset in memory: every so many draws of a long run; ``names`` or everything."""
    every = -(-group.sizes["chain"] * group.sizes["draw"] // _DRAWS_JUDGED)
    dataset = group.to_dataset()
    return (dataset[list(names)] if names else dataset).isel(draw=slice(None, None, every)).load()


def _movement(tree: Any) -> dict[str, float]:
    noise, rate = _moves(tree)
    known = np.isfinite(noise)
    # A hopeless proposal has a huge noise, and nothing depends on it: weighed by how likely the move is.
    weight = np.maximum(rate[known], 1e-12)
    return {
        "acceptance": float(rate.mean()),
        "lowest acceptance of a chain": float(rate.mean(axis=1).min()),
        "undefined moves": int(tree.attrs["undefined_moves"]),
        "log-ratio noise, mean": float(np.average(noise[known], weights=weight)) if known.any() else np.nan,
        "log-ratio noise, 95%": float(np.quantile(noise[known], 0.95)) if known.any() else np.nan,
    }


def _moves(tree: Any) -> tuple[np.ndarray, np.ndarray]:
    """Noise and acceptance rates of the draws that are judged."""
    stats = thinned(tree["sample_stats"], "log_ratio_noise", "acceptance_rate")
    return stats["log_ratio_noise"].values, stats["acceptance_rate"].values


def _mixing(tree: Any, judged: Any) -> dict[str, float]:
    from arviz_stats import ess, rhat
    from xarray import DataTree

    def over_all(summary: Any, choose: Any) -> float:
        return float(choose([choose(variable.values) for variable in summary.data_vars.values()]))

    draws = DataTree.from_dict({"posterior": judged})
    touched = _total(tree["sample_stats"]["data_touched"]) + sum(tree.attrs["data_touched_setup"])
    with np.errstate(all="ignore"):  # a parameter that never changed has no R-hat: NaN says so
        bulk, tail = (over_all(ess(draws, method=method), np.min) for method in ("bulk", "tail"))
        agreement = {"R-hat": over_all(rhat(draws), np.max)} if judged.sizes["chain"] > 1 else {}
    per_million = bulk / touched * 1e6 if touched else np.nan
    return {**agreement, "ESS, bulk": bulk, "ESS, tail": tail, "ESS per million data touched": per_million}


def _total(counts: Any) -> float:
    """The sum over all draws, read a stretch at a time."""
    draws = range(0, counts.sizes["draw"], _DRAWS_JUDGED)
    return sum(float(counts.isel(draw=slice(first, first + _DRAWS_JUDGED)).sum()) for first in draws)


def _heating(tree: Any) -> float:
    # Moves that are rejected anyway do not heat: weigh the noise by how likely a move is. Good to a tenth.
    noise, weight = _moves(tree)
    known = np.isfinite(noise)
    if not known.any():
        return np.nan
    return float(implied_temperature(np.average(noise[known], weights=np.maximum(weight[known], 1e-12))))


def _warnings(numbers: dict[str, float], settings: dict, tree: Any) -> Iterator[str]:
    chains = tree["sample_stats"].sizes["chain"]
    yield from _about_moves(numbers, settings)
    stats = tree["sample_stats"]
    if "bound_violations" in stats and (violations := int(stats["bound_violations"].sum())):
        yield f"the bound was violated in {violations} steps: the draws are not what they should be; use a larger bound"
    if "overflows" in stats and (overflows := int(stats["overflows"].sum())):
        yield f"{overflows} updates of the bright rows did not fit: use a larger capacity"
    rhat = numbers.get("R-hat", 1.0)
    if np.isnan(rhat):
        yield "R-hat is not a number: a parameter never changed in any chain"
    elif rhat > MAX_RHAT:
        yield f"R-hat {rhat:.3f} is above {MAX_RHAT}: the chains disagree; run longer"
    wanted = MIN_ESS_PER_CHAIN * chains
    if not min(numbers["ESS, bulk"], numbers["ESS, tail"]) >= wanted:
        yield f"ESS is below {wanted} ({MIN_ESS_PER_CHAIN} a chain): run longer"


def _about_moves(numbers: dict[str, float], settings: dict) -> Iterator[str]:
    rate, noise = numbers["lowest acceptance of a chain"], numbers["log-ratio noise, mean"]
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
    hot = numbers.get(IMPLIED)
    if hot and hot > MAX_HEATING * numbers["temperature"]:
        yield (
            f"without penalty the noise heats the chain to about T = {hot:.4g}, {numbers['temperature']:.4g} wanted: "
            f"use penalty=True, or {quieter.removeprefix('use ')}"
        )
    if numbers["undefined moves"]:
        yield f"{numbers['undefined moves']} moves had an undefined ratio (NaN) and were rejected: check log_likelihood"


def _notes(tree: Any, judged: Any) -> Iterator[str]:
    if "ladder" not in tree.children and not started_apart(tree, judged.std(("chain", "draw"))):
        yield (
            "the chains started in one place: a mode that none of them reached would not be seen; "
            "start them apart (init=key -> params, or PerChain) to find out"
        )
    if "audit" in tree.attrs and tree.attrs["audit"] == "null":
        yield "its moves on batches were not compared with all data (audit=False, or not finished)"


def _round(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
