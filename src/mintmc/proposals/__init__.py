"""Where a chain may go next: proposals q(theta -> theta')."""

from mintmc.proposals.autoregressive import Autoregressive
from mintmc.proposals.base import Point, Proposal, Visit
from mintmc.proposals.custom import Custom
from mintmc.proposals.hamiltonian import Hamiltonian
from mintmc.proposals.langevin import Langevin
from mintmc.proposals.leap import Leap
from mintmc.proposals.nuts import NUTS
from mintmc.proposals.random_walk import RandomWalk
from mintmc.proposals.tuning import Tuning, initial_scale

__all__ = [
    "NUTS",
    "Autoregressive",
    "Custom",
    "Hamiltonian",
    "Langevin",
    "Leap",
    "Point",
    "Proposal",
    "RandomWalk",
    "Tuning",
    "Visit",
    "initial_scale",
]
