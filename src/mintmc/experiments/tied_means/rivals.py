"""Rivals of MINT on the tied-means posterior: stochastic gradients, and tests that grow their batch.

The paper's negative result: SGLD and SGHMC see one of the two modes, the one where they start. At n = 1e6 the
posterior of either mode has a standard deviation of a few thousandths, so that is no wonder; steps are the smaller
for it (SGLD from 1e-6 down to 1e-8).

The comparison of Seita et al. (2017): batch sizes at temperature K = 1e4, random walk of 0.15 a coordinate, start
(0.5, 0), no prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mintmc import SGHMC, SGLD, AustereMH, BarkerMH, ConfidenceMH, PerChain, Polynomial, Posterior, RandomWalk, sample

TEMPERATURE = 1e4
WALK = RandomWalk(step_size=0.15)
BATCH = 1000


@dataclass(frozen=True)
class Scale:
    """How much to run."""

    gradient_steps: int
    runs: int
    draws: int


def visits_of_gradient_methods(
    posterior: Posterior, modes: np.ndarray, scale: Scale, progress: bool
) -> dict[str, list[str]]:
    """For SGLD and SGHMC, started twice in either mode: which modes each chain visits."""
    steps = scale.gradient_steps
    samplers: dict[str, Any] = {
        "SGLD": SGLD(BATCH, step_size=Polynomial.between(1e-6, 1e-8, steps)),
        "SGHMC": SGHMC(BATCH, step_size=2e-4, friction=500.0),
    }
    start = PerChain(np.repeat(modes, 2, axis=0))
    seen = {}
    for name, sampler in samplers.items():
        settings: dict[str, Any] = {"init": start, "warmup": 0, "chains": 4, "thin": 10, "progress": progress}
        tree: Any = sample(posterior, sampler, draws=steps // 10, audit=False, **settings)
        theta = tree["posterior"]["theta"].values
        nearest = np.argmin(np.sum((theta[..., None, :] - modes) ** 2, axis=-1), axis=-1)
        seen[name] = [" and ".join(str(tuple(modes[k].tolist())) for k in np.unique(chain)) for chain in nearest]
    return seen


def batch_sizes(posterior: Posterior, scale: Scale, progress: bool) -> list[tuple[str, str, float, float]]:
    """Name, published size, and mean and standard deviation over the runs of the measured size."""
    entries = (
        ("BarkerMH", "182.3 ± 11.4", BarkerMH(50, temperature=TEMPERATURE, proposal=WALK)),
        ("AustereMH(C)", "13,540.5 ± 1,521.4", AustereMH(50, epsilon=0.005, temperature=TEMPERATURE, proposal=WALK)),
        (
            "ConfidenceMH",
            "65,758.9 ± 3,222.6",
            ConfidenceMH(bound="oracle", batch_size=50, temperature=TEMPERATURE, proposal=WALK, published=True),
        ),
    )
    table = []
    for name, published, sampler in entries:
        settings: dict[str, Any] = {"init": np.array([0.5, 0.0]), "warmup": 0, "chains": scale.runs, "seed": 4}
        tree: Any = sample(posterior, sampler, draws=scale.draws, progress=progress, audit=False, **settings)
        stats = tree["sample_stats"]
        oracle = stats.get("oracle_touched", 0)
        each = ((stats["data_touched"] - oracle) / 2).mean("draw").values
        table.append((name, published, float(each.mean()), float(each.std(ddof=1))))
    return table
