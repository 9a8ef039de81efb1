"""How noisy a batch's log ratio is at T = 1, by distance from the centre: with control variates and without.

Logistic regression with 20 coefficients, an intercept and an indicator of 2% among them. States are drawn at r times
the posterior's own spread around its mode, c + r L z, and moves lead from one such state to another: r = 1 is where a
chain lives that draws from the Laplace approximation. The noise of a batch of m rows is

    s2 = n^2 var(e_i) / m (1 - m/n),

e_i = d_i - w_i what an expansion of order 1 or 2 leaves of each row's difference; order 0 leaves all of it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.control import Controlled, Laplace, laplace
from mintmc.energy import Tempered
from mintmc.experiments.report import Page
from mintmc.modes import find_mode
from mintmc.posterior import Posterior
from mintmc.result.plots import INK

DIM = 20
BATCHES = (100, 1000)
DISTANCES = np.geomspace(0.1, 100, 13)
LABELS = {0: "no control", 1: "order 1", 2: "order 2"}
COLOURS = {0: INK["paper"], 1: INK["full"], 2: INK["mint"]}
COMFORTABLE = 1.0


@dataclass(frozen=True)
class Scale:
    """How much to run."""

    n: int
    rows: int  # that variances are measured on
    moves: int


SCALES = {"quick": Scale(100_000, 20_000, 16), "paper": Scale(1_000_000, 100_000, 64)}


def logistic(n: int, dim: int = DIM, seed: int = 0) -> Posterior:
    """The regression: an intercept, an indicator at 2%, normal columns."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, dim), np.float32)
    x[:, 0], x[:, 1] = 1.0, rng.random(n) < 0.02
    beta = rng.normal(size=dim) / np.sqrt(dim)
    y = (rng.random(n) < 1 / (1 + np.exp(-(x @ beta)))).astype(np.float32)

    def log_likelihood(beta: Array, row: dict[str, Array]) -> Array:
        eta = row["x"] @ beta
        return row["y"] * eta - jnp.logaddexp(0.0, eta)

    return Posterior(log_likelihood, {"x": x, "y": y}, lambda beta: -0.5 * jnp.sum(beta**2) / 100)


def variances(posterior: Posterior, scale: Scale) -> dict[int, np.ndarray]:
    """The variance over rows of e_i at T = 1, by order and distance (the mean over moves)."""
    mode = find_mode(posterior, np.zeros(DIM))
    flat = posterior.flat(np.zeros(DIM))
    assert mode.expansion is not None
    normal = laplace(Tempered(flat.model, 1.0), mode.expansion)
    assert normal is not None
    rng = np.random.default_rng(1)
    assert posterior.data is not None
    rows = posterior.data.take(np.sort(rng.choice(posterior.n, scale.rows, replace=False)))
    targets = {
        0: Tempered(flat.model, 1.0),
        1: Controlled(flat.model, 1.0, expansion=mode.expansion._replace(hessian=None)),
        2: Controlled(flat.model, 1.0, expansion=mode.expansion),
    }
    ends = _ends(normal, scale.moves)
    return {order: _variance(target, ends, rows) for order, target in targets.items()}


def _ends(normal: Laplace, moves: int) -> tuple[Array, Array]:
    """Both ends of moves, (distance, move, d)."""
    z = jax.random.normal(jax.random.key(0), (2, moves, normal.centre.size))
    spread = jnp.asarray(DISTANCES, z.dtype)[:, None, None] * (z @ normal.factor.T)[:, None]
    return normal.centre + spread[0], normal.centre + spread[1]


def _variance(target: Tempered, ends: tuple[Array, Array], rows: object) -> np.ndarray:
    @jax.jit
    def of_rows(heres: Array, theres: Array) -> Array:
        def variance(both: tuple[Array, Array]) -> Array:
            return target.differences(both[0], both[1], rows).var(ddof=1)

        found: Array = jax.lax.map(variance, (heres, theres))
        return found

    return np.array([float(of_rows(*both).mean()) for both in zip(*ends, strict=True)])


def reproduce(scale: str, out: Path, progress: bool = True) -> Path:
    """Run the experiment; returns the path of the figure. Numbers and a page go beside it."""
    sizes = SCALES[scale]
    out.mkdir(parents=True, exist_ok=True)
    if progress:
        print(f"control-noise: n = {sizes.n:,}", file=sys.stderr, flush=True)
    found = variances(logistic(sizes.n), sizes)
    noise = {
        (order, m): sizes.n**2 * variance / m * (1 - m / sizes.n) for order, variance in found.items() for m in BATCHES
    }
    figure = _figure(noise, sizes.n, out / "control-noise.png")
    page = Page("control-noise", scale, "Noise of a batch's log ratio at T = 1")
    here = int(np.argmin(np.abs(DISTANCES - 1)))
    for (order, m), values in noise.items():
        page.fact(f"noise at one standard deviation, {LABELS[order]}, m = {m:,}", float(values[here]))
    page.note(_table(noise))
    page.note("Below about 1e-4 (m = 100, n = 1e6) it is the rounding of log-likelihoods to float32 that is left.")
    page.write(out, figure)
    return figure


def _figure(noise: dict[tuple[int, int], np.ndarray], n: int, path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
    for (order, m), values in noise.items():
        style = "-" if m == BATCHES[0] else "--"
        axes.plot(DISTANCES, values, style, color=COLOURS[order], label=f"{LABELS[order]}, m = {m:,}")
    axes.axhline(COMFORTABLE, color=INK["truth"], lw=0.8)
    axes.axvline(1.0, color=INK["truth"], lw=0.8, ls=":")
    axes.text(1.05, 3e9, "where the chain lives", color=INK["truth"], va="top")
    axes.text(DISTANCES[0], COMFORTABLE * 1.3, "about what a test bears", color=INK["truth"])
    axes.set(xscale="log", yscale="log", ylim=(1e-9, 1e10), ylabel="log-ratio noise $s^2$ at T = 1")
    axes.set_xlabel("distance of both ends from the mode, in posterior standard deviations")
    axes.set_title(f"Logistic regression, n = {n:,}, d = {DIM}")
    axes.legend(frameon=False, ncols=3, loc="lower right", fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


def _table(noise: dict[tuple[int, int], np.ndarray]) -> str:
    heads = [f"{LABELS[order]}, m = {m:,}" for order, m in noise]
    lines = ["| distance | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for i, distance in enumerate(DISTANCES):
        lines.append(f"| {distance:.2g} | " + " | ".join(f"{values[i]:.2g}" for values in noise.values()) + " |")
    return "\n".join(lines)
