"""What a run is going to do, in one line."""

from __future__ import annotations

from mintmc.run.lane import Task
from mintmc.samplers import EquiEnergy


def outline(task: Task, name: str) -> str:
    """One line about the run of a sampler of this name, before it begins."""
    chains, draws = len(task.thetas), task.draws
    steps = f" of {task.thin} steps" if task.thin > 1 else ""
    what = f"{chains} {'chain' if chains == 1 else 'chains'}"
    work = f"{task.warmup:,} warm-up + {draws:,} draws{steps} each"
    ladder = getattr(task.sampler, "ladder", None)
    if ladder is None:
        return f"{name}: T = {task.sampler.target_temperature(task.posterior.n):.4g}, {what}, {work}; compiling"
    on_all = sum(size is None or size == task.posterior.n for size in ladder.batch_sizes)
    rungs = f"{len(ladder)} rungs from T = 1 to {ladder.temperatures[-1]:.4g}"
    if on_all < len(ladder):
        rungs += f" ({on_all} on all data)"
    if isinstance(task.sampler, EquiEnergy):
        feed = task.warmup if task.sampler.feed is None else task.sampler.feed
        work = f"{len(ladder)} x ({task.warmup:,} warm-up + {feed:,} feed) + {draws:,} draws{steps} each"
    return f"{name}: {rungs}, {what}, {work}; compiling"
