"""What the driver asks of a sampler and of its run: it knows no sampler, and no kind of run.

A sampler checks itself and builds its own run (``plan``). A run compiles, warms up and collects in stretches; after
each it gives the driver a word, which shows it, saves if it is time to, and goes on. The driver pulls draws (``take``)
and checkpoints; nobody else changes a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import is_dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from mintmc.kernels.base import Kernel
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.markup import Html, as_html
from mintmc.params import Params
from mintmc.posterior import Posterior
from mintmc.run.draws import Part
from mintmc.run.interrupt import Interrupt
from mintmc.run.progress import Display
from mintmc.run.settle import Setting, Settled
from mintmc.run.task import Task
from mintmc.written import settings_card


class Session(NamedTuple):
    """What a run works with while it runs."""

    pool: ThreadPoolExecutor
    display: Display
    interrupt: Interrupt


class Standing(NamedTuple):
    """Where the chains of one rung stand, for an audit."""

    kernel: Kernel
    thetas: list[np.ndarray]
    tunings: list[Any]  # Tuning, one a chain; None where nothing is adapted
    centres: list[Any] | None = None  # Centre, one a chain, where the target is controlled

    @property
    def is_of_moves(self) -> bool:
        """Whether there are moves to decide again, and not only steps to judge."""
        return isinstance(self.kernel, MetropolisKernel)


class Run(Protocol):
    """Where a run stands, and how it goes on."""

    lanes: Any  # programs that may run at once
    width: Any  # numbers that a draw of one chain holds, about
    warmed: Any  # how far warm-up is
    to_warm: Any  # how far it goes
    drawn: Any  # draws that were made
    acceptance: Any  # mean rate of each chain in the last stretch

    @property
    def waiting(self) -> np.ndarray:
        """Draws (chain, draw, d) that were made and not yet taken."""
        ...

    @property
    def outline(self) -> str:
        """What it is going to do, in one line."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more draws until some are taken."""
        ...

    def compile(self, session: Session, room: int) -> None:
        """Start all chains and compile their programs; ``room`` is for draws that were not yet taken."""
        ...

    def warm_up(self, session: Session) -> Iterator[None]:
        """Adapt what is to be adapted; stops between two stretches where it may be saved."""
        ...

    def collect(self, session: Session, end: int) -> Iterator[None]:
        """Make draws, likewise, until there are ``end`` of them; it may be asked again."""
        ...

    def conclude(self, session: Session) -> Iterator[None]:
        """What comes after the last draw."""
        return iter(())

    def take(self) -> Part:
        """The draws made since it was last asked."""
        ...

    def checkpoint(self) -> Any:
        """Everything that the rest of the run depends on, as a pytree of arrays."""
        ...

    def restore(self, checkpoint: Any) -> None:
        """Go on from a checkpoint."""
        ...

    def committed(self) -> None:
        """The checkpoint is safe: what lives outside of it may follow."""
        ...

    def facts(self) -> dict[str, Any]:
        """What the tree should know of the whole run."""
        ...

    def standings(self) -> dict[int, Standing]:
        """Where the chains stand, by rung: moves on batches that are to be audited."""
        ...


class Sampler(Protocol):
    """Settings that check themselves and plan a run."""

    @property
    def left_open(self) -> tuple[str, ...]:
        """Settings that are to be chosen before a run begins; each is None until then."""
        return ()

    def settle(self, setting: Setting) -> Settled:
        """The sampler with all of them chosen, by a look at the posterior or by pilot runs."""
        return Settled(self)

    @property
    def shares_passes(self) -> bool:
        """Whether every step passes over all data, so that processes can share its passes."""
        return False

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        ...

    def target_temperature(self, n: int) -> float:
        """The temperature of the distribution that its draws come from."""
        return 1.0

    def start_temperature(self, n: int) -> float | None:
        """The temperature at which chains from one ``init`` start around it; None starts all of them there."""
        return self.target_temperature(n)

    def plan(self, task: Task) -> Run:
        """The run that it makes of a task."""
        ...

    def _repr_html_(self) -> Html:
        return settings_card(self) if is_dataclass(self) else as_html(repr(self))
