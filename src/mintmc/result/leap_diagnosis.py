"""Whether a run with leaps can be trusted: have all modes been found, do leaps go, do chains agree on the weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mintmc.result.diagnosis import MAX_NOISE
from mintmc.result.ladder_diagnosis import disagreement, mode_numbers
from mintmc.result.reading import rows_touched, thinned

MAX_UNSEEN = 0.5
"""Modes that exploring is expected to have missed."""
LOWER = 1.0
"""Nats that no draw can be below the end of a descent, but for rounding."""
MISSED = 0.02
"""Weight, by energy and width, of a mode that draws should have visited."""
MIN_LEAPS = 0.01
"""Acceptance of leaps below which weights take too long."""
MAX_CROSSED = 0.01
"""Local moves from one mode to another, where a barrier stands between them."""
_DRAWS_CROSSED = 20_000
"""Of a chain, the last, that are asked for it."""


def leap_numbers(tree: Any) -> dict[str, float]:
    """What there is to judge."""
    modes, stats = tree["modes"], thinned(tree["sample_stats"], "mode", "leap_rate", "leap_noise")
    rates = stats["leap_rate"].values
    unseen, leaps = float(tree.attrs["modes_unseen"]), modes.sizes["mode"] > 1
    noise = stats["leap_noise"].values
    known = np.isfinite(noise)
    return {
        "modes": modes.sizes["mode"],
        **({} if np.isnan(unseen) else {"modes_unseen": unseen}),
        "leap_acceptance": float(rates.mean()) if leaps else 0.0,
        # Weighed by how likely a leap is, as that of other moves.
        "leap_noise": float(np.average(noise[known], weights=rates[known] + 1e-12)) if leaps and known.any() else 0.0,
        **(mode_numbers(stats["mode"].values) if leaps else {}),
    }


def leap_warnings(tree: Any, numbers: dict[str, float]) -> Iterator[str]:
    """What speaks against the run, by its ``leap_numbers``."""
    if numbers.get("modes_unseen", 0.0) > MAX_UNSEEN:
        once = int((tree["modes"]["starts"].values == 1).sum())
        yield (
            f"about {numbers['modes_unseen']:.1f} modes were not seen ({once} of {numbers['modes']} were reached only "
            "once): explore more (starts=, or hot chains of your own, explore=)"
        )
    if "energy" in tree["sample_stats"]:
        lowest = float(tree["sample_stats"]["energy"].min())
        below = float(tree["modes"]["energy"].min()) - lowest
        if below > LOWER:
            at = np.unravel_index(
                int(tree["sample_stats"]["energy"].values.argmin()), tree["sample_stats"]["energy"].shape
            )
            yield (
                f"chain {at[0]}, draw {at[1]} has an energy {below:.3g} below all modes that are known: a mode that "
                "leaps do not know; run again from there, "
                f"mintmc.sample(posterior, sampler, init=mintmc.params_at(tree, {at[0]}, {at[1]}), ...)"
            )
    if late := tree.attrs.get("modes_late"):
        chains = max(len(late), tree["sample_stats"].sizes["chain"])
        yield (
            f"{len(late)} modes that leaps do not know were found when all draws were made (attribute modes_late): run "
            "again from there, "
            f"mintmc.sample(posterior, sampler, init=mintmc.late_starts(posterior, tree), chains={chains}, ...)"
        )
    if tree.attrs.get("modes_crowded_out"):
        yield f"{tree.attrs['modes_crowded_out']} modes more were found than there is room for: use more places"
    if numbers["modes"] > 1 and numbers["leap_acceptance"] < MIN_LEAPS:
        yield (
            f"only {numbers['leap_acceptance']:.2%} of the leaps are accepted: the fits are poor; use a longer warm-up "
            "or local moves that mix better"
        )
    if numbers["leap_noise"] > MAX_NOISE:
        yield f"log-ratio noise {numbers['leap_noise']:.1f} of leaps is above {MAX_NOISE:g}: use a larger batch"
    modes = tree["modes"]
    if numbers["modes"] > 1:
        labels = thinned(tree["sample_stats"], "mode")["mode"].values
        yield from disagreement(labels, "run longer, with a longer warm-up for better fits")
    is_missed = (modes["chain_weight"].values.max(axis=0) == 0) & (modes["fitted_weight"].values > MISSED)
    if is_missed.any():
        yield (
            f"{is_missed.sum()} modes that should have weight were never visited (mode {np.flatnonzero(is_missed)[0]}: "
            f"{modes['fitted_weight'].values[is_missed][0]:.2g} by its energy and width): leaps to them fail"
        )


def _crossed(tree: Any) -> float:
    """How often a local move leads to another mode: seen where every step is a draw."""
    if int(tree.attrs["thin"]) > 1:
        return 0.0
    last = tree["sample_stats"].to_dataset()[["mode", "leap_from"]].isel(draw=slice(-_DRAWS_CROSSED, None)).load()
    before, after = last["mode"].values[:, :-1], last["leap_from"].values[:, 1:]
    return float((before != after).mean()) if before.size else 0.0


def leap_notes(tree: Any) -> Iterator[str]:
    """What it cannot know, and what looking for it took."""
    if rows := tree.attrs.get("data_touched_looking_again"):
        share = rows / rows_touched(tree)
        yield f"looking for other modes when all draws were made took {share:.2g} of all rows that were read"
    if (share := _crossed(tree)) > MAX_CROSSED:
        yield (
            f"{share:.1%} of the local moves go from one mode to another: modes that are not apart (closer than their "
            "width, or a continuum such as a ring) are parts of one valley, between which leaps are of little use"
        )
    if np.isnan(float(tree.attrs["modes_unseen"])):
        yield "the modes were given: others would not be seen; leave modes= out to have them sought"
        if merged := int((tree["modes"]["starts"].values - 1).sum()):
            yield f"{merged} of the modes that were given are one with another: no barrier stands between them"
    elif tree["modes"].sizes["mode"] == 1:
        yield "one mode was found, so there were no leaps: a mode that no hot chain came near would not be seen"
    else:
        yield "modes that no hot chain came near are not among those that are estimated to be missing"
