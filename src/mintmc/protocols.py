"""What to subclass for parts of your own, and what those parts speak of; see docs/extending.md.

A proposal says where a chain may go, an acceptance test whether it goes there, a kernel makes one step, a source holds
rows, a sampler is the settings of any of these and plans a run.
"""

from mintmc.acceptance.base import AcceptanceTest, decided
from mintmc.data.source import Source
from mintmc.energy import Tempered
from mintmc.kernels.base import Kernel
from mintmc.proposals import Point, Proposal, Tuning
from mintmc.run.protocol import Run, Sampler
from mintmc.samplers.base import KernelSampler
from mintmc.statistics import Statistic

__all__ = [
    "AcceptanceTest",
    "Kernel",
    "KernelSampler",
    "Point",
    "Proposal",
    "Run",
    "Sampler",
    "Source",
    "Statistic",
    "Tempered",
    "Tuning",
    "decided",
]
