"""The mixture of 20 Gaussians in the plane on which Kou, Zhou & Wong (2006) introduced the equi-energy sampler.

Case (a): weights 0.05, standard deviations 0.1; the modes are up to 31 standard deviations from their neighbours. Case
(b): weights in inverse proportion to the distance from (5, 5), variances of a twentieth of that distance.

Settings are theirs: T = 1, 2.8, 7.7, 21.6, 60, ring edges 2, 6.3, 20, 63.2, jumps with probability 0.1, a start in the
unit square, 20 runs. But their local steps are of 0.25 sqrt(T); ours are adapted during warm-up, on every rung, to an
acceptance of 0.3.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from mintmc import EquiEnergy, Ladder, ParallelTempering, Posterior, RandomWalk, sample
from mintmc.experiments.report import Page
from mintmc.result.plots import INK

LADDER = Ladder([1, 2.8, 7.7, 21.6, 60])
EDGES = (2.0, 6.3, 20.0, 63.2)
MEANS = np.array(
    [
        *[(2.18, 5.76), (8.67, 9.59), (4.24, 8.48), (8.41, 1.68), (3.93, 8.82)],
        *[(3.25, 3.47), (1.70, 0.50), (4.59, 5.60), (6.91, 5.81), (6.87, 5.40)],
        *[(5.41, 2.65), (2.70, 7.88), (4.98, 3.70), (1.14, 2.39), (8.33, 9.50)],
        *[(4.93, 1.50), (1.83, 0.09), (2.26, 0.31), (5.54, 6.86), (1.69, 8.11)],
    ]
)
LABELS = {"ee": "equi-energy", "pt": "parallel tempering"}
COLOURS = {"ee": INK["mint"], "pt": INK["full"]}
MOMENTS = ("E X1", "E X2", "E X1^2", "E X2^2")


class Published(NamedTuple):
    """A line of Kou et al.'s table for case (a): means and standard deviations over 20 runs."""

    ee: tuple[float, float]
    pt: tuple[float, float]
    ratio: float  # of mean squared errors, PT over EE


PUBLISHED = (
    Published((4.5019, 0.107), (4.4185, 0.170), 2.7),
    Published((4.9439, 0.139), (4.8790, 0.283), 3.8),
    Published((25.9241, 1.098), (24.9856, 1.713), 2.6),
    Published((34.4763, 1.373), (33.5966, 2.867), 3.8),
)


@dataclass(frozen=True)
class Scale:
    """How much to run."""

    warmup: int  # of each run
    draws: int
    runs: int = 20


SCALES = {"quick": Scale(5000, 10_000), "paper": Scale(50_000, 50_000)}


@dataclass(frozen=True)
class Mixture:
    """Gaussians with weights that sum to 1 and a variance each."""

    weights: np.ndarray
    variances: np.ndarray

    @classmethod
    def case(cls, name: str) -> Mixture:
        """Case "a" or "b"."""
        if name == "a":
            return cls(np.full(20, 0.05), np.full(20, 0.01))
        distance = np.linalg.norm(MEANS - 5, axis=1)
        return cls((1 / distance) / (1 / distance).sum(), distance / 20)

    def moments(self) -> np.ndarray:
        """Exact E X1, E X2, E X1^2, E X2^2."""
        return np.concatenate([self.weights @ MEANS, self.weights @ (MEANS**2 + self.variances[:, None])])

    def posterior(self) -> Posterior:
        """The density, normalised: ring edges are absolute energies."""
        means, variances = jnp.asarray(MEANS, jnp.float32), jnp.asarray(self.variances, jnp.float32)
        scale = jnp.asarray(np.log(self.weights / (2 * np.pi * self.variances)), jnp.float32)

        def log_density(x: Any) -> Any:
            return logsumexp(scale - jnp.sum((x - means) ** 2, axis=1) / (2 * variances))

        return Posterior.from_density(log_density)


def samplers() -> dict[str, Any]:
    """Both samplers, on the same ladder."""
    return {
        "ee": EquiEnergy(LADDER, proposal=RandomWalk(), jump_probability=0.1, rings=EDGES, truncate=True, feed=20_000),
        "pt": ParallelTempering(LADDER, proposal=RandomWalk()),
    }


