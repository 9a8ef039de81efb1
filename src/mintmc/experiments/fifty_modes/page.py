"""The page of the 50-mode experiment: claims beside measurements, and tables of rungs, rings and cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mintmc.experiments.fifty_modes.figure import Clusters
from mintmc.experiments.fifty_modes.numbers import PAPER_BATCHES, PAPER_OCCUPANCY, PAPER_TEMPERATURES
from mintmc.experiments.report import Page

BAR = 0.03
"""How far a rung's mean energy may be from the reference."""


def write(scale: str, d: int, n: int, measured: dict[str, Any], some: Clusters | None, out: Path, figure: Path) -> None:
    """Write fifty-modes.json and fifty-modes.md."""
    page = Page("fifty-modes", scale, f"A posterior of {d} modes (section 4.3, Figure 3, Table 2)")
    _claims(page, d, measured, some)
    for name, value in _facts(measured).items():
        page.fact(name, value)
    page.note(_story(d, measured))
    page.note(rung_table(measured["rungs"]))
    page.note(published_table(measured["published"]["rungs"]))
    page.note(ring_tables(measured))
    page.note(cost_table(measured["costs"], n))
    page.write(out, figure)
    # The page keeps single numbers; those of every rung go beside them.
    path = out / "fifty-modes.json"
    content = json.loads(path.read_text()) | {"parts": measured}
    path.write_text(json.dumps(content, indent=2) + "\n")


def _claims(page: Page, d: int, measured: dict[str, Any], some: Clusters | None) -> None:
    modes, rungs, plain = measured["modes"], measured["rungs"], measured["plain"]
    truth = measured["energy"]["reference"]
    for label, who in (("ours", modes), ("leaps", measured["leaps"])):
        share, error = who["share_above_1"], who["share_error"]
        page.claim("modes visited", label, f"{d}", f"{who['modes_visited']}")
        z = (share - 1 / d) / error if error else None
        page.claim("share of draws with theta_1 > 1", label, f"{1 / d:.3f}", f"{share:.4f} ± {error:.4f}", z=z)
        worth = f"{who['relative_variance']:.3f} (as {who['independent_draws_worth']:.0f} independent draws)"
        page.claim("relative variance of the mode weights", label, "0", worth)
        page.claim("seconds in all", label, "", f"{measured['seconds_of_all'][label]:.0f}")
        got = measured["energy"][label]
        z = (got["mean"] - truth["mean"]) / float(np.hypot(got["error"], truth["error"]))
        for name, width in (("mean", True), ("sd", False)):
            expected, found = (f"{e[name]:.2f}" + (f" ± {e['error']:.2f}" if width else "") for e in (truth, got))
            what = f"energy above the mode at T = 1, {name}"
            page.claim(what, label, f"{expected} (reference)", found, z if width else None)
    worst = max(rungs, key=lambda rung: abs(rung["relative_difference"]))
    page.claim(
        "mean energy of every rung: largest difference from the reference",
        "ours",
        f"below {BAR:.0%}",
        f"{worst['relative_difference']:+.1%} at T = {worst['temperature']:.3g}",
        worst["z"],
    )
    if some is not None:
        page.claim("elbow of k-means", "ours", f"C = {d}", f"C = {some.elbow}")
    bottom = measured["published"]["rungs"][0]["jump_acceptance"]
    page.claim("jumps accepted at T = 1", "the paper's configuration", "more than none", f"{bottom:.2g} of those tried")
    for name, label in (("published", "the paper's configuration"), ("plain", "plain MCMC")):
        seen = " and ".join(map(str, measured[name]["modes_visited_by_each_chain"]))
        page.claim("modes that each chain visits", label, str(d) if name == "published" else "1", seen)
    costs = measured["costs"]
    ratio = costs["full"]["data_per_sweep"] / costs["mintee"]["data_per_sweep"]
    page.claim("data read per sweep: full batches over MINTEE", "ours", "K^2 (paper, as an order)", f"{ratio:.2f}")
    page.fact("plain MCMC: draws of each chain", plain["draws"])


