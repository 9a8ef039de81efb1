"""Metropolis-Hastings on all data and on mini-batches."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from mintmc import check
from mintmc.acceptance.base import AcceptanceTest
from mintmc.acceptance.exact import Exact
from mintmc.acceptance.minibatch import ESTIMATORS
from mintmc.control import Controlled, Taylor
from mintmc.data import BATCHINGS
from mintmc.energy import TEMPERS, Tempered
from mintmc.flat import FlatTarget
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.params import Params
from mintmc.posterior import Posterior, check_counted
from mintmc.proposals import Proposal, RandomWalk
from mintmc.samplers.base import (
    KernelSampler,
    check_has_data,
    check_proposal_fits,
    check_settings,
    check_temper_fits,
    on_vectors,
    start_temperature,
)
from mintmc.samplers.control import check_control, check_control_fits, default_proposal

_HOTTEST = 1e30
"""Beyond it curvatures over T are no longer float32."""


@dataclass(frozen=True)
class MetropolisHastings(KernelSampler):
    """Metropolis-Hastings on all data: MCMC, or the paper's "tempered MCMC" at a temperature above 1.

    Use it for the truth at small n, and as the reference for everything else. A step reads all n rows.

    Parameters
    ----------
    proposal
        ``RandomWalk``, ``Langevin``, ``Hamiltonian`` or ``Custom``.
    temperature
        T in exp(-energy / T).
    temper
        "posterior" divides the whole energy by T, "likelihood" leaves the prior as it is.

    Examples
    --------
    >>> import jax.numpy as jnp, mintmc
    >>> density = mintmc.Posterior.from_density(lambda x: -0.5 * jnp.sum(x**2))
    >>> sampler = mintmc.MetropolisHastings(mintmc.RandomWalk())
    >>> tree = mintmc.sample(density, sampler, init=jnp.zeros(2), draws=500, chains=2, progress=False)
    >>> dict(tree.posterior.sizes)
    {'chain': 2, 'draw': 500, 'theta_dim_0': 2}
    """

    proposal: Proposal = field(default_factory=RandomWalk)
    _: KW_ONLY
    temperature: float = 1.0
    temper: str = "posterior"

    shares_passes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self)
        check.number("temperature", self.temperature, 0)
        check.choice("temper", self.temper, TEMPERS)

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        check_temper_fits(self.temper, posterior)
        check_counted(posterior)
        check_proposal_fits(self.proposal, posterior, params)

    def target_temperature(self, n: int) -> float:
        """The temperature of the distribution that its draws come from."""
        return float(self.temperature)

    def start_temperature(self, n: int) -> float | None:
        """At which chains start around one ``init``."""
        return start_temperature(self.proposal, self.target_temperature(n))

    def kernel(self, target: FlatTarget) -> MetropolisKernel:
        """The kernel of one chain."""
        tempered = Tempered(target.model, self.target_temperature(target.n), self.temper)
        proposal = on_vectors(self.proposal, target)
        return MetropolisKernel(tempered, proposal, Exact(), target.n, target.dim, target.dtype)


@dataclass(frozen=True)
class MINT(KernelSampler):
    """Metropolis-Hastings on mini-batches: samples the posterior at temperature T = n^(1 - lambda).

    Exactly one of ``alpha``, ``lam`` and ``temperature`` sets the temperature. With m = n^tau,
    lambda = alpha * tau, and T = n^(1 - lambda): fewer data a step, or alpha further from 1, mean a hotter posterior.

    Parameters
    ----------
    batch_size
        m, the rows of one batch. With ``control`` it may be None: warm-up then chooses the smallest batch whose noise
        is comfortable.
    alpha, lam, temperature
        The temperature, in one of three ways; all need lambda < tau, that is T > n/m, unless there is ``control``.
    proposal
        ``RandomWalk``, ``Langevin``, ``Hamiltonian``, ``Autoregressive`` or ``Custom``. None is a random walk, or with
        ``control`` moves around the Laplace approximation at the mode (``Autoregressive``).
    estimator
        "common" (one fresh batch for both ends of a comparison), "recycled" (the chain of the paper's proof),
        "independent" (for comparison only).
    penalty
        Correct for the noise of the estimated ratio. False is the paper, which runs hotter than it says.
    temper
        "posterior" divides the whole energy by T, "likelihood" leaves the prior as it is.
    batching
        "shuffled" (slices of a shuffled copy) or "uniform" (a fresh subset at every step, slower).
    control
        ``Taylor()``: batches estimate only what an expansion of the log-likelihoods around the mode leaves. Any
        temperature from 1 on is then within reach of a batch of 100 rows, if the posterior is like a peak.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(size=10_000)
    >>> posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    >>> sampler = mintmc.MINT(batch_size=100, temperature=1.0, control=mintmc.Taylor())
    >>> tree = mintmc.sample(posterior, sampler, init=0.0, draws=2000, chains=2, progress=False)
    >>> round(float(tree.posterior["theta"].std()), 3)
    0.01
    >>> sampler = mintmc.MINT(batch_size=100, alpha=0.5)
    >>> round(sampler.target_temperature(posterior.n), 6)
    1000.0
    >>> tree = mintmc.sample(posterior, sampler, init=0.0, draws=200, chains=2, progress=False)
    >>> tree.tempered_posterior.attrs["temperature"] == sampler.target_temperature(posterior.n)
    True
    """

    batch_size: int | None = None
    _: KW_ONLY
    alpha: float | None = None
    lam: float | None = None
    temperature: float | None = None
    proposal: Proposal | None = None
    estimator: str = "common"
    penalty: bool = True
    temper: str = "posterior"
    batching: str = "shuffled"
    control: Taylor | None = None

    def __post_init__(self) -> None:
        if self.control is not None:
            check_control(self)
        if self.proposal is None:
            object.__setattr__(self, "proposal", default_proposal(self.control))
        check_settings(self)
        if self.batch_size is not None:
            check.integer("batch_size", self.batch_size, 1)
        elif self.control is None:
            raise TypeError("batch_size must be a whole number at least 1 without control, got None")
        given = {k: v for k in ("alpha", "lam", "temperature") if (v := getattr(self, k)) is not None}
        if len(given) != 1:
            got = check.shown(given) if given else "none"
            raise ValueError(f"exactly one of alpha, lam and temperature must be given, got {got}")
        if self.alpha is not None:
            check.number("alpha", self.alpha, 0, 1)
        if self.lam is not None:
            check.number("lam", self.lam, 0, 1)
        if self.temperature is not None:
            # At n/m and below only control variates help: see ``check``.
            check.number("temperature", self.temperature, 1, closed=(self.control is not None, False))
            if self.control is not None and self.temperature > _HOTTEST:
                raise ValueError(f"temperature must be at most {_HOTTEST:g} with control, got {self.temperature:g}")
        check.choice("estimator", self.estimator, tuple(ESTIMATORS))
        check.flag("penalty", self.penalty)
        check.choice("temper", self.temper, TEMPERS)
        check.choice("batching", self.batching, BATCHINGS)
        if self.batch_size is None and self.temperature is None:
            raise ValueError(f"temperature must be given where batch_size is left open, got {check.shown(given)}")
        if self.penalty and self.batch_size == 1:
            raise ValueError("batch_size must be at least 2 with penalty=True (its variance is needed), got 1")

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        n = posterior.n
        check_has_data(posterior)
        if self.batch_size is not None:
            check.integer("batch_size", self.batch_size, 1, n, "n")
        check_proposal_fits(self.proposal, posterior, params)
        if self.control is not None:
            check_control_fits(self.control, self.proposal, posterior, params)
            return
        assert self.batch_size is not None
        tau = math.log(self.batch_size) / math.log(n) if n > 1 else 1.0
        if self.lam is not None and self.lam >= tau:
            raise ValueError(f"lam must be below tau = log(batch_size)/log(n) = {tau:.4g}, got {self.lam:g}")
        if self.temperature is not None and self.temperature <= n / self.batch_size:
            raise ValueError(
                f"temperature must be above n/batch_size = {n / self.batch_size:g} (lambda < tau), "
                f"got {self.temperature:g}"
            )

    def target_temperature(self, n: int) -> float:
        """The temperature of the distribution that its draws come from."""
        if self.temperature is not None:
            return float(self.temperature)
        if self.lam is not None:
            return float(n ** (1 - self.lam))
        return float(n / (self.batch_size or 1) ** (self.alpha or 0))  # n^lambda = (n^tau)^alpha

    def start_temperature(self, n: int) -> float | None:
        """At which chains start around one ``init``."""
        assert self.proposal is not None
        return start_temperature(self.proposal, self.target_temperature(n))

    def kernel(self, target: FlatTarget) -> MetropolisKernel:
        """The kernel of one chain."""
        kind = Tempered if self.control is None else Controlled
        tempered = kind(target.model, self.target_temperature(target.n), self.temper)
        assert self.proposal is not None
        assert self.batch_size is not None
        proposal = on_vectors(self.proposal, target)
        test: AcceptanceTest = ESTIMATORS[self.estimator](self.penalty)
        return MetropolisKernel(tempered, proposal, test, self.batch_size, target.dim, target.dtype)
