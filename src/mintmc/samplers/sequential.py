"""Samplers that read as much of the data as a decision needs: Metropolis-Hastings with other acceptance tests."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from typing import Any

import numpy as np

from mintmc import check
from mintmc.acceptance import correction, design
from mintmc.acceptance.austere import Austere, critical_values
from mintmc.acceptance.barker import Barker
from mintmc.acceptance.base import AcceptanceTest
from mintmc.flat import FlatTarget
from mintmc.params import Params
from mintmc.posterior import Posterior
from mintmc.proposals import Proposal, RandomWalk
from mintmc.samplers.growing import GrowingSampler, check_growing, check_growing_fits


@dataclass(frozen=True)
class BarkerMH(GrowingSampler):
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
    _: KW_ONLY
    temperature: float = 1.0
    proposal: Proposal = field(default_factory=RandomWalk)
    variance: float = 1.0
    table: str = "nnls"
    published: bool = False
    temper: str = "posterior"
    batching: str = "shuffled"

    def __post_init__(self) -> None:
        check_growing(self)
        check.number("variance", self.variance, 0, correction.LOGISTIC_VARIANCE)
        check.choice("table", self.table, ("nnls", "ridge"))
        check.flag("published", self.published)

    def test(self, target: FlatTarget) -> tuple[AcceptanceTest, int]:
        """Barker's test, and the rows that it reads at a time."""
        law = correction.atoms(self.variance) if self.table == "nnls" else correction.ridge(self.variance)
        return Barker(self.batch_size, self.variance, law, self.published), self.batch_size


@dataclass(frozen=True)
class AustereMH(GrowingSampler):
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
    published
        The oracle as in the published script, which drops the dependence of its threshold on u.

    Examples
    --------
    >>> import mintmc
    >>> sampler = mintmc.AustereMH.conservative(n=13_000, max_error=0.1)
    >>> sampler.batch_size, sampler.epsilon
    (450, 0.01)
    """

    batch_size: int = 500
    _: KW_ONLY
    temperature: float = 1.0
    proposal: Proposal = field(default_factory=RandomWalk)
    epsilon: float = 0.05
    oracle_error: float | None = None
    published: bool = False
    temper: str = "posterior"
    batching: str = "shuffled"

    def __post_init__(self) -> None:
        check_growing(self)
        check.number("epsilon", self.epsilon, 0, 0.5, closed=(False, True))
        if self.oracle_error is not None:
            check.number("oracle_error", self.oracle_error, 0, 0.5)
        check.flag("published", self.published)

    @classmethod
    def conservative(cls, n: int, max_error: float, **settings: Any) -> AustereMH:
        """The cheapest test for n data whose error is below ``max_error`` even where the decision is hardest."""
        n = check.integer("n", n, max(design.BATCH_SIZES), most=10**7)  # the search takes time in proportion to n
        max_error = check.number("max_error", max_error, 0, 0.5)
        batch_size, epsilon = design.conservative(n, max_error)
        return cls(batch_size, epsilon=epsilon, **settings)

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        check_growing_fits(self, posterior, params)
        if self.oracle_error is not None and posterior.n < max(design.BATCH_SIZES):
            raise ValueError(
                f"oracle_error needs n >= {max(design.BATCH_SIZES)} for its grid of tests, got n = {posterior.n}"
            )

    def test(self, target: FlatTarget) -> tuple[AcceptanceTest, int]:
        """The t-test, and the rows that it reads at a time."""
        n = target.n
        if self.oracle_error is None:
            critical = critical_values(n, self.batch_size, self.epsilon)[None]
            return Austere(self.batch_size, critical, np.ones(1, int), None, False), self.batch_size
        table = _oracle_table(n, self.oracle_error)
        pairs = np.unique(np.stack([table.batch_size, table.epsilon], axis=1), axis=0)
        # All tests look at multiples of the finest batch, each at its own.
        block = min(design.BATCH_SIZES)
        critical = np.stack([critical_values(n, block, epsilon) for _, epsilon in pairs])
        every = (pairs[:, 0] // block).astype(int)
        return Austere(block, critical, every, table, self.published), block


@cache
def _oracle_table(n: int, max_error: float) -> design.DesignTable:
    return design.table(n, max_error)
