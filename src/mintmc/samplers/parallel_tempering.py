"""Parallel tempering on a ladder of full batches, of mini-batches, or of both."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from mintmc import check
from mintmc.control import Controlled, Taylor
from mintmc.data import BATCHINGS
from mintmc.kernels.parallel_tempering import SCHEMES, ParallelTemperingKernel
from mintmc.ladder.ladder import Ladder
from mintmc.ladder.reference import Reference
from mintmc.params import Params
from mintmc.posterior import Posterior
from mintmc.proposals import Proposal, RandomWalk
from mintmc.run.chains import ChainRun
from mintmc.run.swapping import SwappingRungs
from mintmc.run.task import Task
from mintmc.samplers.base import (
    check_has_data,
    check_settings,
    check_temper,
    on_vectors,
)
from mintmc.samplers.centred import Plan
from mintmc.samplers.charted import Charted
from mintmc.samplers.control import check_control, check_control_fits
from mintmc.samplers.on_ladder import OnLadder


@dataclass(frozen=True)
class ParallelTempering(OnLadder):
    """Parallel tempering; on a ladder with mini-batches, MINT's own.

    In every step each rung moves locally, and neighbours try to swap their states. Use it for posteriors with several
    modes; draws are those of rung 0, at T = 1. Unlike ``EquiEnergy`` it remembers nothing of the past, and it is exact
    wherever its rungs read all data.

    Parameters
    ----------
    ladder
        Temperatures and batch sizes. None tunes one on all data by pilot runs, up to T = n (100 for a density without
        data), where about half of all swaps are accepted; ``tune_ladder`` has more choices.
    proposal
        Of local moves; its step size is adapted for each rung.
    scheme
        Which neighbours try to swap: "deo" takes even and odd pairs in turn, "seo" tosses a coin. States travel the
        ladder faster with "deo".
    penalty
        Correct for the noise of ratios estimated on batches.
    reference
        Params that energies are counted from; a mode is best. By default where the first chain starts (energies of a
        density without data are absolute).
    batching
        "shuffled" or "uniform".
    temper
        "likelihood" leaves the prior as it is on every rung, so that hot rungs stay within it; "posterior" divides the
        whole energy by T, as the paper does. By default the likelihood, where there are data and a prior.
    control
        A ``Taylor`` of order 2: batches estimate only what is left of every row's log-likelihood beside its expansion
        around the modes that the chains' starts lead to. Cold rungs can then do with batches far below n/T, rung 0
        included. Start chains in all modes that are known: without an expansion there, a cold rung hardly enters.
    keep_rungs
        Keep the draws of all rungs (group ``rungs`` of the tree), for ``weighted_draws`` and
        ``mode_weights(method="regional")``: as many times the draws as there are rungs.

    Examples
    --------
    >>> import jax.numpy as jnp, mintmc
    >>> two_modes = mintmc.Posterior.from_density(lambda x: jnp.logaddexp(-0.5 * (x - 9) ** 2, -0.5 * (x + 9) ** 2))
    >>> sampler = mintmc.ParallelTempering(mintmc.Ladder.geometric(hottest=50, rungs=5))
    >>> tree = mintmc.sample(two_modes, sampler, init=9.0, draws=4000, warmup=500, chains=2, progress=False)
    >>> bool(0.4 < (tree.posterior.theta < 0).mean() < 0.6)
    True
    """

    ladder: Ladder | None = None
    _: KW_ONLY
    proposal: Proposal = field(default_factory=RandomWalk)
    scheme: str = "deo"
    penalty: bool = True
    reference: Params | None = None
    temper: str | None = None
    batching: str = "shuffled"
    control: Taylor | None = None
    keep_rungs: bool = False

    def __post_init__(self) -> None:
        check_settings(self)
        check.flag("keep_rungs", self.keep_rungs)
        if self.ladder is not None:
            check.instance("ladder", self.ladder, Ladder, "a mintmc.Ladder")
        check.choice("scheme", self.scheme, SCHEMES)
        check.flag("penalty", self.penalty)
        check.choice("batching", self.batching, BATCHINGS)
        check_temper(self.temper)
        if self.control is not None:
            check_control(self)
            if self.ladder is None:
                raise ValueError("ladder must be given with control, got None")
            if self.control.order != 2:
                raise ValueError(f"control.order must be 2 on a ladder, got {self.control.order}")

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        super().check(posterior, params)
        if self.control is not None:
            check_has_data(posterior)
            check_control_fits(self.control, self.proposal, posterior, params)
            if not any(self.settled_ladder.batch_sizes or ()):
                raise ValueError("control is for rungs on batches: batch_sizes must have some, got None on every rung")

    def pilot(self, ladder: Ladder) -> ParallelTempering:
        """Parallel tempering with the same local moves."""
        return ParallelTempering(ladder, proposal=self.proposal, temper=self.temper)

    def plan(self, task: Task) -> ChainRun:
        """Chains of which every step moves all rungs."""
        reference = Reference.of(task.target, self.settled_ladder, self.reference, task.example, self.temper)
        kernel = self.kernel(reference)
        centres = None
        if self.control is not None:
            target = Controlled(task.target.model, 1.0, reference.energy_of)
            centres = Charted(task, Plan(target, None, self.control, task.target.n, lambda _: kernel))
        return ChainRun(
            task.of(reference.target),
            kernel,
            type(self).__name__,
            batching=self.batching,
            watcher=SwappingRungs(task, self.settled_ladder, reference),
            about=self.settled_ladder.outline(task.target.n),
            setup_touched=reference.touched,
            centres=centres,
            width=task.target.dim * (len(self.settled_ladder) if self.keep_rungs else 1),
        )

    def kernel(self, reference: Reference) -> ParallelTemperingKernel:
        """The kernel of one chain."""
        target = reference.target
        return ParallelTemperingKernel(
            model=target.model,
            proposal=on_vectors(self.proposal, target, several_modes=True),
            reference=reference.density,
            temperatures=tuple(self.settled_ladder.temperatures),
            batch_sizes=self.settled_ladder.rows(target.n),
            scheme=self.scheme,
            penalised=self.penalty,
            dim=target.dim,
            dtype=target.dtype,
            temper=reference.energy_of,
            is_controlled=self.control is not None,
            keeps_rungs=self.keep_rungs,
        )
