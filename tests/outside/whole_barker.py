"""An acceptance test: Barker's, on all data. A move is accepted with probability 1 / (1 + exp(-log ratio))."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from mintmc.acceptance.exact import Exact
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.protocols import KernelSampler, Statistic, Tempered, decided
from outside.walk import CauchyWalk


@dataclass(frozen=True)
class WholeBarker(Exact):
    """Barker's rule; its own statistic is the log ratio."""

    statistics: ClassVar[tuple[Statistic, ...]] = (Statistic("log_ratio", dtype=np.float32, unit="nats", over="last"),)

    def decide(self, randomness, here, there, log_q, memory, batch, target):
        ratio = target.log_ratio(here.density, there.density) + log_q
        rate = jax.nn.sigmoid(ratio)
        info = decided(randomness < jnp.log(rate), rate, jnp.zeros_like(rate), ~jnp.isnan(ratio))
        return info | {"log_ratio": ratio}, memory


@dataclass(frozen=True)
class WholeBarkerMH(KernelSampler):
    """A sampler with that test."""

    proposal: Any = field(default_factory=CauchyWalk)
    temperature: float = 1.0

    def check(self, posterior, params):
        posterior.check_functions(params, "init")

    def target_temperature(self, n):
        return float(self.temperature)

    def kernel(self, target):
        tempered = Tempered(target.model, self.temperature)
        return MetropolisKernel(tempered, self.proposal, WholeBarker(), target.n, target.dim, target.dtype)
