"""The confidence sampler and its control variates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from jax import Array

from mintmc import check
from mintmc.acceptance.base import AcceptanceTest
from mintmc.acceptance.confidence import INEQUALITIES, Confidence
from mintmc.acceptance.proxy import Proxy
from mintmc.flat import FlatTarget
from mintmc.params import Params, check_alike, flatten
from mintmc.posterior import Posterior
from mintmc.proposals import Proposal, RandomWalk
from mintmc.samplers.base import check_plain
from mintmc.samplers.growing import GrowingSampler, check_growing, check_growing_fits


@dataclass(frozen=True)
class TaylorProxy:
    """Control variates for ``ConfidenceMH``: a second-order expansion of every log-likelihood around a centre.

    Parameters
    ----------
    remainder
        ``(params, proposed, centre) -> bound`` on |d_i - w_i|, all three of the form of ``init``. For logistic
        regression on a vector of weights: ``mintmc.logistic_remainder(x)``.
    centre
        Where to expand (the MAP is best); None takes the state where the chain starts.
    every
        Steps after which to expand anew at the current state; None never.
    """

    remainder: Callable[[Params, Params, Params], Array]
    centre: Params | None = None
    every: int | None = None

    def __post_init__(self) -> None:
        check.plain(self)
        check.function("remainder", self.remainder)
        if self.every is not None:
            check.integer("every", self.every, 1, most=check.LARGEST_COUNT)


@dataclass(frozen=True)
class ConfidenceMH(GrowingSampler):
    """MHSUBLHD, the confidence sampler (Bardenet et al. 2014): decided by concentration bounds.

    The acceptance probability is within ``delta`` of Metropolis-Hastings' own. Without a proxy nearly all data are
    read once the chain has converged; with a good one, a small part.

    Parameters
    ----------
    bound
        ``(params, proposed) -> bound`` on the |difference of log-likelihoods| of every row; for logistic regression
        on a vector of weights ``mintmc.logistic_bound(x)``. "oracle" takes the largest difference and the standard
        deviation over all data, as published (counted in ``oracle_touched``). Not needed with a proxy.
    batch_size, growth
        Rows at the first look, and the factor from one look to the next.
    delta, power
        Probability of a wrong decision, and p in the share (p-1)/(p look^p) that each look has of it.
    inequality
        "bernstein-serfling", "bernstein" or "hoeffding-serfling".
    proxy
        A ``TaylorProxy``.
    temperature, proposal, temper, batching
        As for ``MINT``.
    published
        Start at look 2 and never read the last batch, as the published code does.

    Examples
    --------
    >>> import jax, numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(size=(2000, 2))
    >>> posterior = mintmc.Posterior(lambda w, x: jax.nn.log_sigmoid(x @ w), x)
    >>> sampler = mintmc.ConfidenceMH(bound=mintmc.logistic_bound(x), temperature=50.0)
    >>> tree = mintmc.sample(posterior, sampler, init=np.zeros(2), draws=200, progress=False)
    >>> int(tree["sample_stats"]["bound_violations"].sum())
    0
    """

    batch_size: int = 100
    _: KW_ONLY
    temperature: float = 1.0
    proposal: Proposal = field(default_factory=RandomWalk)
    bound: Callable[[Params, Params], Array] | str | None = None
    growth: float = 2.0
    delta: float = 0.01
    power: float = 2.0
    inequality: str = "bernstein-serfling"
    proxy: TaylorProxy | None = None
    published: bool = False
    temper: str = "posterior"
    batching: str = "shuffled"

    def __post_init__(self) -> None:
        check_growing(self)
        check.number("growth", self.growth, 1)
        check.number("delta", self.delta, 0, 1)
        check.number("power", self.power, 1)
        check.choice("inequality", self.inequality, INEQUALITIES)
        check.flag("published", self.published)
        if (self.bound is None) == (self.proxy is None):
            got = f"bound={check.shown(self.bound)}, proxy={check.shown(self.proxy)}"
            raise ValueError(f"exactly one of bound and proxy must be given, got {got}")
        if isinstance(self.bound, str):
            check.choice("bound", self.bound, ("oracle",))
        elif self.bound is not None:
            check.function("bound", self.bound)
        if self.proxy is not None:
            check.instance("proxy", self.proxy, TaylorProxy, "a TaylorProxy")

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        check_growing_fits(self, posterior, params)
        centre = params if self.proxy is None or self.proxy.centre is None else self.proxy.centre
        flatten(centre, "centre")
        check_alike("centre", centre, params)
        if self.proxy is not None:
            check_plain(posterior, "proxy: its remainder is one in params")
            check.scalar("remainder", self.proxy.remainder, params, params, centre)
        elif callable(self.bound):
            check.scalar("bound", self.bound, params, params)

    def test(self, target: FlatTarget) -> tuple[AcceptanceTest, int]:
        """The test by concentration bounds, and the rows that it reads at a time."""
        bound, proxy, unravel = None, None, target.unravel
        if callable(self.bound):
            given = self.bound
            bound = lambda here, there: given(unravel(here), unravel(there))  # noqa: E731
        if self.proxy is not None:
            remainder, centre = self.proxy.remainder, self.proxy.centre
            proxy = Proxy(
                None if centre is None else target.ravel(centre),
                lambda here, there, centre: remainder(unravel(here), unravel(there), unravel(centre)),
                self.proxy.every,
                target.n,
            )
        settings = (self.batch_size, self.growth, self.delta, self.power, self.inequality)
        return Confidence(*settings, bound, proxy, self.published), self.batch_size
