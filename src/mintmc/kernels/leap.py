"""Local moves and leaps: after each local move of a chain, a leap to another mode is tried.

Two Metropolis kernels with one target and one acceptance test, applied in turn. Both leave the target invariant: on
all data exactly, on batches as far as the penalty does (``acceptance/minibatch.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import count
from mintmc.data import Batch
from mintmc.energy import Density
from mintmc.kernels import metropolis
from mintmc.kernels.base import Kernel
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.proposals import Leap, Proposal, Tuning
from mintmc.statistics import DATA_TOUCHED, Info, Statistic

LEAPS = (
    Statistic("mode", dtype=np.int32, over="last"),
    Statistic("leap_from", dtype=np.int32, over="last"),
    Statistic("leap_to", dtype=np.int32, over="last"),
    Statistic("leap_rate", unit="probability", over="last"),
    Statistic("leap_accepted", unit="probability"),
    Statistic("leap_noise", unit="variance of the log ratio, over batches"),
)
LOG_FIT = Statistic("log_fit", unit="nats", over="last")
"""Log density of the fitted modes: with the energy it tells the evidence."""


class Randomness(NamedTuple):
    """All random numbers of one step but its batches."""

    local: metropolis.Randomness
    leap: metropolis.Randomness


@dataclass(frozen=True)
class LeapKernel(Kernel):
    """A local move, then a leap; the modes are batch["modes"]."""

    local: MetropolisKernel
    is_independent: bool = False

    @property
    def leap(self) -> MetropolisKernel:
        """The kernel of leaps."""
        return replace(self.local, proposal=self._leap)

    @property
    def _leap(self) -> Leap:
        return Leap(self.is_independent, self.local.proposal.uses_gradient)

    @property
    def proposal(self) -> Proposal:
        """That of local moves."""
        return self.local.proposal

    @property
    def temperatures(self) -> Any:
        """That of the target."""
        return self.local.temperatures

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Those of local moves and of leaps."""
        known = tuple(each for each in self.local.statistics if each.name != DATA_TOUCHED.name)
        return (*known, DATA_TOUCHED, *LEAPS, *((LOG_FIT,) if self.local.test.is_exact else ()))

    @property
    def batches(self) -> dict[str, int]:
        """Those of the local move, and on batches others for the leap."""
        local = self.local.batches
        if self.local.test.is_exact:
            return local
        return local | {f"leap {role}": size for role, size in self.leap.batches.items()}

    @property
    def init_touched(self) -> int:
        """Data points that ``init`` reads."""
        return self.local.init_touched

    def randomness(self, key: Array) -> Randomness:
        """Everything random in one step but the batches."""
        for_local, for_leap = jax.random.split(key)
        return Randomness(self.local.randomness(for_local), self.leap.randomness(for_leap))

    def init(self, theta: Array, batch: Batch) -> Any:
        """The first state: that of a chain of local moves."""
        return self.local.init(theta, batch)

    def advance(self, randomness: Randomness, state: Any, batch: Batch, tuning: Tuning) -> tuple[Any, Info]:
        """A local move, then a leap."""
        modes = batch["modes"]
        moved, info = self.local.advance(randomness.local, state, batch, tuning)
        # What the leap itself works out again, XLA works out once.
        way = self._leap.way(randomness.leap.proposal, self.position(moved), modes)
        leapt, leap = self.leap.advance(randomness.leap, moved, self._of_leap(batch), tuning._replace(modes=modes))
        told = {
            "is_defined": info["is_defined"] & leap["is_defined"],
            "mode": jnp.where(leap["accepted"], way.to, way.mode).astype(jnp.int32),
            "leap_from": way.mode.astype(jnp.int32),
            "leap_to": way.to.astype(jnp.int32),
            "leap_rate": leap["acceptance_rate"],
            "leap_accepted": leap["accepted"].astype(self.local.dtype),
            "leap_noise": leap["log_ratio_noise"],
            "data_touched": self._touched(info, leap, way.is_possible),
        }
        if not self.local.test.is_exact:
            return leapt, info | told
        log_fit = jnp.where(leap["accepted"], *way.log_fit[::-1])
        return leapt, info | told | {"energy": leap["energy"], "log_fit": in_params(log_fit, leap["energy"])}

    def position(self, state: Any) -> Array:
        """Where a state is."""
        return self.local.position(state)

    def audited(self) -> Mapping[int, Kernel]:
        """Local moves, where they are on batches."""
        return self.local.audited()

    def _touched(self, local: Info, leap: Info, is_possible: Array) -> count.Count:
        """Data points of the local move, and of the leap if there was one."""
        moved = local["data_touched"] if self.local.touched is None else count.of(self.local.touched)
        leapt = leap["data_touched"] if self.leap.touched is None else count.of(self.leap.touched)
        return count.add(moved, jax.tree.map(lambda word: jnp.where(is_possible, word, 0), leapt))

    def _of_leap(self, batch: Batch) -> Batch:
        """What the leap reads: batches of its own."""
        own = {role.removeprefix("leap "): rows for role, rows in batch.items() if role.startswith("leap ")}
        return {**batch, **own}


def in_params(log_fit: Array, density: Density) -> Array:
    """A log density of parameters as the user has them, of one of flat vectors."""
    return log_fit if density.jacobian is None else log_fit - density.jacobian
