"""Section 4.3 of the paper: a mixture of 50 Gaussians with one of its means apart, whose posterior has 50 modes.

    x_i ~ (1/d) sum_j N(theta_j, 1),    flat prior,    n observations at theta* = (2, 0, ..., 0),    d = 50, n = 1e5.

The model does not know the order of the means, so there are d modes of equal weight, at 2 e_j. A chain at T has
energies of T (d/4 + 1/2) or so above the mode (two directions are regular and give T/2, the others are flat to second
order and give T/4), with a standard deviation of T sqrt(d/4 + 1/2): neighbouring rungs overlap only if their
temperatures have a ratio of about 1.4. The paper's ladder ends with a ratio of 19.4; ours goes on down to T = 1.

Two things decide how many of the modes survive the way down. Rings must be wide, best a single one: from a low energy,
a jump into a narrow ring finds only the few states of the hotter rung that were ever as low, and the few modes that
they know, one bottleneck on every rung. And local moves must be good, and made often enough: the mean of all thetas is
known to n^(-1/2), each of them on its own only to n^(-1/4), so steps are shorter along (1, ..., 1).

Beside it, leaps: from mode to mode at T = 1, with modes that hot chains on batches found and local chains fitted.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from mintmc import (
    MINTEE,
    EquiEnergy,
    Ladder,
    Langevin,
    Leaps,
    MetropolisHastings,
    ParallelTempering,
    Posterior,
    QuantileRings,
    SpacedRings,
    sample,
)
from mintmc.experiments.fifty_modes import figure as drawing
from mintmc.experiments.fifty_modes import numbers as counting
from mintmc.experiments.fifty_modes import page
from mintmc.experiments.fifty_modes.scale import SCALES, Scale, mixed_ladder

PARTS = ("compile_time", "warmup_time", "sampling_time")
LARGE_N, LARGE_RUNGS = 1_000_000, 21  # 1.4^20 = 837


def true_params(d: int) -> np.ndarray:
    """theta* = (2, 0, ..., 0), one of the modes."""
    return np.array([2.0] + [0.0] * (d - 1), np.float32)


def simulate(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Observations at theta*."""
    rng = np.random.default_rng(seed)
    result: np.ndarray = (rng.normal(size=n) + true_params(d)[rng.integers(0, d, n)]).astype(np.float32)
    return result


def log_likelihood(theta: Any, x: Any) -> Any:
    """Log density of one observation, without what does not depend on theta; |x| < 13 lest it overflow."""
    return jnp.log(jnp.sum(jnp.exp(x * theta - 0.5 * theta**2)))


def local_moves(d: int) -> Langevin:
    """Langevin moves, 0.4 times as long along (1, ..., 1)."""
    return Langevin(preconditioner=np.eye(d) - (1 - 0.4**2) * np.ones((d, d)) / d)


def jump_probabilities(ladder: Ladder, n: int) -> tuple[float, ...]:
    """More jumps where they cost nothing (between rungs that read all data), or no more than a move."""
    return tuple(0.5 if rows == n else 0.25 for rows in ladder.rows(n))


def ours(sizes: Scale) -> EquiEnergy:
    """The equi-energy sampler on a ladder that reaches T = 1, with batches on the hot rungs: MINTEE."""
    return EquiEnergy(
        sizes.ladder,
        proposal=local_moves(sizes.d),
        jump_probability=jump_probabilities(sizes.ladder, sizes.n),
        rings=QuantileRings(sizes.rings),
        capacity=sizes.capacity,
        share_rings=True,
        reference=jnp.asarray(true_params(sizes.d)),
        feed=sizes.feed,
        round_length=sizes.round_length,
        steps=sizes.steps,
    )


def published(sizes: Scale) -> EquiEnergy:
    """The paper's configuration."""
    reference = jnp.asarray(true_params(sizes.d))
    return MINTEE.published(reference=reference, **sizes.published).for_data(sizes.n)


