"""Section 4.2 of the paper: Bayesian logistic regression, MNIST 1 versus 7, and its Table 1.

The paper gives m = 100, an acceptance of about 0.3 and mean accepted steps of 1.71, 1.50 and 0.05 for MINT, tempered
MCMC and MCMC. It does not give prior, temperature or start. With a flat prior the posterior is improper (the classes
can be separated, and the chain drifts outwards for ever), so we take N(0, 1) on every weight, alpha = 0.99 (T = 136,
of the likelihood alone), and a start drawn from the prior; a random-walk step of 0.061 a coordinate then has the
paper's acceptance and mean step. Table 1 has the settings of its own source (Seita et al. 2017): see
``table``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy.special import expit

from mintmc import MINT, MetropolisHastings, RandomWalk, normality, sample
from mintmc.experiments.logistic import mnist, table
from mintmc.experiments.report import Page
from mintmc.result.plots import INK
from mintmc.result.reading import draws_group

BATCH, ALPHA = 100, 0.99
TEMPERED_STEP, COLD_STEP = 0.061, 0.0018  # a coordinate: times sqrt(784) = 28, the mean step
LABELS = {"mint": "MINT, m = 100", "full": "tempered MCMC", "paper": "MCMC"}
PAPER_STEPS = {"mint": 1.71, "full": 1.50, "paper": 0.05}


@dataclass(frozen=True)
class Scale:
    """How much to run."""

    runs: int
    mint_draws: int
    tempered_draws: int
    cold_draws: int
    comparison: table.Scale


SCALES = {
    "quick": Scale(4, 10_000, 500, 1500, table.Scale(2, 300)),
    "paper": Scale(10, 30_000, 2000, 8000, table.Scale(10, 5000)),
}


@dataclass(frozen=True)
class Curve:
    """Accuracy along a run, at some of its draws: arrays (run, point)."""

    single: np.ndarray
    average: np.ndarray  # of the mean predicted probability so far
    passes: np.ndarray  # over the data, counted honestly
    seconds: np.ndarray
    step: float  # mean length of accepted steps
    touched_to_97: np.ndarray  # data read until a draw is right on 97% of the test images, for each run; inf if never


def curve(tree: Any, points: int = 150) -> Curve:
    """Test accuracy along the chains of a tree."""
    theta = tree[draws_group(tree)]["theta"].values
    chains, draws, _ = theta.shape
    touched = np.cumsum(tree["sample_stats"]["data_touched"].values, axis=1)
    # Predictions of 6,000 draws are enough for averages; of these, a few are drawn.
    kept = np.unique(np.linspace(0, draws - 1, 6000).astype(int))
    shown = np.unique(np.geomspace(1, len(kept), points).astype(int)) - 1
    single, average = (
        np.stack(values) for values in zip(*(_accuracies(theta[c, kept]) for c in range(chains)), strict=True)
    )
    moves = np.linalg.norm(np.diff(theta[:, : min(draws, 2000)], axis=1), axis=-1)
    return Curve(
        single=single[:, shown],
        average=average[:, shown],
        passes=touched[:, kept[shown]] / len(mnist.load().x),
        seconds=tree.attrs["sampling_time"] * (kept[shown] + 1) / draws,
        step=float(moves[moves > 0].mean()),
        touched_to_97=np.array([_first_at(theta[c], touched[c], 0.97) for c in range(chains)]),
    )


def _accuracies(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy of each draw of a chain, and of the mean probability of all draws up to it."""
    digits = mnist.load()
    logits = theta @ digits.x_test.T
    sevens = np.cumsum(expit(-logits), axis=0) / np.arange(1, len(theta) + 1)[:, None]
    truth = digits.y_test > 0
    return ((logits > 0) == truth).mean(axis=1), ((sevens < 0.5) == truth).mean(axis=1)


def _first_at(theta: np.ndarray, touched: np.ndarray, accuracy: float, block: int = 500) -> float:
    """Data read until a draw reaches an accuracy."""
    digits = mnist.load()
    for start in range(0, len(theta), block):
        right = ((theta[start : start + block] @ digits.x_test.T > 0) == (digits.y_test > 0)).mean(axis=1)
        if (right >= accuracy).any():
            return float(touched[start + np.argmax(right >= accuracy)])
    return np.inf


def reproduce(scale: str, out: Path, progress: bool = True) -> Path:
    """Run the experiment; returns the path of the figure. Numbers and a page go beside it."""
    sizes = SCALES[scale]
    out.mkdir(parents=True, exist_ok=True)  # before the work, not after
    posterior = mnist.posterior(flat_prior=False)
    temperature = MINT(BATCH, alpha=ALPHA).target_temperature(posterior.n)
    walk, cold = RandomWalk(step_size=TEMPERED_STEP), RandomWalk(step_size=COLD_STEP)
    runs: dict[str, tuple[Any, int]] = {
        "mint": (MINT(BATCH, alpha=ALPHA, temper="likelihood", proposal=walk), sizes.mint_draws),
        "full": (MetropolisHastings(walk, temperature=temperature, temper="likelihood"), sizes.tempered_draws),
        "paper": (MetropolisHastings(cold), sizes.cold_draws),
    }

    def prior_draw(key: Any) -> Any:
        return jax.random.normal(key, (784,))

    trees, curves = {}, {}
    for seed, (name, (sampler, draws)) in enumerate(runs.items(), start=1):
        settings: dict[str, Any] = {
            "init": prior_draw,
            "warmup": 0,
            "chains": sizes.runs,
            "seed": seed,
            "progress": progress,
        }
        trees[name] = sample(posterior, sampler, draws=draws, audit=False, **settings)
        curves[name] = curve(trees[name])
    draws = np.asarray(trees["mint"]["tempered_posterior"]["theta"])[0]
    normal = normality(posterior, draws[-1], BATCH)
    moved = draws[np.any(draws != draws[-1], axis=1)][-1]
    change = normality(posterior, draws[-1], BATCH, other=moved)
    rows = table.rows(sizes.comparison, progress)

    figure = _figure(normal, curves, temperature, sizes.runs, out / "logistic.png")
    _page(scale, trees, curves, normal, change, rows).write(out, figure)
    return figure