def _facts(measured: dict[str, Any]) -> dict[str, float]:
    modes, costs = measured["modes"], measured["costs"]
    facts = {
        "ours: switches of mode per draw": modes["switches_per_draw"],
        "ours: standard error of the share by batch means": modes["share_error_of_batch_means"],
        "ours: data read, times that of plain MCMC": measured["data_read"] / measured["plain"]["data_read"],
        "leaps: modes found": measured["leaps"]["modes_found"],
        "leaps: modes estimated to be unseen": measured["leaps"]["modes_unseen"],
        "leaps: acceptance": measured["leaps"]["leap_acceptance"],
        "reference: round trips": measured["round_trips"],
        "cost: wall time of full batches over MINTEE": costs["full"]["seconds_per_sweep"]
        / costs["mintee"]["seconds_per_sweep"],
    }
    for k, value in enumerate(modes["relative_variance_of_each_chain"]):
        facts[f"ours: relative variance of chain {k}"] = value
    return facts | {f"seconds of sampling: {name}": value for name, value in measured["seconds"].items()}


def _story(d: int, measured: dict[str, Any]) -> str:
    published = measured["published"]["rungs"]
    cold, warm, exact = published[0], published[1], measured["published"]["exact_above_the_gap"]
    jumping = [f"{rung['temperature']:.3g}" for rung in published[1:-1] if rung["jump_acceptance"] > 0.01]
    visited = measured["modes"]["modes_visited"]
    stays = max(measured["plain"]["modes_visited_by_each_chain"]) == 1
    rungs = measured["rungs"][:-1]
    least = min(rung["jump_acceptance"] for rung in rungs)
    return "\n".join(
        [
            f"- **The paper says** that a ladder which goes from T = {warm['temperature']:.1f} straight to T = 1 "
            f"(19.4 in the paper) samples all modes at T = 1. **We measure** that its rung 0 accepts "
            f"{cold['jump_acceptance']:.2g} of the jumps that it tries, **because** energies at T = 1 are "
            f"{cold['mean']:.1f} ± {cold['sd']:.1f}, largest {cold['largest']:.0f}, and at T = "
            f"{exact['temperature']:.1f} they are {exact['mean']:.0f} ± {exact['sd']:.0f}, smallest "
            f"{exact['smallest']:.0f} (exact, from the reference). Estimated on its batches, those of the rung at "
            f"T = {warm['temperature']:.1f} are {warm['mean']:.0f} ± {warm['sd']:.0f}: part of that spread is noise. "
            f"Jumps are accepted at T = {', '.join(jumping) or 'no rung'}.",
            f"- **The paper says** that MINTEE visits all modes with roughly equal probabilities. **We measure** "
            f"{visited} of {d} modes on a ladder without that gap. Neighbours overlap: jumps are accepted at a rate of "
            f"{least:.2f} or more on every rung. But the weights are only worth "
            f"{measured['modes']['independent_draws_worth']:.0f} independent draws, **because** they lose accuracy "
            "from rung to rung: each knows the modes only from the low-energy states that the hotter one left in its "
            "rings.",
            f"- Leaps, which the paper does not have, go from mode to mode at T = 1: their weights are worth "
            f"{measured['leaps']['independent_draws_worth']:.0f} independent draws after "
            f"{measured['seconds_of_all']['leaps']:.0f} seconds in all, ours after "
            f"{measured['seconds_of_all']['ours']:.0f}.",
            "- **The paper says** that plain MCMC does not leave the mode where it starts. **We measure** "
            f"{'the same' if stays else 'that it does'} in {measured['plain']['draws']:,} draws of each chain.",
            "- The standard error of the share is the spread of the shares of all coordinates, which are exchangeable. "
            "Batch means within a chain are too small: what the rings hold does not change from batch to batch.",
        ]
    )