def run(mixture: Mixture, sampler: Any, sizes: Scale, seed: int, progress: bool) -> Any:
    """Independent runs, as chains of one call; each starts in the unit square and has its own rings."""
    settings: dict[str, Any] = {"draws": sizes.draws, "warmup": sizes.warmup, "chains": sizes.runs, "seed": seed}
    return sample(
        mixture.posterior(), sampler, init=lambda key: jax.random.uniform(key, (2,)), progress=progress, **settings
    )


def moments_of(x: np.ndarray) -> np.ndarray:
    """The four moments of every run's draws (run, draw, 2): an array (run, 4)."""
    x = np.asarray(x, float)
    return np.concatenate([x.mean(axis=1), (x**2).mean(axis=1)], axis=1)


def mode_weights(x: np.ndarray) -> np.ndarray:
    """Share of every run's draws that are nearest to each mean: (run, 20)."""
    return np.array([np.bincount(_nearest(chain), minlength=20) / len(chain) for chain in x])


def _nearest(x: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.argmin(((x[:, None, :] - MEANS) ** 2).sum(axis=-1), axis=1)
    return result


def distances(estimates: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Standard errors between the mean of the runs' estimates (run, moment) and the truth."""
    result: np.ndarray = (estimates.mean(axis=0) - exact) / (estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates)))
    return result


def reproduce(scale: str, out: Path, progress: bool = True) -> Path:
    """Run the experiment; returns the path of the figure. Numbers and a page go beside it."""
    sizes = SCALES[scale]
    out.mkdir(parents=True, exist_ok=True)  # before the work, not after
    trees: dict[str, dict[str, Any]] = {}
    for case in ("a", "b"):
        trees[case] = {}
        for seed, (name, sampler) in enumerate(samplers().items(), start=1):
            if progress:
                print(f"twenty-modes: case ({case}), {LABELS[name]}", file=sys.stderr, flush=True)
            trees[case][name] = run(Mixture.case(case), sampler, sizes, seed, progress)
    draws = {case: {name: tree["posterior"]["theta"].values for name, tree in of.items()} for case, of in trees.items()}
    figure = _figure(draws["a"], out / "twenty-modes.png")
    _page(scale, sizes, trees, draws).write(out, figure)
    return figure


