"""MINTEE, the paper's sampler, as one constructor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from mintmc import check
from mintmc.ladder.ladder import MOST_RUNGS, Ladder
from mintmc.ladder.rings import QuantileRings, RingRule, SpacedRings
from mintmc.params import Params
from mintmc.posterior import Posterior
from mintmc.proposals import Langevin, Proposal
from mintmc.run.protocol import Sampler
from mintmc.run.rounds import RoundRun
from mintmc.run.task import Task
from mintmc.samplers.base import check_has_data
from mintmc.samplers.equi_energy import EquiEnergy, check_coupling

_FEWEST = 50
"""Rows of the smallest batch: the penalty needs means that are nearly normal."""


@dataclass(frozen=True)
class MINTEE(Sampler):
    """The paper's sampler: equi-energy jumps on a ladder of MINT chains that grows from small batches to all data.

    Unlike the paper's, its ladder goes on down to T = 1, and its ratios are corrected for noise. A rung reads all data
    where that costs less than batches.

    Parameters
    ----------
    smallest_batch, growth, alpha
        As in ``Ladder.mint``. Without ``smallest_batch`` the hottest rung reads 50 rows (half of fewer than 100): with
        fewer the penalty could not be trusted.
    rungs
        Number of rungs, with a gap below the last; by default as many as reach T = 1 without one.
    proposal, jump_probability, rings, capacity, share_rings, truncate, penalty, reference, feed, round_length
        As in ``EquiEnergy``.
    batching, temper, keep_rungs
        As in ``EquiEnergy``.

    Examples
    --------
    >>> import mintmc
    >>> sampler = mintmc.MINTEE(smallest_batch=1000, growth=1.4, alpha=0.9)
    >>> ladder = sampler.for_data(100_000).ladder
    >>> len(ladder), round(ladder.temperatures[-1], 1), ladder.batch_sizes[-1]
    (18, 199.5, 1000)
    """

    smallest_batch: int | None = None
    _: KW_ONLY
    growth: float = 1.4
    alpha: float = 0.99
    rungs: int | None = None
    proposal: Proposal = field(default_factory=Langevin)
    jump_probability: float | Sequence[float] = 0.1
    rings: RingRule = field(default_factory=QuantileRings)
    capacity: int = 1000
    share_rings: bool = False
    truncate: bool = False
    penalty: bool = True
    reference: Params | None = None
    feed: int | None = None
    round_length: int = 500
    temper: str | None = None
    batching: str = "shuffled"
    keep_rungs: bool = False

    def __post_init__(self) -> None:
        if self.smallest_batch is not None:
            check.integer("smallest_batch", self.smallest_batch, 2)
        check.number("growth", self.growth, 1)
        check.number("alpha", self.alpha, 0, 1)
        if self.rungs is not None:
            check.integer("rungs", self.rungs, 2, most=MOST_RUNGS)
        check_coupling(self)

    @classmethod
    def published(cls, **changes: Any) -> MINTEE:
        """The configuration of the paper's 50-mode experiment: seven rungs with a gap from T = 19.4 to 1, no penalty.

        It does not reach T = 1: no state of the rung at 19.4 has an energy that the rung at 1 knows.

        Examples
        --------
        >>> import mintmc
        >>> mintmc.MINTEE.published().for_data(100_000).ladder.batch_sizes
        (None, 5378, 3841, 2743, 1959, 1400, 1000)
        """
        paper = cls(
            smallest_batch=1000,
            growth=1.4,
            alpha=0.995,
            rungs=7,
            proposal=Langevin(target_acceptance=0.35),
            rings=SpacedRings(c=10.0),
            truncate=True,
            penalty=False,
            temper="posterior",
        )
        return replace(paper, **changes)

    def for_data(self, n: int) -> EquiEnergy:
        """The equi-energy sampler that this is for n observations."""
        smallest = min(_FEWEST, max(n // 2, 2)) if self.smallest_batch is None else self.smallest_batch
        ladder = Ladder.mint(n, smallest, self.growth, self.alpha, self.rungs)
        # A step reads its batch at both ends of the comparison and, with gradients, of the proposal.
        reads = 4 if self.proposal.uses_gradient else 2
        sizes = [size if size is None or reads * size < n else None for size in ladder.batch_sizes or ()]
        shared = {name: value for name, value in vars(self).items() if name in EquiEnergy.__dataclass_fields__}
        return EquiEnergy(Ladder(ladder.temperatures, sizes), **shared)

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        check_has_data(posterior)
        self.for_data(posterior.n).check(posterior, params)

    def start_temperature(self, n: int) -> float | None:
        """That of the hottest rung."""
        return self.for_data(n).start_temperature(n)

    def plan(self, task: Task) -> RoundRun:
        """That of the equi-energy sampler that it is."""
        run = self.for_data(task.target.n).plan(task)
        run.name = type(self).__name__
        return run
