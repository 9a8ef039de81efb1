"""Whether a run can be trusted, in words and numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mintmc import check
from mintmc.acceptance.penalty import implied_temperature

if TYPE_CHECKING:
    import xarray

MAX_RHAT = 1.01
MIN_ESS_PER_CHAIN = 100
MAX_NOISE = 4.0
"""Above this the penalty rejects most moves, and normality of the tails matters."""
MAX_HEATING = 1.05
IMPLIED = "temperature that the noise implies"
_ATTRIBUTES = ("temperature", "sampler_settings", "undefined_moves", "data_touched_setup")


@dataclass(frozen=True)
class Diagnosis:
    """What ``diagnose`` found: numbers by name, and warnings with advice. It prints as a short report."""

    numbers: dict[str, float]
    warnings: tuple[str, ...]
    table: str = ""

    @property
    def trusted(self) -> bool:
        """True if nothing speaks against the run."""
        return not self.warnings

    def __str__(self) -> str:
        width = max(map(len, self.numbers))
        lines = [f"  {name:<{width}}  {_round(value)}" for name, value in self.numbers.items()]
        verdict = "Nothing speaks against this run." if self.trusted else "This run should not be trusted as it is:"
        table = [self.table] if self.table else []
        return "\n".join([*table, *lines, verdict, *(f"  - {warning}" for warning in self.warnings)])


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
    settings = settings_of(tree)
    numbers = {
        "temperature": float(tree.attrs["temperature"]),
        **_movement(tree),
        **_mixing(tree, group),
    }
    # The noise heats the chain only where nothing corrects for it.
    if settings.get("penalty") is False:
        numbers[IMPLIED] = numbers["temperature"] * _heating(tree)
    warnings = list(_warnings(numbers, settings, tree))
    if "ladder" in tree.children:
        # Not at the top: it needs what is here.
        from mintmc.result.ladder_diagnosis import ladder_warnings

        warnings += ladder_warnings(tree)
    return Diagnosis(numbers, tuple(warnings))


def draws_group(tree: xarray.DataTree) -> str:
    """The group that holds the draws."""
    for group in ("posterior", "tempered_posterior"):
        if group in tree.children:
            return group
    raise ValueError(f"tree must have a group posterior or tempered_posterior, got {sorted(tree.children)}")


def settings_of(tree: xarray.DataTree) -> dict[str, Any]:
    """The settings of the sampler that made a tree."""
    return json.loads(tree.attrs["sampler_settings"])


def _movement(tree: Any) -> dict[str, float]:
    stats = tree["sample_stats"]
    noise = stats["log_ratio_noise"].values
    return {
        "acceptance": float(stats["acceptance_rate"].mean()),
        "lowest acceptance of a chain": float(stats["acceptance_rate"].mean("draw").min()),
        "undefined moves": int(tree.attrs["undefined_moves"]),
        "log-ratio noise, mean": float(noise.mean()),
        "log-ratio noise, 95%": float(np.quantile(noise, 0.95)),
    }


def _mixing(tree: Any, group: str) -> dict[str, float]:
    from arviz_stats import ess, rhat

    def over_all(summary: Any, choose: Any) -> float:
        return float(choose([choose(variable.values) for variable in summary.data_vars.values()]))

    bulk = over_all(ess(tree, group=group, method="bulk"), np.min)
    touched = float(tree["sample_stats"]["data_touched"].sum()) + sum(tree.attrs["data_touched_setup"])
    worst = {
        "ESS, bulk": bulk,
        "ESS, tail": over_all(ess(tree, group=group, method="tail"), np.min),
        "ESS per million data touched": bulk / touched * 1e6 if touched else np.nan,
    }
    if tree[group].sizes["chain"] > 1:
        worst = {"R-hat": over_all(rhat(tree, group=group), np.max)} | worst
    return worst


def _heating(tree: Any) -> float:
    noise = tree["sample_stats"]["log_ratio_noise"].values
    # Moves that are rejected anyway do not heat: weigh the noise by how likely a move is. Good to a tenth.
    weight = tree["sample_stats"]["acceptance_rate"].values
    return float(implied_temperature(np.average(noise, weights=np.maximum(weight, 1e-12))))


def _warnings(numbers: dict[str, float], settings: dict, tree: Any):
    chains = tree["sample_stats"].sizes["chain"]
    rate = numbers["lowest acceptance of a chain"]
    if rate < 0.05:
        advice = (
            "use a larger batch or a smaller alpha" if numbers["log-ratio noise, mean"] > 1 else "use a smaller step"
        )
        if settings.get("estimator") == "recycled":
            advice = "recycled estimates need lambda near tau/2 or below; use estimator='common'"
        yield f"a chain accepts only {rate:.1%} of its moves: {advice}"
    if numbers["log-ratio noise, mean"] > MAX_NOISE:
        yield (
            f"log-ratio noise {numbers['log-ratio noise, mean']:.1f} is above {MAX_NOISE:g}: "
            "use a larger batch or a smaller alpha"
        )
    hot = numbers.get(IMPLIED)
    if hot and hot > MAX_HEATING * numbers["temperature"]:
        yield (
            f"without penalty the noise heats the chain to about T = {hot:.4g}, {numbers['temperature']:.4g} wanted: "
            "use penalty=True, a larger batch or a smaller alpha"
        )
    if numbers["undefined moves"]:
        yield f"{numbers['undefined moves']} moves had an undefined ratio (NaN) and were rejected: check log_likelihood"
    stats = tree["sample_stats"]
    if "bound_violations" in stats and (violations := int(stats["bound_violations"].sum())):
        yield f"the bound was violated in {violations} steps: the draws are not what they should be; use a larger bound"
    if "overflows" in stats and (overflows := int(stats["overflows"].sum())):
        yield f"{overflows} updates of the bright rows did not fit: use a larger capacity"
    if numbers.get("R-hat", 1.0) > MAX_RHAT or np.isnan(numbers.get("R-hat", 1.0)):
        yield f"R-hat {numbers['R-hat']:.3f} is above {MAX_RHAT}: the chains disagree; run longer"
    wanted = MIN_ESS_PER_CHAIN * chains
    if not min(numbers["ESS, bulk"], numbers["ESS, tail"]) >= wanted:
        yield f"ESS is below {wanted} ({MIN_ESS_PER_CHAIN} a chain): run longer"


def _round(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