def rung_table(rungs: Sequence[dict[str, Any]]) -> str:
    """Energies of every rung beside the reference."""
    lines = [
        "## Rungs: mean energy / T, ours and parallel tempering on all data\n",
        "| T | batch | ours | reference | difference | z | acceptance | noise | jumps accepted | swaps accepted |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rungs:
        lines.append(
            f"| {r['temperature']:.4g} | {r['batch_size']:,} | {r['ours']:.2f} ± {r['error']:.2f} | "
            f"{r['reference']:.2f} ± {r['reference_error']:.2f} | {r['relative_difference']:+.1%} | {r['z']:+.1f} | "
            f"{r['acceptance']:.2f} | {r['noise']:.2f} | "
            f"{_known(r['jump_acceptance'], '.2f')} | {_known(r['swap_rate'], '.2f')} |"
        )
    return "\n".join(lines)


def published_table(rungs: Sequence[dict[str, Any]]) -> str:
    """What the published configuration does."""
    lines = [
        "## The paper's configuration, rung by rung\n",
        "| T | batch | energy above the mode | smallest | largest | jumps accepted | jumps into empty rings |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in rungs:
        lines.append(
            f"| {r['temperature']:.2f} | {r['batch_size']:,} | {r['mean']:.1f} ± {r['sd']:.1f} | "
            f"{r['smallest']:.1f} | {r['largest']:.1f} | "
            f"{_known(r['jump_acceptance'], '.2g')} | {_known(r['empty_rings'], '.0%')} |"
        )
    return "\n".join(lines)


def _known(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def ring_tables(measured: dict[str, Any]) -> str:
    """Percentages of draws in each ring: measured, and Table 2 of the paper."""
    rings, rungs = measured["rings"], measured["rungs"]
    shown = [rungs[k] for k in rings["ours_rungs"]]
    configured = measured["published"]["rungs"]
    edges = ", ".join(f"{edge:.0f}" for edge in rings["edges"])
    paper = (PAPER_TEMPERATURES, PAPER_BATCHES, np.asarray(PAPER_OCCUPANCY) / 100)
    parts = [
        f"## Percentage of draws in each ring, edges at {edges} above the mode\n\n"
        "Energies of rungs on batches are estimates, and their noise widens these rows. The lines of our ladder are "
        "those of the rungs nearest to the paper's temperatures."
    ]
    for title, (temperatures, batches, shares) in (
        ("Ours", _column(shown, rings["ours"])),
        ("The paper's configuration, run here", _column(configured, rings["published"])),
        ("The paper's Table 2 (d = 50, n = 1e5)", paper),
    ):
        count = len(shares[0])
        head = ["< H1", *(f"H{j} to H{j + 1}" for j in range(1, count - 1)), f">= H{count - 1}"]
        lines = [f"| {title}: T | batch | {' | '.join(head)} |", "|---" * (count + 2) + "|"]
        for temperature, batch, row in zip(temperatures, batches, shares, strict=True):
            cells = " | ".join(f"{100 * share:.2f}" for share in row)
            lines.append(f"| {temperature:.2f} | {batch:,} | {cells} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _column(rungs: Sequence[dict[str, Any]], shares: Sequence[Any]) -> tuple[list[Any], list[Any], Sequence[Any]]:
    return [rung["temperature"] for rung in rungs], [rung["batch_size"] for rung in rungs], shares


def cost_table(costs: dict[str, Any], n: int) -> str:
    """MINTEE beside the equi-energy sampler on all data."""
    lines = [
        "## Cost of a sweep of all rungs\n",
        "| n | sampler | data read, in units of n | the same, counted | seconds | sweeps timed |",
        "|---|---|---|---|---|---|",
    ]
    for size, prefix in ((n, ""), (1_000_000, "large_")):
        for name, label in (("mintee", "MINTEE"), ("full", "equi-energy, all data")):
            run = costs.get(prefix + name)
            timed = (f"{run['data_per_sweep']:.2f}", f"{run['seconds_per_sweep']:.3g}", run["sweeps"]) if run else None
            data, seconds, sweeps = timed or ("", "", "not run")
            counted = costs[f"{prefix}{name}_counted"]
            lines.append(f"| {size:,} | {label} | {data} | {counted:.2f} | {seconds} | {sweeps} |")
    here, large = (costs[f"{p}full_counted"] / costs[f"{p}mintee_counted"] for p in ("", "large_"))
    lines.append(
        f"\nFull batches read {here:.2f} times as much here and, counted, {large:.2f} times at n = 1e6 with 21 rungs "
        "up to T = 837 (d = 50). It is no more, because on all data a jump is free, the energies of stored states "
        "being exact, and because the coldest rungs read all data in either case: their batches would not be smaller."
    )
    return "\n".join(lines)