def on_all_data(sampler: EquiEnergy) -> EquiEnergy:
    """The same, with all data on every rung."""
    return replace(sampler, ladder=Ladder(sampler.settled_ladder.temperatures))


@dataclass(frozen=True)
class Runner:
    """Runs the parts one after the other, and says so."""

    sizes: Scale
    progress: bool

    def __call__(self, part: str, posterior: Posterior, sampler: Any, init: np.ndarray, **settings: Any) -> Any:
        """One run."""
        if self.progress:
            print(f"fifty-modes: {part}", file=sys.stderr, flush=True)
        settings = {"chains": self.sizes.chains, "progress": self.progress, "audit": False} | settings
        # Every chain at the same point, as in the paper.
        return sample(posterior, sampler, init=lambda key: jnp.asarray(init), **settings)


def run_all(sizes: Scale, progress: bool) -> dict[str, Any]:
    """Every part but the large one: the trees."""
    posterior = Posterior(log_likelihood, simulate(sizes.n, sizes.d))
    origin, mode = np.zeros(sizes.d, np.float32), true_params(sizes.d)
    run = Runner(sizes, progress)
    short = sizes.sweeps_compared
    brief = replace(ours(sizes), feed=short, steps=None)
    return {
        "ours": run("ours", posterior, ours(sizes), origin, draws=sizes.draws, warmup=sizes.warmup, seed=1),
        "published": run(
            "the paper's configuration",
            posterior,
            published(sizes),
            origin,
            draws=sizes.published_draws,
            warmup=sizes.published_warmup,
            seed=2,
        ),
        "plain": run(
            "plain MCMC",
            posterior,
            MetropolisHastings(local_moves(sizes.d)),
            mode,
            draws=sizes.plain_draws,
            warmup=sizes.reference_warmup,
            seed=3,
        ),
        "leaps": run(
            "leaps",
            posterior,
            Leaps(),
            origin,
            draws=sizes.leap_draws,
            warmup=sizes.leap_warmup,
            seed=7,
        ),
        "reference": run(
            "reference: parallel tempering on all data",
            posterior,
            ParallelTempering(
                Ladder(sizes.ladder.temperatures), proposal=local_moves(sizes.d), reference=jnp.asarray(mode)
            ),
            origin,
            draws=sizes.reference_scans,
            warmup=sizes.reference_warmup,
            seed=4,
        ),
        # For the cost alone: step for step the same, with and without batches.
        **{
            name: run(f"cost: {name}", posterior, sampler, origin, draws=short, warmup=short, seed=5)
            for name, sampler in (("mixed", brief), ("full", on_all_data(brief)))
        },
    }


def costs(sizes: Scale, trees: dict[str, Any], progress: bool) -> dict[str, Any]:
    """Data and wall time of a sweep with and without batches, here and at n = 1e6 with a ladder up to T = 837."""
    alike = replace(sizes, steps=None)
    large = mixed_ladder(LARGE_N, growth=1.4, rungs=LARGE_RUNGS, full_below=12)
    plain = replace(sizes, d=50, n=LARGE_N, ladder=large, steps=None, chains=1)
    mixed, large_mixed = ours(alike), ours(plain)
    full, large_full = on_all_data(mixed), on_all_data(large_mixed)
    numbers: dict[str, Any] = {
        "mintee": counting.cost_numbers(trees["mixed"], sizes.n),
        "full": counting.cost_numbers(trees["full"], sizes.n),
        "mintee_counted": counting.counted_data(mixed, sizes.n),
        "full_counted": counting.counted_data(full, sizes.n),
        "large_mintee_counted": counting.counted_data(large_mixed, LARGE_N),
        "large_full_counted": counting.counted_data(large_full, LARGE_N),
    }
    if sizes.large_sweeps:
        posterior = Posterior(log_likelihood, simulate(LARGE_N, plain.d))
        run, short = Runner(plain, progress), sizes.large_sweeps
        for name, sampler in (("large_mintee", large_mixed), ("large_full", large_full)):
            brief = replace(sampler, feed=short, round_length=short)
            origin = np.zeros(plain.d, np.float32)
            tree = run(f"cost at n = 1e6: {name}", posterior, brief, origin, draws=short, warmup=short, seed=6)
            numbers[name] = counting.cost_numbers(tree, LARGE_N)
    return numbers


