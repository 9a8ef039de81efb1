"""Mini-batch tempered Markov chain Monte Carlo for posteriors with many observations and many modes."""

from mintmc.posterior import Posterior
from mintmc.proposals import Custom, Hamiltonian, Langevin, RandomWalk
from mintmc.run.initial import PerChain
from mintmc.run.sample import sample
from mintmc.samplers import MINT, MetropolisHastings

__all__ = [
    "MINT",
    "Custom",
    "Hamiltonian",
    "Langevin",
    "MetropolisHastings",
    "PerChain",
    "Posterior",
    "RandomWalk",
    "sample",
]