def _figure(normal: Any, curves: Any, temperature: float, runs: int, path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
    normal.plot(axes[0])
    shown: Any = (
        (axes[1], lambda c: c.passes.mean(axis=0), "passes over the data (every read counted)"),
        (axes[2], lambda c: c.seconds, "seconds of sampling"),
    )
    for axis, x_of, label in shown:
        for name, c in curves.items():
            mean, error = c.single.mean(axis=0), c.single.std(axis=0, ddof=1) / np.sqrt(runs)
            axis.plot(x_of(c), mean, color=INK[name], label=LABELS[name])
            axis.fill_between(x_of(c), mean - error, mean + error, color=INK[name], alpha=0.25, lw=0)
            axis.plot(x_of(c), c.average.mean(axis=0), "--", color=INK[name], lw=1)
        axis.set(xscale="log", xlabel=label, ylabel="test accuracy", ylim=(0.45, 1.0))
    axes[1].plot([], [], "--", color="grey", label="of the running average")
    axes[1].legend(frameon=False, loc="upper left")
    axes[1].set_title(f"{runs} runs, one standard error shaded")
    figure.suptitle(f"MNIST 1 versus 7, n = 13,007; MINT and tempered MCMC at T = {temperature:.0f}")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


def _page(scale: str, trees: Any, curves: Any, normal: Any, change: Any, rows: Any) -> Page:
    page = Page("logistic", scale, "Bayesian logistic regression, MNIST 1 versus 7 (section 4.2, Figure 2, Table 1)")
    for name, c in curves.items():
        page.claim("mean accepted step", LABELS[name], f"{PAPER_STEPS[name]:.2f}", f"{c.step:.3f}")
    mint = curves["mint"]
    # A step compares two states on its batch: two reads, where the paper counts one.
    for counted, passes in (("the paper's count", mint.passes / 2), ("every read counted", mint.passes)):
        best = mint.average.mean(axis=0)[passes.mean(axis=0) <= 100].max()
        what = f"accuracy of the running average within 100 passes ({counted})"
        page.claim(what, LABELS["mint"], "at least 98.5%", f"{best:.2%}")
    reached = {name: float(np.median(c.touched_to_97)) for name, c in curves.items()}
    # Where MCMC never gets there, all that it read is a lower bound.
    never = np.isinf(reached["paper"])
    cold = float(trees["paper"]["sample_stats"]["data_touched"].sum("draw").mean()) if never else reached["paper"]
    more = "more than " if never else ""
    what = "data read to a draw of 97%: MCMC over MINT"
    page.claim(what, "median of the runs", "at least 100", f"{more}{cold / reached['mint']:.0f}")
    ratio = _seconds_to(trees["paper"], cold) / _seconds_to(trees["mint"], reached["mint"])
    page.claim("the same in wall-clock time", "median of the runs", "100-fold (paper)", f"{more}{ratio:.0f}-fold")
    for name, tree in trees.items():
        page.fact(f"{LABELS[name]}: acceptance", float(tree["sample_stats"]["acceptance_rate"].mean()))
        page.fact(f"{LABELS[name]}: data read to a draw of 97%, median", reached[name])
        page.fact(f"{LABELS[name]}: accuracy of the last draws", float(curves[name].single[:, -1].mean()))
        page.fact(f"{LABELS[name]}: accuracy of the average of all draws", float(curves[name].average[:, -1].mean()))
    page.note(
        f"The level of the log-likelihood, {normal}. The paper calls it close to normal; at a draw of MINT it is not."
    )
    page.note(f"The difference between two successive states, which is what MINT's ratio is made of: {change}.")
    page.note(__doc__.split("\n\n", 1)[1])
    page.note(
        "MCMC runs here with the constant step of the paper, which suits its stationary law. Adapted while it is "
        "still far away it takes larger steps and arrives sooner: the advantage of MINT is in part that of a step "
        "which suits the way."
    )
    page.note(table.markdown(rows))
    page.facts.update(table.facts(rows))
    return page


def _seconds_to(tree: Any, touched: float) -> float:
    """Wall-clock seconds of sampling until so many data were read by each chain."""
    each = float(tree["sample_stats"]["data_touched"].mean())
    result: float = tree.attrs["sampling_time"] * (touched / each) / tree["sample_stats"].sizes["draw"]
    return result
