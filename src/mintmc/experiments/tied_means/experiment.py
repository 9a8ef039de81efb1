"""Section 4.1 of the paper: a mixture of two Gaussians with tied means, whose posterior has two modes.

    x_i ~ N(theta1, 2)/2 + N(theta1 + theta2, 2)/2,    theta1 ~ N(0, 10),  theta2 ~ N(0, 1),    n = 1e6 at (0, 1).

The second mode is at (1, -1) with the same height, so the ratio of probabilities of two small balls around them is 1.
MINT with m = 1000 and lambda = tau/2 samples at T = n^(3/4) = 31,623.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mintmc import MINT, MetropolisHastings, Posterior, RandomWalk, sample
from mintmc.experiments.report import Page, mean_and_error
from mintmc.experiments.tied_means import rivals as others
from mintmc.result.plots import INK, contours_plot

N, BATCH, ALPHA, VARIANCE = 1_000_000, 1000, 0.5, 2.0
MODES = np.array([[0.0, 1.0], [1.0, -1.0]])
RADIUS = 1e-2
RUNS = 20


@dataclass(frozen=True)
class Scale:
    """How much to run."""

    mint_draws: int  # each of RUNS chains
    full_draws: int  # each of 4 chains of tempered MCMC
    rivals: others.Scale


SCALES = {
    "quick": Scale(300_000, 1_500, others.Scale(100_000, 2, 100)),
    "paper": Scale(1_000_000, 20_000, others.Scale(1_000_000, 10, 3000)),
}


def simulate(n: int = N, seed: int = 0) -> np.ndarray:
    """Observations at theta = (0, 1)."""
    rng = np.random.default_rng(seed)
    return (rng.normal(0, VARIANCE**0.5, n) + rng.integers(0, 2, n)).astype(np.float32)


def log_likelihood(theta: Any, x: Any) -> Any:
    """Log density of one observation, without its constant."""
    first = -((x - theta[0]) ** 2) / (2 * VARIANCE)
    second = -((x - theta[0] - theta[1]) ** 2) / (2 * VARIANCE)
    # As logaddexp, without its care for infinities, which is half the cost of the whole step.
    return jnp.maximum(first, second) + jnp.log(1 + jnp.exp(-jnp.abs(first - second)))


def log_prior(theta: Any) -> Any:
    """Independent normals of variance 10 and 1."""
    return -(theta[0] ** 2) / 20 - theta[1] ** 2 / 2


class Quadrature(NamedTuple):
    """The exact tempered posterior on a grid."""

    theta1: np.ndarray
    theta2: np.ndarray
    probability: np.ndarray  # of each grid point, sums to 1

    def mean(self, f: Callable[..., Any]) -> float:
        """Expectation of f(theta1, theta2)."""
        return float(np.sum(self.probability * f(self.theta1[:, None], self.theta2[None, :])))


def quadrature(x: np.ndarray, temperature: float, points: int = 241, bins: int = 6000) -> Quadrature:
    """The tempered posterior by quadrature, from observations binned so finely that it does not show.

    A bin of width w misplaces the energy by about n l'' w^2/24 < 1e-6 n, that is 1e-6 n_eff in the exponent.
    """
    counts, edges = np.histogram(x.astype(float), bins=bins)
    centres = jnp.asarray((edges[:-1] + edges[1:]) / 2, jnp.float32)
    weights = jnp.asarray(counts / len(x), jnp.float32)
    theta1, theta2 = np.linspace(-2.5, 3.5, points), np.linspace(-5.0, 5.0, points)

    def mean_log_likelihood(theta: Any) -> Any:
        return jnp.sum(weights * log_likelihood(theta, centres))

    grid = np.stack(np.meshgrid(theta1, theta2, indexing="ij"), -1).reshape(-1, 2).astype(np.float32)
    means = jax.jit(lambda grid: jax.lax.map(mean_log_likelihood, grid, batch_size=64))(grid)
    log_density = len(x) * np.asarray(means, float) + np.asarray(jax.vmap(log_prior)(grid), float)
    density = np.exp((log_density - log_density.max()) / temperature).reshape(points, points)
    return Quadrature(theta1, theta2, density / density.sum())


def visits(theta: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Visits to the balls around the modes in the first ``at`` draws: (mode, chain, at)."""
    inside = [np.sum((theta - mode) ** 2, axis=-1) < RADIUS**2 for mode in MODES]
    return np.stack([np.cumsum(ball, axis=-1)[:, at - 1] for ball in inside])


