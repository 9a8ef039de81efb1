"""Table 1 of the paper: data that each test reads a step, on MNIST 1 versus 7 at temperature K = 100.

All but MINT's row comes from Seita et al. (2017), so the settings are theirs: flat prior, likelihood at K = 100,
random walk of 0.05 a coordinate, 10 runs of 5,000 draws. Of the two starts in their code, N(0, 0.03^2) gives their
batch sizes; with a start uniform in [0, 1] the first 500 draws of BarkerMH need 890 rows each, and its mean is 203.
The published numbers are sizes of the batch that decided: data read at one end of the comparison, without the
passes of an oracle. Both are in ``data_touched``, and stand beside it here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from mintmc import MINT, AustereMH, BarkerMH, ConfidenceMH, RandomWalk, sample
from mintmc.experiments.logistic import mnist
from mintmc.result.reading import draws_group

TEMPERATURE = 100.0
WALK = RandomWalk(step_size=0.05)


@dataclass(frozen=True)
class Scale:
    """How much to run."""

    runs: int
    draws: int


class Entry(NamedTuple):
    """A line of the table to be."""

    name: str
    published: str
    sampler: Callable[[int], Any]  # of n


class Row(NamedTuple):
    """A line of the table."""

    name: str
    published: str
    batch: float  # mean over the runs
    deviation: float  # over the runs
    touched: float  # data read a step, all counted
    accuracy: float  # of single draws, second half
    ess: float  # of the test log-likelihood, per 1000 draws
    milliseconds: float  # a draw, wall clock of all chains together


ENTRIES = (
    # MINT at the same temperature and the same step; T must exceed n/m, so m = 100 gives 130.1 at the least.
    Entry("MINT", "100", lambda n: MINT(100, alpha=0.99, proposal=WALK)),
    Entry(
        "BarkerMH (MHMINIBATCH)",
        "125.4 ± 9.2",
        lambda n: BarkerMH(100, temperature=TEMPERATURE, proposal=WALK, published=True),
    ),
    Entry(
        "BarkerMH, published rules and table (variance 0.81)",
        "125.4 ± 9.2",
        lambda n: BarkerMH(100, temperature=TEMPERATURE, proposal=WALK, variance=0.81, table="ridge", published=True),
    ),
    Entry(
        "AustereMH(NC)", "973.8 ± 49.8", lambda n: AustereMH(temperature=TEMPERATURE, proposal=WALK, oracle_error=0.05)
    ),
    Entry(
        "AustereMH(NC), published oracle",
        "973.8 ± 49.8",
        lambda n: AustereMH(temperature=TEMPERATURE, proposal=WALK, oracle_error=0.05, published=True),
    ),
    Entry(
        "AustereMH(C)",
        "1924.3 ± 52.4",
        lambda n: AustereMH.conservative(n, 0.1, temperature=TEMPERATURE, proposal=WALK),
    ),
    Entry(
        "ConfidenceMH (MHSUBLHD), published rules",
        "10783.4 ± 78.9",
        lambda n: ConfidenceMH(bound="oracle", published=True, temperature=TEMPERATURE, proposal=WALK),
    ),
    Entry(
        "ConfidenceMH", "10783.4 ± 78.9", lambda n: ConfidenceMH(bound="oracle", temperature=TEMPERATURE, proposal=WALK)
    ),
)


def rows(scale: Scale, progress: bool) -> list[Row]:
    """Run every line of the table."""
    posterior = mnist.posterior(flat_prior=True)
    return [_row(entry, posterior, scale, progress) for entry in ENTRIES]


def _row(entry: Entry, posterior: Any, scale: Scale, progress: bool) -> Row:
    from arviz_stats import ess

    def start(key: Any) -> Any:
        return 0.03 * jax.random.normal(key, (784,))

    settings: dict[str, Any] = {"init": start, "warmup": 0, "chains": scale.runs, "seed": 5, "progress": progress}
    tree: Any = sample(posterior, entry.sampler(posterior.n), draws=scale.draws, audit=False, **settings)
    stats, digits = tree["sample_stats"], mnist.load()
    touched = stats["data_touched"].values
    oracle = stats["oracle_touched"].values if "oracle_touched" in stats else np.zeros_like(touched)
    each = ((touched - oracle) / 2).mean(axis=1)
    theta = tree[draws_group(tree)]["theta"].values
    margins = theta[:, :: max(1, scale.draws // 1000)] @ digits.x_test.T * digits.y_test
    log_likelihood = -np.logaddexp(0, -margins).mean(axis=-1)
    half = margins.shape[1] // 2
    return Row(
        entry.name,
        entry.published,
        float(each.mean()),
        float(each.std(ddof=1)),
        float(touched.mean()),
        float((margins[:, half:] > 0).mean()),
        float(ess(log_likelihood[:, half:], chain_axis=0, draw_axis=1)) / (scale.runs * scale.draws / 2) * 1000,
        tree.attrs["sampling_time"] / scale.draws * 1e3,
    )


def markdown(rows: list[Row]) -> str:
    """The table."""
    lines = [
        "## Table 1\n",
        "| method | batch, published | batch, measured | all data read | accuracy | ESS per 1,000 draws | ms a draw |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        measured = f"{r.batch:,.1f} ± {r.deviation:.1f}"
        lines.append(
            f"| {r.name} | {r.published} | {measured} | {r.touched:,.0f} | "
            f"{r.accuracy:.2%} | {r.ess:.1f} | {r.milliseconds:.2f} |"
        )
    return "\n".join(lines)


def facts(rows: list[Row]) -> dict[str, float]:
    """The numbers of the table by name."""
    return {f"{r.name}: mean batch": r.batch for r in rows}
