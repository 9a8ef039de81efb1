"""What samplers on a ladder share: a ladder that was given, or one that pilot runs tune before the run begins."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

from mintmc.ladder.ladder import Ladder
from mintmc.params import Params, named
from mintmc.posterior import Posterior, check_counted
from mintmc.proposals import Proposal
from mintmc.run.protocol import Sampler
from mintmc.run.settle import Setting, Settled, check_settled
from mintmc.samplers.base import check_proposal_fits, check_reference, check_temper_fits, start_temperature
from mintmc.samplers.control import check_without_laplace
from mintmc.samplers.tuned import tuned


class OnLadder(Sampler):
    """A sampler that moves on a ladder; its dataclasses have these settings among others."""

    ladder: Ladder | None
    proposal: Proposal
    reference: Params | None
    temper: str | None
    keep_rungs: bool

    @abstractmethod
    def pilot(self, ladder: Ladder) -> Any:
        """Parallel tempering with the same local moves, for what its swaps tell."""

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        if self.ladder is not None:
            self.ladder.check_against(posterior.n)
        check_counted(posterior)
        check_without_laplace(self.proposal)
        check_proposal_fits(self.proposal, posterior, params)
        check_reference(self.reference, params)
        check_temper_fits(self.temper, posterior)
        if self.keep_rungs and "rung" in dict(named(params)):
            raise ValueError("keep_rungs must be False where a parameter is called 'rung', an axis of them, got True")

    @property
    def left_open(self) -> tuple[str, ...]:
        """The ladder, unless it was given."""
        return ("ladder",) if self.ladder is None else ()

    def settle(self, setting: Setting) -> Settled:
        """On a ladder that pilot runs have tuned."""
        ladder, rows, said = tuned(setting, self.pilot)
        return Settled(replace(self, ladder=ladder), rows, said)  # type: ignore[type-var]  # all of them are dataclasses

    @property
    def settled_ladder(self) -> Ladder:
        """The ladder, once there is one."""
        check_settled(self)
        assert self.ladder is not None
        return self.ladder

    def start_temperature(self, n: int) -> float | None:
        """That of the hottest rung."""
        return start_temperature(self.proposal, self.settled_ladder.temperatures[-1])
