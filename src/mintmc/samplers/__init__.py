"""Samplers: what a user asks for."""

from mintmc.samplers.base import Sampler
from mintmc.samplers.metropolis import MINT, MetropolisHastings
from mintmc.samplers.sequential import AustereMH, BarkerMH, ConfidenceMH, TaylorProxy

__all__ = ["MINT", "AustereMH", "BarkerMH", "ConfidenceMH", "MetropolisHastings", "Sampler", "TaylorProxy"]