def pooled_ratio(visits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ratio of the modes' probabilities over all runs, and its standard error by the jackknife over runs.

    The mean of the runs' own ratios (the paper's estimate) is too large where a run has few visits: E[A/B] > E[A]/E[B].
    """
    total = visits.sum(axis=1, keepdims=True)
    left_out = total - visits
    runs = visits.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, others = total[0, 0] / total[1, 0], left_out[0] / left_out[1]
        # Before the second mode is visited the ratio is infinite and its error unknown (NaN).
        return ratio, np.sqrt((runs - 1) * np.var(others, axis=0))


def reproduce(scale: str, out: Path, progress: bool = True) -> Path:
    """Run the experiment; returns the path of the figure. Numbers go to a JSON file and a Markdown page beside it."""
    sizes = SCALES[scale]
    out.mkdir(parents=True, exist_ok=True)  # before the work, not after
    x = simulate()
    posterior = Posterior(log_likelihood, x, log_prior)
    mint = MINT(BATCH, alpha=ALPHA, proposal=RandomWalk())
    paper = MINT(BATCH, alpha=ALPHA, proposal=RandomWalk(), penalty=False)
    temperature = mint.target_temperature(N)
    truth = quadrature(x, temperature)
    start = np.array([0.5, 0.0])

    def run(sampler: Any, draws: int, chains: int, seed: int) -> Any:
        settings: dict[str, Any] = {"draws": draws, "chains": chains, "seed": seed, "progress": progress}
        return sample(posterior, sampler, init=start, audit=False, **settings)  # it is compared with the truth anyway

    trees = {
        "mint": run(mint, sizes.mint_draws, RUNS, 1),
        "paper": run(paper, sizes.mint_draws, RUNS, 2),
        "full": run(MetropolisHastings(RandomWalk(), temperature=temperature), sizes.full_draws, 4, 3),
    }
    draws = {name: tree["tempered_posterior"]["theta"].values for name, tree in trees.items()}
    at = np.linspace(0, sizes.mint_draws, 21).astype(int)[1:]
    hits = {name: visits(draws[name], at) for name in ("mint", "paper")}

    flat = Posterior(log_likelihood, x)
    rivals = {
        "visits": others.visits_of_gradient_methods(posterior, MODES, sizes.rivals, progress),
        "batches": others.batch_sizes(flat, sizes.rivals, progress),
    }

    figure = _figure(truth, draws, at, hits, temperature, out / "tied-means.png")
    _page(scale, trees, draws, truth, hits, rivals).write(out, figure)
    return figure


MOMENTS: dict[str, Callable[..., Any]] = {
    "E theta1": lambda a, b: a + 0 * b,
    "E theta2": lambda a, b: b + 0 * a,
    "E |theta2|": lambda a, b: np.abs(b) + 0 * a,
    "E theta2^2 (its variance: the mean is 0)": lambda a, b: b**2 + 0 * a,
}

LABELS = {"mint": "MINT, penalty (ours)", "paper": "MINT, no penalty (paper)", "full": "tempered MCMC"}


def _figure(truth: Any, draws: Any, at: Any, hits: Any, temperature: float, path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
    for axis, name in zip(axes, ("mint", "full"), strict=False):
        some = draws[name].reshape(-1, 2)
        some = some[:: max(1, len(some) // 6000)]
        contours_plot(axis, truth.theta1, truth.theta2, truth.probability, some, INK[name], LABELS[name])
        axis.plot(*MODES.T, "x", color=INK["truth"])
        axis.set(xlim=(-1.5, 2.5), ylim=(-3.5, 3.5))
    right = axes[2]
    for name, counts in hits.items():
        ratio, error = pooled_ratio(counts)
        right.errorbar(at, ratio, error, color=INK[name], capsize=2, lw=1.2, label=LABELS[name])
    right.axhline(1.0, color=INK["truth"], ls="--", lw=1, label="truth, 1.00")
    right.set(xlabel="iterations", ylabel=f"ratio of the modes (balls of radius {RADIUS:g})", ylim=(0, 2))
    right.set_title(f"{RUNS} runs, with one standard error")
    right.legend(frameon=False)
    figure.suptitle(f"Tied means: n = {N:,}, m = {BATCH:,}, T = {temperature:,.0f}; contours: exact")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


def _page(scale: str, trees: Any, draws: Any, truth: Any, hits: Any, rivals: Any) -> Page:
    page = Page("tied-means", scale, "Gaussian mixture with tied means (section 4.1, Figure 1)")
    for name, counts in hits.items():
        ratio, error = (values[-1] for values in pooled_ratio(counts))
        # Runs that are so short that one mode was never visited have no error to tell it by.
        z = (ratio - 1) / error if error > 0 else None
        page.claim("ratio of the modes", LABELS[name], "1.00", f"{ratio:.3f} ± {error:.3f}", z=z)
        own = counts[0, :, -1] / np.maximum(counts[1, :, -1], 1)
        measured = f"{own.mean():.3f} ± {own.std(ddof=1) / np.sqrt(RUNS):.3f}"
        page.claim("the same, as mean of the runs' own ratios", LABELS[name], "1.00", measured)
        both = np.mean([[np.any(np.sum((c - mode) ** 2, -1) < 0.1**2) for mode in MODES] for c in draws[name]])
        page.claim("runs that visit both modes (within 0.1)", LABELS[name], "all", f"{both:.0%}")
        page.fact(f"{LABELS[name]}: visits to the balls in a run", float(counts[:, :, -1].mean()))
    for moment, f in MOMENTS.items():
        exact = truth.mean(f)
        for name, theta in draws.items():
            mean, error = mean_and_error(f(theta[..., 0], theta[..., 1]))
            page.claim(
                moment,
                LABELS[name],
                f"{exact:.4f} (exact)",
                f"{mean:.4f} ± {error:.4f}",
                z=(mean - exact) / error,
            )
    for name, seen in rivals["visits"].items():
        page.claim("modes visited by four chains, two from either mode", name, "the one it starts in", "; ".join(seen))
    for name, published, mean, deviation in rivals["batches"]:
        page.claim("batch at K = 1e4 (Seita et al.)", name, published, f"{mean:,.1f} ± {deviation:,.1f}")
    for name, tree in trees.items():
        stats = tree["sample_stats"]
        page.fact(f"{LABELS[name]}: acceptance", float(stats["acceptance_rate"].mean()))
        page.fact(f"{LABELS[name]}: log-ratio noise", float(stats["log_ratio_noise"].mean()))
        page.fact(f"{LABELS[name]}: step size", float(np.mean(tree.attrs["step_size"])))
        page.fact(f"{LABELS[name]}: data touched per draw", float(stats["data_touched"].mean()))
        page.fact(
            f"{LABELS[name]}: microseconds per draw",
            tree.attrs["sampling_time"] / stats["accepted"].size * 1e6,
        )
    page.note(
        "The paper's mean of 20 ratios is biased upwards: a ball of radius 0.01 is visited "
        "a few dozen times in 1e6 draws, and a ratio of small counts is too large on average. "
        "The first line pools the visits of all runs instead."
    )
    return page
