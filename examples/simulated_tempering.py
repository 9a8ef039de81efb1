"""Simulated tempering: one chain that also moves over the temperatures of a ladder. A sampler from outside mintmc.

The chain samples pairs of a state x and a rung k from

    pi(x, k)  proportional to  exp(w_k - U(x) / T_k),

U the energy above that of a reference state: a local move of x at temperature T_k, then a step to a neighbouring rung,
accepted with log ratio (1/T_k - 1/T_k') U(x) + w_k' - w_k (Marinari & Parisi 1992). Given k = 0, x is distributed as
the posterior, exactly: the draws to keep are those of rung 0,

    tree.posterior.where(tree.sample_stats.rung == 0)

Rung k is visited in proportion to exp(w_k) Z_k, Z_k the integral of exp(-U / T_k). Weights of -log Z_k visit all rungs
alike; flat ones do for a few parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import mintmc
from mintmc import check
from mintmc.acceptance.exact import Exact
from mintmc.energy import Density, Model
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.ladder.reference import Reference
from mintmc.protocols import Kernel, Proposal, Sampler, Statistic, Tempered
from mintmc.run.chains import ChainRun
from mintmc.statistics import DECIDED, ENERGY


class State(NamedTuple):
    """Where the chain is, and on which rung."""

    local: Any
    rung: Any


@dataclass(frozen=True)
class TemperingKernel(Kernel):
    """A local move, then a step up or down the ladder."""

    model: Model
    proposal: Proposal
    ladder: tuple[float, ...]
    log_weights: tuple[float, ...]
    reference: Density
    dim: int
    dtype: Any

    temperatures = 1.0  # of what is drawn
    statistics = (*DECIDED, ENERGY, Statistic("rung", dtype=np.int32, over="last"))
    batches = property(lambda self: self.local(1.0).batches)
    touched = property(lambda self: self.local(1.0).touched)
    init_touched = property(lambda self: self.local(1.0).init_touched)

    def local(self, temperature):
        """Metropolis-Hastings on all data at one temperature."""
        target = Tempered(self.model, temperature)
        return MetropolisKernel(target, self.proposal, Exact(), self.model.n, self.dim, self.dtype)

    def randomness(self, key):
        """Of the local move, of the way to go on the ladder (up or down), and of whether to go."""
        move, way, whether = jax.random.split(key, 3)
        return self.local(1.0).randomness(move), jax.random.bernoulli(way), jnp.log(jax.random.uniform(whether))

    def init(self, theta, batch):
        """On rung 0."""
        return State(self.local(1.0).init(theta, batch), jnp.zeros((), jnp.int32))

    def advance(self, randomness, state, batch, tuning):
        """Move with a step that suits the temperature, then try the next rung; beyond the ends there is none."""
        move, is_up, log_uniform = randomness
        temperatures, weights = jnp.asarray(self.ladder), jnp.asarray(self.log_weights)
        here, there = state.rung, jnp.clip(state.rung + jnp.where(is_up, 1, -1), 0, len(self.ladder) - 1)
        wider = tuning._replace(step_size=tuning.step_size * jnp.sqrt(temperatures[here]))
        local, info = self.local(temperatures[here]).advance(move, state.local, batch, wider)
        energy = local.point.density.energy_above(self.reference)
        ratio = (1 / temperatures[here] - 1 / temperatures[there]) * energy + weights[there] - weights[here]
        rung = jnp.where(log_uniform < ratio, there, here)
        return State(local, rung), info | {"rung": rung}

    def position(self, state):
        """Where the chain is, on whichever rung."""
        return state.local.point.theta


@dataclass(frozen=True)
class SimulatedTempering(Sampler):
    """One chain that also moves over the temperatures of a ladder.

    Parameters
    ----------
    ladder
        Temperatures; every rung reads all data.
    log_weights
        w, one for each rung; None is flat.
    proposal
        Of local moves, one without gradient. Its step size at temperature T is sqrt(T) times that at 1.

    Examples
    --------
    >>> import jax.numpy as jnp, mintmc
    >>> two_modes = mintmc.Posterior.from_density(lambda x: jnp.logaddexp(-0.5 * (x - 9) ** 2, -0.5 * (x + 9) ** 2))
    >>> sampler = SimulatedTempering(mintmc.Ladder.geometric(hottest=50, rungs=5))
    >>> tree = mintmc.sample(two_modes, sampler, init=9.0, draws=20_000, chains=2, progress=False)
    >>> draws = tree.posterior.theta.where(tree.sample_stats.rung == 0)
    >>> bool(0.35 < (draws < 0).sum() / draws.count() < 0.65)
    True
    """

    ladder: mintmc.Ladder
    log_weights: Sequence[float] | None = None
    proposal: Proposal = field(default_factory=mintmc.RandomWalk)

    def __post_init__(self):
        check.instance("ladder", self.ladder, mintmc.Ladder, "a mintmc.Ladder")
        given = (0.0,) * len(self.ladder) if self.log_weights is None else tuple(self.log_weights)
        if len(given) != len(self.ladder):
            raise ValueError(f"log_weights must have one entry for each of {len(self.ladder)} rungs, got {given}")
        object.__setattr__(self, "log_weights", given)

    def check(self, posterior, params):
        """Refuse batches and gradients, which this kernel does not know."""
        if any(self.ladder.batch_sizes) or self.proposal.uses_gradient:
            raise ValueError(f"ladder and proposal must be without batches and gradients, got {check.shown(self)}")
        posterior.check_functions(params, "init")

    def plan(self, task):
        """Independent chains."""
        target, rungs = task.target, self.ladder
        reference = Reference.of(target, rungs, None, task.example, "posterior")
        proposal = self.proposal.on_vectors(target.unravel, target.ravel)
        settings = (proposal, rungs.temperatures, self.log_weights, reference.density, target.dim, target.dtype)
        kernel, about = TemperingKernel(target.model, *settings), rungs.outline(target.n)
        name, touched = type(self).__name__, reference.touched
        return ChainRun(task, kernel, name, batching="none", about=about, setup_touched=touched)
