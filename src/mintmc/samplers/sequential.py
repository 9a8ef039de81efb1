"""Samplers that read as much of the data as a decision needs: Metropolis-Hastings with other acceptance tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.acceptance import correction, design
from mintmc.acceptance.austere import Austere, critical_values
from mintmc.acceptance.barker import Barker
from mintmc.acceptance.confidence import INEQUALITIES, Confidence
from mintmc.acceptance.minibatch import AcceptanceTest
from mintmc.acceptance.proxy import Proxy
from mintmc.data import BATCHINGS
from mintmc.energy import TEMPERS, Model, Tempered
from mintmc.kernels import metropolis
from mintmc.kernels.base import Kernel
from mintmc.posterior import Params, Posterior, flatten
from mintmc.proposals import Proposal, RandomWalk
from mintmc.samplers.base import check_has_data, check_proposal_fits, on_vectors


@dataclass(frozen=True)
class BarkerMH:
    """MHMINIBATCH (Seita et al. 2017): Barker's test on a batch that grows until its noise is below ``variance``.

    Use it at high temperature with small steps, where a first batch is usually enough: the data it needs grow with
    the square of the step over the temperature. Barker accepts at most half as often as Metropolis: do not tune both
    to one rate.

    Parameters
    ----------
    batch_size
        Rows of the first batch, and of each batch that is added.
    temperature, proposal, temper, batching
        As for ``MINT``.
    variance
        The noise of the log ratio at which to stop, in (0, pi^2/3).
    table
        The correction variable: "nnls" (error 1e-7 at variance 1) or "ridge" (the published table, error 9e-4).
    published
        Keep two rules of the published code: no finite-population factor, and a decision by sign once it is sure at 5
        sigma.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(size=10_000)
    >>> posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    >>> sampler = mintmc.BarkerMH(batch_size=50, temperature=100.0, proposal=mintmc.RandomWalk(step_size=0.1))
    >>> tree = mintmc.sample(posterior, sampler, init=0.0, draws=500, progress=False)
    >>> bool(tree["sample_stats"]["data_touched"].mean() < 500)
    True
    """

    batch_size: int = 100
    temperature: float = 1.0
    proposal: Proposal = field(default_factory=RandomWalk)
    variance: float = 1.0
    table: str = "nnls"
    published: bool = False
    temper: str = "posterior"
    batching: str = "shuffled"

    def __post_init__(self) -> None:
        _check_common(self)
        check.number("variance", self.variance, 0, correction.LOGISTIC_VARIANCE)
        check.choice("table", self.table, ("nnls", "ridge"))
        check.flag("published", self.published)

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        _check_fits(self, posterior, params)

    def target_temperature(self, n: int) -> float:
        """The temperature of the distribution that its draws come from."""
        return float(self.temperature)

    def kernel(self, model: Model, theta: Array, unravel: Callable, ravel: Callable) -> Kernel:
        """The kernel of one chain."""
        law = correction.atoms(self.variance) if self.table == "nnls" else correction.ridge(self.variance)
        test = Barker(self.batch_size, self.variance, law, self.published)
        return _kernel(self, test, self.batch_size, model, theta, unravel, ravel)


@dataclass(frozen=True)
class AustereMH:
    """AUSTEREMH (Korattikara et al. 2014): Metropolis-Hastings decided by a sequential t-test.

    The stationary law is only approximately the tempered posterior: a larger ``epsilon`` reads less and errs more.

    Parameters
    ----------
    batch_size, epsilon
        Rows from one look to the next, and the level in (0, 1/2] of the test at each. ``conservative`` chooses them.
    temperature, proposal, temper, batching
        As for ``MINT``.
    oracle_error
        If given, the non-conservative variant of Seita et al. (2017): an oracle chooses at every step the cheapest
        test whose error is below this. It reads all data to do so (``oracle_touched``), so it is a yardstick, not an
        algorithm.
    published_oracle
        The oracle as in the published script, which drops the dependence of its threshold on u.

    Examples
    --------
    >>> import mintmc
    >>> sampler = mintmc.AustereMH.conservative(n=13_000, max_error=0.1)
    >>> sampler.batch_size, sampler.epsilon
    (450, 0.01)
    """

    batch_size: int = 500
    epsilon: float = 0.05
    temperature: float = 1.0
    proposal: Proposal = field(default_factory=RandomWalk)
    oracle_error: float | None = None
    published_oracle: bool = False
    temper: str = "posterior"
    batching: str = "shuffled"

    def __post_init__(self) -> None:
        _check_common(self)
        check.number("epsilon", self.epsilon, 0, 0.5, closed=(False, True))
        if self.oracle_error is not None:
            check.number("oracle_error", self.oracle_error, 0, 0.5)
        check.flag("published_oracle", self.published_oracle)

    @classmethod
    def conservative(cls, n: int, max_error: float, **settings: Any) -> AustereMH:
        """The cheapest test for n data whose error is below ``max_error`` even where the decision is hardest."""
        return cls(*design.conservative(n, max_error), **settings)

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        _check_fits(self, posterior, params)
        if self.oracle_error is not None and posterior.n < max(design.BATCH_SIZES):
            raise ValueError(
                f"oracle_error needs n >= {max(design.BATCH_SIZES)} for its grid of tests, got n = {posterior.n}"
            )

    def target_temperature(self, n: int) -> float:
        """The temperature of the distribution that its draws come from."""
        return float(self.temperature)

    def kernel(self, model: Model, theta: Array, unravel: Callable, ravel: Callable) -> Kernel:
        """The kernel of one chain."""
        if self.oracle_error is None:
            critical = critical_values(model.n, self.batch_size, self.epsilon)[None]
            test = Austere(self.batch_size, critical, np.ones(1, int), None, False)
            return _kernel(self, test, self.batch_size, model, theta, unravel, ravel)
        table = _oracle_table(model.n, self.oracle_error)
        pairs = np.unique(np.stack([table.batch_size, table.epsilon], axis=1), axis=0)
        # All tests look at multiples of the finest batch, each at its own.
        block = min(design.BATCH_SIZES)
        critical = np.stack([critical_values(model.n, block, epsilon) for _, epsilon in pairs])
        test = Austere(block, critical, (pairs[:, 0] // block).astype(int), table, self.published_oracle)
        return _kernel(self, test, block, model, theta, unravel, ravel)


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
        check.function("remainder", self.remainder)
        if self.every is not None:
            check.integer("every", self.every, 1)


@dataclass(frozen=True)
class ConfidenceMH:
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

    bound: Callable[[Params, Params], Array] | str | None = None
    batch_size: int = 100
    growth: float = 2.0
    delta: float = 0.01
    power: float = 2.0
    inequality: str = "bernstein-serfling"
    proxy: TaylorProxy | None = None
    temperature: float = 1.0
    proposal: Proposal = field(default_factory=RandomWalk)
    published: bool = False
    temper: str = "posterior"
    batching: str = "shuffled"

    def __post_init__(self) -> None:
        _check_common(self)
        check.number("growth", self.growth, 1)
        check.number("delta", self.delta, 0, 1)
        check.number("power", self.power, 1)
        check.choice("inequality", self.inequality, INEQUALITIES)
        check.flag("published", self.published)
        if (self.bound is None) == (self.proxy is None):
            raise ValueError(
                f"exactly one of bound and proxy must be given, got bound={self.bound!r}, proxy={self.proxy!r}"
            )
        if self.bound is not None and self.bound != "oracle":
            check.function("bound", self.bound)
        if self.proxy is not None and not isinstance(self.proxy, TaylorProxy):
            raise TypeError(f"proxy must be a TaylorProxy, got {self.proxy!r}")

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        _check_fits(self, posterior, params)
        centre = params if self.proxy is None or self.proxy.centre is None else self.proxy.centre
        if flatten(centre, "centre")[0].size != flatten(params, "init")[0].size:
            raise ValueError(f"centre must have the form of init, got {centre!r}")
        if self.proxy is not None:
            check.scalar("remainder", self.proxy.remainder, params, params, centre)
        elif callable(self.bound):
            check.scalar("bound", self.bound, params, params)

    def target_temperature(self, n: int) -> float:
        """The temperature of the distribution that its draws come from."""
        return float(self.temperature)

    def kernel(self, model: Model, theta: Array, unravel: Callable, ravel: Callable) -> Kernel:
        """The kernel of one chain."""
        bound, proxy = None, None
        if callable(self.bound):
            given = self.bound
            bound = lambda here, there: given(unravel(here), unravel(there))  # noqa: E731
        if self.proxy is not None:
            remainder, centre = self.proxy.remainder, self.proxy.centre
            proxy = Proxy(
                None if centre is None else flatten(centre, "centre")[0],
                lambda here, there, centre: remainder(unravel(here), unravel(there), unravel(centre)),
                self.proxy.every,
            )
        test = Confidence(
            self.batch_size, self.growth, self.delta, self.power, self.inequality, bound, proxy, self.published
        )
        built = _kernel(self, test, self.batch_size, model, theta, unravel, ravel)
        return built if proxy is None else built._replace(init_touched=proxy.passes * model.n)


def _check_common(sampler: Any) -> None:
    check.integer("batch_size", sampler.batch_size, 2)
    check.number("temperature", sampler.temperature, 0)
    check.choice("temper", sampler.temper, TEMPERS)
    check.choice("batching", sampler.batching, BATCHINGS)


def _check_fits(sampler: Any, posterior: Posterior, params: Params) -> None:
    check_has_data(posterior)
    check.integer("batch_size", sampler.batch_size, 2, posterior.n, "n")
    check_proposal_fits(sampler.proposal, posterior, params)


def _kernel(
    sampler: Any, test: AcceptanceTest, block: int, model: Model, theta: Array, unravel: Callable, ravel: Callable
) -> Kernel:
    target = Tempered(model, sampler.target_temperature(model.n), sampler.temper)
    proposal = on_vectors(sampler.proposal, unravel, ravel)
    return metropolis.kernel(metropolis.Settings(target, proposal, test, block, theta.size, jnp.dtype(theta.dtype)))


@cache
def _oracle_table(n: int, max_error: float) -> design.DesignTable:
    return design.table(n, max_error)
