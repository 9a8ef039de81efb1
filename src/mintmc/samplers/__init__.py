"""Samplers: what a user asks for."""

from mintmc.samplers.base import Sampler
from mintmc.samplers.metropolis import MINT, MetropolisHastings

__all__ = ["MINT", "MetropolisHastings", "Sampler"]
