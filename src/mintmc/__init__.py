"""Mini-batch tempered Markov chain Monte Carlo for posteriors with many observations and many modes."""

from mintmc.acceptance.proxy import logistic_bound, logistic_remainder
from mintmc.posterior import Posterior
from mintmc.proposals import Custom, Hamiltonian, Langevin, RandomWalk
from mintmc.result.diagnose import Diagnosis, diagnose
from mintmc.result.normality import Normality, normality
from mintmc.run.initial import PerChain
from mintmc.run.sample import sample
from mintmc.samplers import MINT, AustereMH, BarkerMH, ConfidenceMH, MetropolisHastings, TaylorProxy

__all__ = [
    "MINT",
    "AustereMH",
    "BarkerMH",
    "ConfidenceMH",
    "Custom",
    "Diagnosis",
    "Hamiltonian",
    "Langevin",
    "MetropolisHastings",
    "Normality",
    "PerChain",
    "Posterior",
    "RandomWalk",
    "TaylorProxy",
    "diagnose",
    "logistic_bound",
    "logistic_remainder",
    "normality",
    "sample",
]
