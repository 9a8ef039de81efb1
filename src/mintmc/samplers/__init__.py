"""Samplers: what a user asks for."""

from mintmc.run.protocol import Sampler
from mintmc.samplers.confidence import ConfidenceMH, TaylorProxy
from mintmc.samplers.equi_energy import EquiEnergy
from mintmc.samplers.exact import FireflyMC, TunaMH
from mintmc.samplers.leaps import Leaps
from mintmc.samplers.metropolis import MINT, MetropolisHastings
from mintmc.samplers.mintee import MINTEE
from mintmc.samplers.parallel_tempering import ParallelTempering
from mintmc.samplers.scalable import ScalableMH
from mintmc.samplers.sequential import AustereMH, BarkerMH
from mintmc.samplers.stochastic_gradient import SGHMC, SGLD

__all__ = [
    "MINT",
    "MINTEE",
    "SGHMC",
    "SGLD",
    "AustereMH",
    "BarkerMH",
    "ConfidenceMH",
    "EquiEnergy",
    "FireflyMC",
    "Leaps",
    "MetropolisHastings",
    "ParallelTempering",
    "Sampler",
    "ScalableMH",
    "TaylorProxy",
    "TunaMH",
]
