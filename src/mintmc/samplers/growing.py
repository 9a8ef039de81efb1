"""What samplers with a growing batch share."""

from __future__ import annotations

from typing import Any, Protocol

from mintmc import check
from mintmc.acceptance.base import AcceptanceTest
from mintmc.data import BATCHINGS
from mintmc.energy import TEMPERS, Tempered
from mintmc.flat import FlatTarget
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.params import Params
from mintmc.posterior import Posterior, check_counted
from mintmc.samplers.base import (
    KernelSampler,
    check_has_data,
    check_proposal_fits,
    check_settings,
    on_vectors,
    start_temperature,
)


def check_growing(sampler: Any) -> None:
    """The checks that all samplers with a growing batch share."""
    check_settings(sampler)
    check.integer("batch_size", sampler.batch_size, 2)
    check.number("temperature", sampler.temperature, 0)
    check.choice("temper", sampler.temper, TEMPERS)
    check.choice("batching", sampler.batching, BATCHINGS)


def check_growing_fits(sampler: Any, posterior: Posterior, params: Params) -> None:
    """Refuse settings that do not fit the posterior or its parameters."""
    check_has_data(posterior)
    check_counted(posterior)
    check.integer("batch_size", sampler.batch_size, 2, posterior.n, "n")
    check_proposal_fits(sampler.proposal, posterior, params)


class GrowingSampler(KernelSampler, Protocol):
    """Metropolis-Hastings with a test that reads blocks of rows until it can decide."""

    temperature: Any
    proposal: Any
    temper: Any

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        check_growing_fits(self, posterior, params)

    def target_temperature(self, n: int) -> float:
        """The temperature of the distribution that its draws come from."""
        return float(self.temperature)

    def start_temperature(self, n: int) -> float | None:
        """At which chains start around one ``init``."""
        return start_temperature(self.proposal, self.target_temperature(n))

    def kernel(self, target: FlatTarget) -> MetropolisKernel:
        """The kernel of one chain."""
        test, block = self.test(target)
        tempered = Tempered(target.model, self.target_temperature(target.n), self.temper)
        return MetropolisKernel(tempered, on_vectors(self.proposal, target), test, block, target.dim, target.dtype)

    def test(self, target: FlatTarget) -> tuple[AcceptanceTest, int]:
        """Its acceptance test, and the rows that it reads at a time."""
        ...