def _figure(draws: dict[str, np.ndarray], path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(14, 4.8), layout="constrained", width_ratios=(1, 1, 1.5))
    for axis, (name, x) in zip(axes, draws.items(), strict=False):
        # One run, so that a mode which it missed can be seen.
        axis.plot(*MEANS.T, "+", ms=14, color=INK["truth"], mew=0.8)
        axis.plot(*x[0, :: max(1, x.shape[1] // 4000)].T, ".", ms=2, alpha=0.4, color=COLOURS[name], rasterized=True)
        axis.set(xlabel="$X_1$", ylabel="$X_2$", xlim=(0, 10), ylim=(-0.7, 10.7), title=f"{LABELS[name]}, one run")
    for offset, (name, x) in zip((-0.18, 0.18), draws.items(), strict=True):
        shares = mode_weights(x)
        error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
        at = np.arange(1, 21) + offset
        axes[2].bar(at, shares.mean(axis=0), 0.36, color=COLOURS[name], alpha=0.6, label=LABELS[name])
        axes[2].errorbar(at, shares.mean(axis=0), error, fmt="none", capsize=2, lw=1, color=INK["truth"])
    axes[2].axhline(0.05, color=INK["truth"], ls="--", lw=1, label="exact, 0.05")
    axes[2].set(xlabel="mode", ylabel="weight", xticks=range(1, 21), ylim=(0, 0.08))
    axes[2].set_title(f"mean of {len(shares)} runs, with one standard error")
    axes[2].legend(frameon=False, loc="upper center", ncols=3)
    figure.suptitle("20 modes in the plane, case (a): weights 0.05, standard deviations 0.1")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


def _page(scale: str, sizes: Scale, trees: dict[str, Any], draws: dict[str, Any]) -> Page:
    page = Page("twenty-modes", scale, "20 modes in the plane (Kou, Zhou & Wong 2006)")
    for case, of in draws.items():
        exact = Mixture.case(case).moments()
        estimates = {name: moments_of(x) for name, x in of.items()}
        for k, moment in enumerate(MOMENTS):
            for name, runs in estimates.items():
                measured = f"{runs[:, k].mean():.4f} ({runs[:, k].std(ddof=1):.3f})"
                z = distances(runs, exact)[k]
                page.claim(f"({case}) {moment}", LABELS[name], f"{exact[k]:.4f} (exact)", measured, z)
        page.note(_table(case, exact, estimates))
        for name, x in of.items():
            seen = (mode_weights(x) > 0).sum(axis=1)
            page.fact(f"({case}) {LABELS[name]}: modes visited by a run, least", int(seen.min()))
            page.fact(f"({case}) {LABELS[name]}: seconds of sampling", trees[case][name].attrs["sampling_time"])
        rates = {"ee": "jump_rate", "pt": "swap_rate"}
        for name, rate in rates.items():
            bottom = trees[case][name]["ladder"][rate].values[0].mean()
            page.fact(f"({case}) {LABELS[name]}: {rate.replace('_', ' ')} at T = 1", float(bottom))
    page.note(_comparison(page, sizes, moments_of(draws["a"]["ee"]), moments_of(draws["a"]["pt"])))
    page.note(
        f"Each of {sizes.runs} runs has {sizes.draws:,} draws after {sizes.warmup:,} of burn-in; Kou et al.'s have "
        "50,000 after 50,000. In brackets: standard deviation over the runs; z is that of their mean. Kou et al.'s "
        "local steps are of 0.25 sqrt(T); ours are adapted to an acceptance of 0.3 on every rung, for both samplers. "
        "Parallel tempering tries to swap every other pair of neighbours in every step (deo); how often theirs did is "
        "not known to us."
    )
    return page


def _comparison(page: Page, sizes: Scale, ee: np.ndarray, pt: np.ndarray) -> str:
    """Why the ratio of errors is not theirs: variance times draws, ours over published, for either sampler."""
    ratios = {}
    for name, runs in (("ee", ee), ("pt", pt)):
        theirs = np.array([getattr(line, name)[1] ** 2 for line in PUBLISHED]) * 50_000
        ratios[name] = float(np.mean(runs.var(axis=0, ddof=1) * sizes.draws / theirs))
        page.fact(f"(a) {LABELS[name]}: variance times draws, ours over published", ratios[name])
    return (
        "**Kou et al. say** that EE has a third of the mean squared error of PT. **We measure** the ratios in the "
        f"tables, **because** for the same number of draws the variance of our EE is {ratios['ee']:.2f} times that of "
        f"theirs, and the variance of our PT {ratios['pt']:.2f} times that of theirs."
    )


def _table(case: str, exact: np.ndarray, estimates: dict[str, np.ndarray]) -> str:
    """Ours beside theirs, which are known for case (a)."""
    lines = [
        f"## Case ({case})\n",
        "| | exact | EE | PT | MSE ratio PT/EE | EE, published | PT, published | ratio, published |",
        "|---|---|---|---|---|---|---|---|",
    ]
    squared = {name: ((runs - exact) ** 2).mean(axis=0) for name, runs in estimates.items()}
    for k, moment in enumerate(MOMENTS):
        ours = [f"{runs[:, k].mean():.4f} ({runs[:, k].std(ddof=1):.3f})" for runs in estimates.values()]
        theirs = ["", "", ""]
        if case == "a":
            line = PUBLISHED[k]
            theirs = [f"{mean:.4f} ({sd:.3f})" for mean, sd in (line.ee, line.pt)] + [f"{line.ratio:.1f}"]
        cells = [f"{exact[k]:.5g}", *ours, f"{squared['pt'][k] / squared['ee'][k]:.2f}", *theirs]
        lines.append(f"| {moment} | {' | '.join(cells)} |")
    return "\n".join(lines)
