"""How much of the 50-mode experiment is run, and on which ladder."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from mintmc import Ladder


def mixed_ladder(n: int, growth: float, rungs: int, full_below: float) -> Ladder:
    """Temperatures 1, g, g^2, ...; batches of n/T rows from ``full_below`` on."""
    temperatures = [growth**k for k in range(rungs)]
    return Ladder(temperatures, [int(n / T) if full_below <= T else None for T in temperatures])


@dataclass(frozen=True)
class Scale:
    """How much to run. Draws, warm-up and scans are those of each chain."""

    d: int
    n: int
    ladder: Ladder
    draws: int
    warmup: int  # of every rung
    feed: int  # draws of a rung before the next starts
    published_draws: int
    published_warmup: int
    plain_draws: int
    leap_draws: int
    leap_warmup: int
    reference_scans: int
    reference_warmup: int
    sweeps_compared: int  # of full-batch EE, for its cost
    large_sweeps: int  # the same at n = 1e6, with and without batches; 0 counts data and runs nothing
    shown: int  # draws in t-SNE and k-means
    chains: int = 2
    steps: tuple[int, ...] | None = None
    rings: int = 1
    capacity: int = 60_000
    round_length: int = 500
    published: dict[str, Any] = field(default_factory=dict)  # changes to the paper's configuration


STANDARD = Scale(
    d=50,
    n=100_000,
    ladder=mixed_ladder(100_000, growth=1.4, rungs=15, full_below=12),
    draws=10_000,
    warmup=600,
    feed=30_000,
    published_draws=5000,
    published_warmup=1000,
    plain_draws=10_000,
    leap_draws=2000,
    leap_warmup=300,
    reference_scans=1500,
    reference_warmup=300,
    sweeps_compared=40,
    large_sweeps=20,
    shown=2000,
    # The hottest rungs find the modes, and cost next to nothing.
    steps=(1,) * 8 + (2,) * 7,
)

SCALES = {
    # One batch size, so that there is little to compile.
    "quick": Scale(
        d=10,
        n=10_000,
        ladder=Ladder([2.2**k for k in range(6)], [None] * 4 + [600] * 2),
        steps=(1, 1, 1, 1, 6, 6),
        draws=4000,
        warmup=500,
        feed=5000,
        published_draws=2000,
        published_warmup=500,
        plain_draws=2000,
        leap_draws=1500,
        leap_warmup=300,
        reference_scans=2500,
        reference_warmup=500,
        sweeps_compared=50,
        large_sweeps=0,
        shown=800,
        published={"smallest_batch": 200, "rungs": 3},
    ),
    "standard": STANDARD,
    "paper": replace(
        STANDARD,
        draws=150_000,
        published_draws=150_000,
        published_warmup=10_000,
        plain_draws=150_000,
        leap_draws=20_000,
        feed=150_000,
        reference_scans=20_000,
    ),
}
