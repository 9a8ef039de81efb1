"""Whether a run with leaps can be trusted: have all modes been found, do leaps go, do chains agree on the weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mintmc.result.diagnosis import MAX_NOISE
from mintmc.result.ladder_diagnosis import disagreement, mode_numbers
from mintmc.result.reading import thinned

MAX_UNSEEN = 0.5
"""Modes that exploring is expected to have missed."""
LOWER = 1.0
"""Nats that no draw can be below the end of a descent, but for rounding."""
MISSED = 0.02
"""Weight, by energy and width, of a mode that draws should have visited."""
MIN_LEAPS = 0.01
"""Acceptance of leaps below which weights take too long."""


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
                "leaps do not know; run again with chains that start there (init=PerChain(...))"
            )
    if late := tree.attrs.get("modes_late"):
        yield (
            f"{len(late)} modes that leaps do not know were found when all draws were made (attribute modes_late): "
            "run again with more starts=, or with chains that start there (init=PerChain(...))"
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


def leap_notes(tree: Any) -> Iterator[str]:
    """What it cannot know."""
    if np.isnan(float(tree.attrs["modes_unseen"])):
        yield "the modes were given: others would not be seen; leave modes= out to have them sought"
    elif tree["modes"].sizes["mode"] == 1:
        yield "one mode was found, so there were no leaps: a mode that no hot chain came near would not be seen"
    else:
        yield "modes that no hot chain came near are not among those that are estimated to be missing"
