"""The equi-energy sampler on a ladder of full batches, of mini-batches (MINTEE), or of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import Any

import jax.numpy as jnp

from mintmc import check
from mintmc.data import BATCHINGS
from mintmc.kernels.equi_energy import EquiEnergyKernel, Rung
from mintmc.ladder.ladder import Ladder
from mintmc.ladder.reference import Reference
from mintmc.ladder.rings import QuantileRings, RingRule, SpacedRings, check_rings, fixed_edges, ring_count, subset_size
from mintmc.params import Params
from mintmc.proposals import Proposal, RandomWalk
from mintmc.run.rounds import RoundRun
from mintmc.run.rung_rings import RungRings
from mintmc.run.task import Task
from mintmc.samplers.base import (
    check_settings,
    check_temper,
    on_vectors,
)
from mintmc.samplers.on_ladder import OnLadder
from mintmc.samplers.parallel_tempering import ParallelTempering


@dataclass(frozen=True)
class EquiEnergy(OnLadder):
    """The equi-energy sampler of Kou, Zhou & Wong (2006); on a ladder with mini-batches, MINTEE.

    Rungs start one after the other, the hottest first. Each moves locally or jumps to a past state of the hotter rung
    with a similar energy. Use it for posteriors with modes far apart; draws are those of rung 0, at T = 1.

    Parameters
    ----------
    ladder
        Temperatures and batch sizes. None tunes one on all data by pilot runs, up to T = n (100 for a density without
        data); ``tune_ladder`` has more choices.
    proposal
        Of local moves; its step size is adapted for each rung.
    jump_probability
        How often a rung tries to jump: one number below 1, or one for each rung. Jumps between rungs that read all
        data cost nothing and may be frequent.
    rings
        How states are sorted by energy: ``QuantileRings``, ``SpacedRings`` (the paper's rule), or edges, as
        energies above that of ``reference``.
    capacity
        States that a ring keeps at most: a uniform sample of all its past states.
    share_rings
        Whether all chains use the same rings. Chains are independent only if they do not.
    truncate
        Cut energies off below each rung's ring edge, as the paper does. Needs edges that are known beforehand.
    penalty
        Correct for the noise of ratios estimated on batches. False is the paper.
    reference
        Params that energies are counted from; a mode is best. By default where the first chain starts (energies of a
        density without data are absolute).
    feed
        Draws with which a rung fills its rings before the next colder one starts; by default as many as warm-up has
        steps. A colder rung begins with the modes that they hold.
    round_length
        Draws between two extensions of the rings. Within a round rungs run side by side.
    steps
        Steps that each rung makes for one of rung 0's; hot rungs are cheap and may make more.
    batching
        "shuffled" or "uniform".
    temper
        "likelihood" leaves the prior as it is on every rung, so that hot rungs stay within it; "posterior" divides the
        whole energy by T, as the paper does. By default the likelihood, where there are data and a prior.
    keep_rungs
        As in ``ParallelTempering``.

    Examples
    --------
    >>> import jax.numpy as jnp, mintmc
    >>> two_modes = mintmc.Posterior.from_density(lambda x: jnp.logaddexp(-0.5 * (x - 9) ** 2, -0.5 * (x + 9) ** 2))
    >>> sampler = mintmc.EquiEnergy(mintmc.Ladder.geometric(hottest=50, rungs=4))
    >>> tree = mintmc.sample(two_modes, sampler, init=9.0, draws=2000, warmup=500, chains=2, progress=False)
    >>> bool(0.3 < (tree.posterior.theta < 0).mean() < 0.7)
    True
    """

    ladder: Ladder | None = None
    _: KW_ONLY
    proposal: Proposal = field(default_factory=RandomWalk)
    jump_probability: float | Sequence[float] = 0.1
    rings: RingRule = field(default_factory=QuantileRings)
    capacity: int = 1000
    share_rings: bool = False
    truncate: bool = False
    penalty: bool = True
    reference: Params | None = None
    feed: int | None = None
    round_length: int = 500
    steps: Sequence[int] | None = None
    temper: str | None = None
    batching: str = "shuffled"
    keep_rungs: bool = False

    def __post_init__(self) -> None:
        check_coupling(self)
        if self.ladder is None:
            self._check_open()
            return
        check.instance("ladder", self.ladder, Ladder, "a mintmc.Ladder")
        if isinstance(self.jump_probability, tuple):
            self._check_each("jump_probability", self.jump_probability)
        if self.steps is not None:
            listed = check.listed("steps", self.steps, "a sequence, one entry for each rung")
            steps = tuple(check.integer("steps", count, 1, most=check.LARGEST_COUNT) for count in listed)
            self._check_each("steps", steps)
            object.__setattr__(self, "steps", steps)
        if self.truncate and not isinstance(self.rings, (QuantileRings, SpacedRings)):
            edges = len(list(self.rings))
            if edges < len(self.settled_ladder) - 1:
                raise ValueError(
                    f"rings must have {len(self.settled_ladder) - 1} edges or more to truncate at, got {edges}"
                )

    def pilot(self, ladder: Ladder) -> ParallelTempering:
        """Parallel tempering with the same local moves."""
        return ParallelTempering(ladder, proposal=self.proposal, temper=self.temper)

    def _check_open(self) -> None:
        """What is said rung by rung needs rungs."""
        of_rungs = {"steps": self.steps, "truncate": self.truncate or None}
        of_rungs["jump_probability"] = self.jump_probability if isinstance(self.jump_probability, tuple) else None
        for name, value in of_rungs.items():
            if value is not None:
                raise ValueError(f"ladder must be given with {name}, got None and {check.shown(value)}")

    @property
    def jump_probabilities(self) -> tuple[float, ...]:
        """How often each rung tries to jump."""
        given = self.jump_probability
        return tuple(given) if isinstance(given, Sequence) else (given,) * len(self.settled_ladder)

    def _check_each(self, name: str, values: tuple[Any, ...]) -> None:
        if len(values) != len(self.settled_ladder):
            got = check.shown(values)
            raise ValueError(f"{name} must have one entry for each of {len(self.settled_ladder)} rungs, got {got}")

    def plan(self, task: Task) -> RoundRun:
        """Rungs in rounds."""
        if self.share_rings and task.parts > 1:
            raise ValueError("share_rings must be False where several processes share a run, got True")
        reference = Reference.of(task.target, self.settled_ladder, self.reference, task.example, self.temper)
        kernels = [self.rung_kernel(reference, rung) for rung in range(len(self.settled_ladder))]
        rings = RungRings(
            task,
            self.settled_ladder,
            reference,
            rule=self.rings,
            capacity=self.capacity,
            groups=1 if self.share_rings else task.chains,
            keeps_gradient=self.proposal.uses_gradient,
            round_length=self.round_length,
        )
        return RoundRun(
            task,
            self.settled_ladder,
            reference,
            kernels,
            self._places(task.target.dtype),
            rings,
            name=type(self).__name__,
            batching=self.batching,
            feed=task.warmup if self.feed is None else self.feed,
            round_length=self.round_length,
            steps=self.steps or (1,) * len(self.settled_ladder),
            is_audited=not self.truncate,  # energies that are cut off are not audited
            keeps_rungs=self.keep_rungs,
        )

    def rung_kernel(self, reference: Reference, rung: int) -> EquiEnergyKernel:
        """The kernel of one rung of one chain."""
        target = reference.target
        rows = self.settled_ladder.rows(target.n)
        hotter = rows[min(rung + 1, len(rows) - 1)]
        return EquiEnergyKernel(
            model=target.model,
            proposal=on_vectors(self.proposal, target, several_modes=True),
            reference=reference.density,
            penalised=self.penalty,
            batch_size=None if rows[rung] == target.n else rows[rung],
            subset_size=subset_size(hotter, target.n, ring_count(self.rings, self.settled_ladder)),
            dim=target.dim,
            dtype=target.dtype,
            temper=reference.energy_of,
        )

    def _places(self, dtype: Any) -> list[Rung]:
        """Where each rung stands; floors are -inf if energies are not cut off."""
        floors, edges = [-math.inf] * len(self.settled_ladder), fixed_edges(self.rings, self.settled_ladder)
        if self.truncate and edges is not None:
            floors[1:] = edges[: len(self.settled_ladder) - 1]
        stands = [*zip(self.settled_ladder.temperatures, floors, strict=True), (math.inf, -math.inf)]
        return [
            Rung(*(jnp.asarray(value, dtype) for value in (*here, *hotter, jumps)))
            for (here, hotter), jumps in zip(pairwise(stands), self.jump_probabilities, strict=True)
        ]


def check_coupling(sampler: Any) -> None:
    """The checks that all constructors of an equi-energy sampler share."""
    check_settings(sampler)
    _check_jumps(sampler)
    object.__setattr__(sampler, "rings", check_rings(sampler.rings))
    check.integer("capacity", sampler.capacity, 1, most=check.LARGEST_COUNT)
    rings = len(sampler.rings) + 1 if isinstance(sampler.rings, tuple) else getattr(sampler.rings, "count", 1)
    check.integer("capacity * number of rings", sampler.capacity * rings, 1, most=check.LARGEST_COUNT)
    check.flag("share_rings", sampler.share_rings)
    check.flag("truncate", sampler.truncate)
    check.flag("penalty", sampler.penalty)
    check.flag("keep_rungs", sampler.keep_rungs)
    if sampler.feed is not None:
        check.integer("feed", sampler.feed, 1, most=check.LARGEST_COUNT)
    check.integer("round_length", sampler.round_length, 1, most=check.LARGEST_COUNT)
    check.choice("batching", sampler.batching, BATCHINGS)
    check_temper(sampler.temper)
    if sampler.truncate and isinstance(sampler.rings, QuantileRings):
        raise ValueError(f"rings must be SpacedRings or edges with truncate=True, got {check.shown(sampler.rings)}")


def _check_jumps(sampler: Any) -> None:
    """Below 1, one for all or one for each rung: one that only jumps knows no states but those of the hotter one."""
    given: Any = sampler.jump_probability
    if (isinstance(given, Sequence) and not isinstance(given, (str, bytes))) or getattr(given, "ndim", 0) > 0:
        listed = check.listed("jump_probability", given)
        given = tuple(check.number("jump_probability", each, 0, 1, closed=(True, False)) for each in listed)
        object.__setattr__(sampler, "jump_probability", given)
    else:
        check.number("jump_probability", given, 0, 1, closed=(True, False))
