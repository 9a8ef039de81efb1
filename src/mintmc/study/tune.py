"""A ladder fitted to a posterior by pilot runs: temperatures with even swap rates, then batches just large enough.

Temperatures: parallel tempering on all data, first on a geometric ladder; after each round the barrier is cut into
equal parts (see ``ladder.barrier``). Batch sizes: the noise of a log ratio on m of the n rows is c (1/m - 1/n). The
last pilot measures it on a batch of moderate size, for the proposals of every rung at its adapted step and for swaps
with the next hotter rung, and m follows from c. With control variates it is the noise of the residuals, measured by
parallel tempering on such batches: where the expansions hold, cold rungs read small ones, too.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.acceptance.minibatch import Common
from mintmc.control import Taylor
from mintmc.data import Batch
from mintmc.energy import Tempered
from mintmc.kernels.metropolis import MetropolisKernel, State
from mintmc.kernels.parallel_tempering import ParallelTemperingKernel
from mintmc.ladder.ladder import Ladder
from mintmc.ladder.reference import Reference
from mintmc.posterior import Posterior
from mintmc.proposals import Point, Proposal, RandomWalk
from mintmc.samplers.parallel_tempering import ParallelTempering
from mintmc.samplers.tuned import evened, run_pilot
from mintmc.statistics import Info

_FEWEST = 50
"""Rows of the smallest batch: the penalty needs means that are nearly normal."""


def tune_ladder(
    posterior: Posterior,
    *,
    init: Any,
    hottest: float,
    rungs: int,
    proposal: Proposal | None = None,
    noise: float = 1.0,
    draws: int = 500,
    rounds: int = 4,
    chains: int = 2,
    seed: int = 0,
    temper: str | None = None,
    control: Taylor | None = None,
    progress: bool = False,
) -> Ladder:
    """Fit the temperatures and batch sizes of a ladder to a posterior.

    Every pilot reads all data: a round costs as much as parallel tempering on the same number of rungs.

    Parameters
    ----------
    posterior
        What will be sampled.
    init
        As in ``sample``.
    hottest, rungs
        The last temperature, and how many there are. Most round trips for their cost are made where about half of all
        swaps are accepted.
    proposal
        Of local moves: the one that the ladder will be used with; ``RandomWalk()`` by default.
    noise
        The variance of log ratios to aim at on batches. A rung reads all data where such batches would cost more.
    draws, rounds, chains
        Pilot runs: draws of each (and as many steps of warm-up), how often the temperatures are refitted, and chains.
    seed
        The same seed gives the same ladder.
    temper, control
        As the sampler that the ladder is for.
    progress
        Show a progress bar for every pilot.

    Examples
    --------
    >>> import jax.numpy as jnp, mintmc
    >>> normal = mintmc.Posterior.from_density(lambda x: -0.5 * jnp.sum(x**2))
    >>> ladder = mintmc.tune_ladder(normal, init=jnp.zeros(2), hottest=16, rungs=3, rounds=1)
    >>> ladder.batch_sizes, bool(3 < ladder.temperatures[1] < 5)
    ((None, None, None), True)
    """
    check.instance("posterior", posterior, Posterior, "a mintmc.Posterior")
    noise = check.number("noise", noise, 0)
    draws = check.integer("draws", draws, 2, most=check.LARGEST_COUNT)  # so that every pair is tried
    rounds = check.integer("rounds", rounds, 1, most=check.LARGEST_COUNT)
    seed = check.integer("seed", seed, 0, 2**32 - 1 - rounds)  # every pilot has its own
    proposal = RandomWalk() if proposal is None else proposal
    settings = {"init": init, "draws": draws, "warmup": draws, "chains": chains, "progress": progress}
    ladder = Ladder.geometric(hottest, rungs)
    ParallelTempering(ladder, proposal=proposal, temper=temper, control=control)  # refuses what it would refuse later
    for round_ in range(rounds):
        sampler = ParallelTempering(ladder, proposal=proposal, temper=temper)
        ladder = evened(ladder, run_pilot(posterior, sampler, seed=seed + round_, **settings), rungs)
    n = posterior.n
    if n < 2 * _FEWEST:
        return ladder
    size = min(n // 2, max(_FEWEST, n // 50))
    probe: ParallelTempering = _Probe(ladder, proposal=proposal, temper=temper, size=size)
    if control is not None:
        on_batches = Ladder(ladder.temperatures, [size] * rungs)
        probe = ParallelTempering(on_batches, proposal=proposal, temper=temper, control=control)
    pilot = run_pilot(posterior, probe, seed=seed + rounds, **settings).tree
    # Swaps with the hotter rung are decided on this one's batches; the hottest has none (NaN).
    measured = np.fmax(_over_chains(pilot, "log_ratio_noise"), _over_chains(pilot, "swap_noise"))
    reads = 2 + (proposal.visits + 1 if proposal.uses_gradient else 0)
    reads += reads // 2 if control is not None else 0  # every row's expansion beside it
    return Ladder(ladder.temperatures, batch_sizes(measured, size, n, noise, n * proposal.visits / reads))


def _over_chains(pilot: Any, name: str) -> np.ndarray:
    result: np.ndarray = pilot[name].mean("chain").values
    return result


def batch_sizes(measured: np.ndarray, size: int, n: int, noise: float, largest: float) -> list[int | None]:
    """The batches on which each rung's noise would be ``noise``, None (all data) where that exceeds ``largest``.

    ``measured`` is each rung's noise on batches of ``size`` of the n rows.

    Examples
    --------
    >>> import numpy as np
    >>> batch_sizes(np.array([128.0, 2.0, 1.0, 1.0]), size=100, n=10_000, noise=1.0, largest=5000)
    [None, 199, 100, 100]
    """
    # measured = c (1/size - 1/n)
    scale = measured / (1 / size - 1 / n)
    needed = np.maximum(np.ceil(n * scale / (n * noise + scale)), _FEWEST)
    # A rung reads no fewer rows than any hotter one.
    falling = np.maximum.accumulate(needed[::-1])[::-1]
    return [int(rows) if rows <= largest else None for rows in falling]


@dataclass(frozen=True)
class _Probe(ParallelTempering):
    """Parallel tempering on all data that reports the noise which batches would have."""

    size: int = 0

    def kernel(self, reference: Reference) -> ParallelTemperingKernel:
        """The kernel of one chain."""
        kernel = super().kernel(reference)
        return _ProbeKernel(**{each.name: getattr(kernel, each.name) for each in fields(kernel)}, size=self.size)


@dataclass(frozen=True)
class _ProbeKernel(ParallelTemperingKernel):
    """The same, one step of it."""

    size: int = 0

    def advance(self, randomness: Any, state: Any, batch: Batch, tuning: Any) -> tuple[Any, Info]:
        """A step on all data; the noise is that of its moves and swaps on a batch."""
        moved, info = super().advance(randomness, state, batch, tuning)
        temperatures = np.asarray(self.temperatures)
        between = jnp.asarray(-1 / np.diff(1 / temperatures), self.dtype)
        rows = {role: batch[role] for role in self._roles}

        def local(at: tuple[Array, Any, Array, Any]) -> Array:
            temperature, numbers, theta, tuning = at
            target = Tempered(self.model, temperature, self.temper)
            kernel = MetropolisKernel(target, self.proposal, Common(True), self.size, self.dim, self.dtype)
            result: Array = kernel.advance(numbers, State(Point(theta), ()), rows, tuning)[1]["log_ratio_noise"]
            return result

        def swap(at: tuple[Array, Array, Array]) -> Array:
            target = Tempered(self.model, at[0], self.temper, exchange=True)
            return target.difference(at[1], at[2], batch["test"]).noise

        of_rungs = (jnp.asarray(temperatures, self.dtype), randomness.local, state.theta, tuning)
        info["rung_noise"] = jax.lax.map(local, of_rungs)
        info["swap_noise"] = jax.lax.map(swap, (between, state.theta[:-1], state.theta[1:])) * info["swaps"]
        return moved, info

    @property
    def _roles(self) -> tuple[str, ...]:
        return ("test", "gradient") if self.proposal.uses_gradient else ("test",)

    @property
    def batches(self) -> dict[str, int]:
        """All data, and the batches that are probed."""
        return {**super().batches, **dict.fromkeys(self._roles, self.size)}