def numbers(sizes: Scale, trees: dict[str, Any], progress: bool = False) -> dict[str, Any]:
    """What was measured, part by part."""
    of = counting
    ladders = {name: trees[name]["ladder"] for name in ("ours", "published", "reference")}
    theta = {name: trees[name]["posterior"]["theta"].values for name in ("ours", "leaps", "published", "plain")}
    edges = SpacedRings(c=10.0).edges(published(sizes).settled_ladder)
    above = float(ladders["reference"].attrs["reference_energy"])
    gap = float(ladders["published"]["temperature"][1])
    warm = of.nearest_rungs(ladders["reference"]["temperature"].values, [gap])[0]
    shown = of.nearest_rungs(ladders["ours"]["temperature"].values, ladders["published"]["temperature"].values)
    return {
        "modes": of.mode_numbers(theta["ours"]),
        "leaps": of.mode_numbers(theta["leaps"]) | of.leap_numbers(trees["leaps"]),
        "energy": {
            **{name: of.energy_numbers(ladders[name]["energy"].values[0]) for name in ladders},
            "leaps": of.energy_numbers(trees["leaps"]["sample_stats"]["energy"].values - above),
        },
        "rungs": of.rung_numbers(ladders["ours"], ladders["reference"]),
        "round_trips": int(ladders["reference"]["round_trips"].sum()),
        "published": {
            "rungs": of.jump_numbers(ladders["published"]),
            # On batches energies are noisy; what is exact near the gap's upper end comes from the reference.
            "exact_above_the_gap": {
                "temperature": float(ladders["reference"]["temperature"][warm]),
                **of.energy_numbers(ladders["reference"]["energy"].values[warm]),
            },
            "modes_visited_by_each_chain": [len(np.unique(chain)) for chain in of.modes_of(theta["published"])],
        },
        "plain": {
            "draws": sizes.plain_draws,
            "modes_visited_by_each_chain": [len(np.unique(chain)) for chain in of.modes_of(theta["plain"])],
            "data_read": float(trees["plain"]["sample_stats"]["data_touched"].sum()),
        },
        "data_read": float(trees["ours"]["sample_stats"]["data_touched"].sum()),
        "rings": {
            "edges": list(edges),
            "ours_rungs": shown,
            "ours": of.occupancy(ladders["ours"]["energy"].values, edges)[shown].tolist(),
            "published": of.occupancy(ladders["published"]["energy"].values, edges).tolist(),
        },
        "costs": costs(sizes, trees, progress),
        "seconds": {name: float(tree.attrs["sampling_time"]) for name, tree in trees.items()},
        "seconds_of_all": {name: float(sum(tree.attrs[part] for part in PARTS)) for name, tree in trees.items()},
    }


def reproduce(scale: str, out: Path, progress: bool = True) -> Path:
    """Run the experiment; returns the path of the figure. Numbers and a page go beside it."""
    sizes = SCALES[scale]
    out.mkdir(parents=True, exist_ok=True)  # before the work, not after
    trees = run_all(sizes, progress)
    measured = numbers(sizes, trees, progress)
    theta = {name: trees[name]["posterior"]["theta"].values for name in ("ours", "leaps", "plain")}
    clusters = drawing.clusters(theta["ours"], sizes.shown)
    title = f"{sizes.d} modes: n = {sizes.n:,}, {len(sizes.ladder)} rungs up to T = {sizes.ladder.temperatures[-1]:.0f}"
    figure = drawing.draw(theta, measured, clusters, title, out / "fifty-modes.png")
    page.write(scale, sizes.d, sizes.n, measured, clusters, out, figure)
    return figure
