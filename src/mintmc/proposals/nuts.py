"""The No-U-Turn sampler of BlackJAX as a local move on all data.

A trajectory grows by doubling until it turns back, and a state is drawn from it (Hoffman & Gelman 2014; multinomial,
Betancourt 2017). That leaves the target as it is: nothing is left to accept. BlackJAX builds the trajectory in whitened
coordinates z, theta = theta_0 + S z; log densities are differences from the first state, exact in float32.

On batches it would not be right: the trajectory decides by densities that only all data tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import check
from mintmc.proposals.base import Point, Proposal, Transition, Visit, check_proposal
from mintmc.proposals.tuning import ADAPTED, AUTO, LAPLACE, Preconditioner, Tuning, gather, spread, suited
from mintmc.statistics import Statistic

_MOST_DOUBLINGS = 15
DIVERGING = Statistic("diverging", dtype=bool, over="any", unit="trajectories that left all bounds")


@dataclass(frozen=True)
class NUTS(Proposal):
    """The No-U-Turn sampler (through BlackJAX: ``pip install 'mintmc[blackjax]'``), for moves on all data.

    Use it where trajectories must differ much in length from place to place; ``Hamiltonian`` makes as many effective
    draws for its gradients on targets whose scales are the same everywhere, and works on batches.

    Parameters
    ----------
    step_size
        Length of one leapfrog step; None adapts it in warm-up.
    max_doublings
        A trajectory has at most 2 to this power steps.
    target_acceptance
        The mean acceptance along trajectories that adaptation aims at.
    preconditioner
        Inverse mass matrix, as of ``Hamiltonian``.

    Examples
    --------
    >>> import mintmc
    >>> density = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
    >>> sampler = mintmc.MetropolisHastings(mintmc.NUTS())
    >>> tree = mintmc.sample(density, sampler, init=0.0, draws=1000, warmup=500, chains=2, progress=False)
    >>> bool(abs(tree.posterior.theta.std() - 1) < 0.2), int(tree.sample_stats.diverging.sum())
    (True, 0)
    """

    step_size: float | None = None
    _: KW_ONLY
    max_doublings: int = 10
    target_acceptance: float = 0.8
    preconditioner: Preconditioner = AUTO

    uses_gradient: ClassVar[bool] = True
    varies: ClassVar[bool] = True
    is_transition: ClassVar[bool] = True
    statistics: ClassVar[tuple[Statistic, ...]] = (DIVERGING,)

    def __post_init__(self) -> None:
        check_proposal(self, (AUTO, *ADAPTED, LAPLACE))
        check.integer("max_doublings", self.max_doublings, 1, most=_MOST_DOUBLINGS)
        blackjax_kernel()

    @property
    def visits(self) -> int:
        """One state a leapfrog step, at most, and the one drawn once more."""
        return int(2**self.max_doublings)

    def settled(self, dim: int, several_modes: bool) -> NUTS:
        """With the preconditioner chosen."""
        return replace(self, preconditioner=suited(self.preconditioner, self.step_size, dim, several_modes))

    def randomness(self, key: Array, dim: int, dtype: Any) -> Array:
        """One key: how much more is drawn depends on the trajectory."""
        return jax.random.key_data(key)

    def transition(
        self, randomness: Array, here: Point, visit: Visit, log_ratio: Callable[[Any, Any], Array], tuning: Tuning
    ) -> Transition:
        """A state of the trajectory."""
        from blackjax.mcmc.hmc import HMCState

        def at(z: Array) -> Point:
            return visit(here.theta + spread(tuning.scale, z))

        def above(point: Point) -> Array:
            return log_ratio(here.density, point.density)

        # One pass tells density and gradient.
        @jax.custom_vjp
        def log_density(z: Array) -> Array:
            return above(at(z))

        def forwards(z: Array) -> tuple[Array, Array]:
            point = at(z)
            return above(point), gather(tuning.scale, point.gradient)

        log_density.defvjp(forwards, lambda gradient, weight: (weight * gradient,))
        zero = jnp.zeros_like(here.theta)
        first = HMCState(zero, jnp.zeros((), zero.dtype), gather(tuning.scale, here.gradient))
        key, unit = jax.random.wrap_key_data(randomness), jnp.ones_like(zero)
        last, info = blackjax_kernel()(key, first, log_density, tuning.step_size, unit, self.max_doublings)
        visited = info.num_integration_steps + 1  # the state drawn is visited once more, for its density
        return Transition(at(last.position), info.acceptance_rate, visited, {"diverging": info.is_divergent})

    def unit_step(self, dim: int) -> float:
        """Shorter steps in higher dimension."""
        result: float = 1.0 / dim**0.25
        return result


def blackjax_kernel() -> Any:
    """NUTS as BlackJAX has it."""
    try:
        from blackjax.mcmc import nuts
    except ImportError:
        raise ImportError("NUTS needs blackjax: pip install 'mintmc[blackjax]'") from None
    return nuts.build_kernel()
