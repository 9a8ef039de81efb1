"""Samplers that read few rows and are exact all the same, for models of which more is known than the likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.compiled import ByContent, identity
from mintmc.control.alias import weighted
from mintmc.control.bounds import checked_scales, row_norms
from mintmc.control.lower_bounds import Bound
from mintmc.data import named_leaves
from mintmc.energy import TEMPERS, Tempered
from mintmc.flat import FlatTarget
from mintmc.kernels import tuna
from mintmc.kernels.firefly import FireflyKernel
from mintmc.params import Params
from mintmc.posterior import Posterior, check_counted
from mintmc.proposals import Proposal, RandomWalk
from mintmc.samplers.base import (
    KernelSampler,
    check_has_data,
    check_settings,
    check_without_gradient,
    on_vectors,
    start_temperature,
)


@dataclass(frozen=True, eq=False)
class FireflyMC(ByContent, KernelSampler):
    """Firefly Monte Carlo: exact, and reads only rows whose likelihood is far above a lower bound.

    Use it where a tight bound is known, such as logistic regression near its mode. Statistics of each draw: ``bright``
    (rows that are lit), ``bound_violations`` (rows seen below their bound) and ``overflows`` (updates of the lights
    that did not fit into ``capacity``); it is exact if the last two are 0.

    Parameters
    ----------
    bound
        ``JaakkolaJordan`` or a ``Bound`` of your own.
    temperature
        T in exp(-energy / T).
    proposal
        ``RandomWalk`` or ``Custom``: the gradient is not known.
    brighten
        The probability with which a dark row is considered in one step. Rows read for it are about ``brighten * n``:
        0.1 suits an untuned bound, 0.01 one that is tuned to the mode.
    capacity
        The most rows that may be bright at a time; None is all n.
    temper
        "posterior" divides the whole energy by T, "likelihood" leaves the prior as it is.

    Examples
    --------
    >>> import jax, numpy as np, mintmc
    >>> from mintmc.control.lower_bounds import JaakkolaJordan
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(500, 2)), rng.choice([-1.0, 1.0], size=500)
    >>> posterior = mintmc.Posterior(lambda t, row: jax.nn.log_sigmoid(row["y"] * (row["x"] @ t)), {"x": x, "y": y})
    >>> sampler = FireflyMC(JaakkolaJordan.untuned(x, y), proposal=mintmc.RandomWalk(step_size=0.1))
    >>> tree = mintmc.sample(posterior, sampler, init=np.zeros(2), draws=100, warmup=0, chains=1, progress=False)
    >>> bool(tree.sample_stats.data_touched.mean() < 500), int(tree.sample_stats.bound_violations.sum())
    (True, 0)
    """

    bound: Bound
    _: KW_ONLY
    temperature: float = 1.0
    proposal: Proposal = field(default_factory=RandomWalk)
    brighten: float = 0.1
    capacity: int | None = None
    temper: str = "posterior"

    def __post_init__(self) -> None:
        check_settings(self)
        if isinstance(self.bound, type) or not all(hasattr(self.bound, n) for n in ("constants", "log_bound", "total")):
            got = check.shown(self.bound)
            raise TypeError(f"bound must have constants, log_bound and total, as JaakkolaJordan has, got {got}")
        check.number("temperature", self.temperature, 0)
        check.number("brighten", self.brighten, 0, 1)
        check.choice("temper", self.temper, TEMPERS)
        if self.capacity is not None:
            check.integer("capacity", self.capacity, 1)

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters, and what is no bound at ``params``."""
        check_has_data(posterior)
        check_counted(posterior)
        check_without_gradient(self.proposal, posterior, params)
        if self.capacity is not None:
            check.integer("capacity", self.capacity, 1, posterior.n, "n")
        for name, leaf in named_leaves(self.bound.constants):
            if np.ndim(leaf) == 0 or len(leaf) != posterior.n:
                raise ValueError(f"bound.constants{name} must have n={posterior.n} rows, got shape {np.shape(leaf)}")
        _check_bound(self.bound, posterior, jax.tree.map(jnp.asarray, params))

    def target_temperature(self, n: int) -> float:
        """The temperature of the distribution that its draws come from."""
        return float(self.temperature)

    def start_temperature(self, n: int) -> float | None:
        """At which chains start around one ``init``."""
        return start_temperature(self.proposal, self.target_temperature(n))

    def kernel(self, target: FlatTarget) -> FireflyKernel:
        """The kernel of one chain."""
        tempered = Tempered(target.model, float(self.temperature), self.temper)
        proposal, capacity = on_vectors(self.proposal, target), target.n if self.capacity is None else self.capacity
        settings = (tempered, self.bound, proposal, float(self.brighten), capacity)
        return FireflyKernel(*settings, target.unravel, target.dim, target.dtype)


@dataclass(frozen=True, eq=False)
class TunaMH(ByContent, KernelSampler):
    """TunaMH: exact Metropolis-Hastings on about L + chi L^2 rows, where L = sum(scales) * distance / T.

    Use it where log-likelihoods change by a known amount at most. Short steps and high temperatures make it cheap.
    Statistics of each draw: ``kept`` (rows that entered the decision) and ``bound_violations`` (rows that changed by
    more than their scale allows); it is exact if the last is 0.

    Parameters
    ----------
    scales
        c_i, one number a row, at T = 1: ``|l_i(proposed) - l_i(params)| <= c_i * distance(params, proposed)``.
    temperature
        T in exp(-energy / T).
    proposal
        ``RandomWalk`` or ``Custom``: the gradient is not known.
    distance
        ``(params, proposed) -> scalar``, symmetric and at least 0; None is Euclidean.
    chi
        Larger reads more rows and accepts more moves.
    temper
        "posterior" divides the whole energy by T, "likelihood" leaves the prior as it is.

    Examples
    --------
    >>> import jax, numpy as np, mintmc
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(500, 2)), rng.choice([-1.0, 1.0], size=500)
    >>> posterior = mintmc.Posterior(lambda t, row: jax.nn.log_sigmoid(row["y"] * (row["x"] @ t)), {"x": x, "y": y})
    >>> sampler = TunaMH.logistic(x, proposal=mintmc.RandomWalk(step_size=0.05))
    >>> tree = mintmc.sample(posterior, sampler, init=np.zeros(2), draws=100, warmup=0, chains=1, progress=False)
    >>> bool(tree.sample_stats.data_touched.mean() < 500), int(tree.sample_stats.bound_violations.sum())
    (True, 0)
    """

    scales: Any
    _: KW_ONLY
    temperature: float = 1.0
    proposal: Proposal = field(default_factory=RandomWalk)
    distance: Callable[[Params, Params], Array] | None = None
    chi: float = 1e-5
    temper: str = "posterior"

    def __post_init__(self) -> None:
        check_settings(self)
        checked_scales("scales", self.scales)
        if self.distance is not None:
            check.function("distance", self.distance)
        check.number("chi", self.chi, 0)
        check.number("temperature", self.temperature, 0)
        check.choice("temper", self.temper, TEMPERS)

    @property
    def _distance(self) -> Callable[[Params, Params], Array]:
        return tuna.euclidean if self.distance is None else self.distance

    @classmethod
    def logistic(cls, x: Any, **settings: Any) -> TunaMH:
        """For log_sigmoid(y * x'theta) with y = -1 or +1: scales are |x_i|, the distance is Euclidean."""
        rows = check.array("x", x, "an array of shape (n, d)")
        if rows.ndim != 2:
            raise ValueError(f"x must have shape (n, d), got {rows.shape}")
        if not rows.any():
            raise ValueError(f"x must have numbers other than 0, got {check.shown(x)}")
        return cls(row_norms(rows), **settings)

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        check_has_data(posterior)
        check_counted(posterior)
        check_without_gradient(self.proposal, posterior, params)
        if len(self.scales) != posterior.n:
            raise ValueError(f"scales must have n={posterior.n} numbers, got {len(self.scales)}")
        check.scalar(
            "distance",
            self._distance,
            *[jax.tree.map(jnp.asarray, params)] * 2,
        )

    def target_temperature(self, n: int) -> float:
        """The temperature of the distribution that its draws come from."""
        return float(self.temperature)

    def start_temperature(self, n: int) -> float | None:
        """At which chains start around one ``init``."""
        return start_temperature(self.proposal, self.target_temperature(n))

    def kernel(self, target: FlatTarget) -> tuna.TunaKernel:
        """The kernel of one chain."""
        tempered = Tempered(target.model, float(self.temperature), self.temper)
        settings = (tempered, weighted(self.scales, target.dtype), self._distance, float(self.chi))
        proposal = on_vectors(self.proposal, target)
        return tuna.TunaKernel(*settings, proposal, target.unravel, target.dim, target.dtype)


def _check_bound(bound: Bound, posterior: Posterior, params: Params) -> None:
    """One pass over the data: a bound made for other data or another likelihood shows at any point."""
    log_likelihood: Any = posterior.log_likelihood

    def pair(params: Params, row: Any) -> tuple[Array, Array]:
        datum, constants = row
        return log_likelihood(params, datum), bound.log_bound(params, datum, constants)

    assert posterior.data is not None
    kind, size, n = ("bound", identity(bound)), 8192, posterior.n
    both = posterior.flat(params).compiled(kind, lambda: jax.jit(jax.vmap(pair, (None, 0))))
    blocks = []
    for first in range(0, n, size):
        constants = jax.tree.map(lambda leaf, a=first: np.asarray(leaf)[a : a + size], bound.constants)
        blocks.append(both(params, (posterior.data.read(first, min(first + size, n)), constants)))
    likelihoods, bounds = (
        np.concatenate([np.asarray(v, np.float64) for v in part]) for part in zip(*blocks, strict=True)
    )
    if bounds.ndim != 1:
        raise ValueError(f"log_bound must return a scalar, got shape {bounds.shape[1:]}")
    above = np.flatnonzero(~(bounds <= likelihoods))
    if above.size:
        i = above[0]
        raise ValueError(
            f"bound must lie below log_likelihood, got {bounds[i]:g} above {likelihoods[i]:g} in row {i} at init "
            f"({above.size} such rows)"
        )
    total = float(bound.total(params))
    # Two sums of float32: far closer than this if they are the same, far apart if they are not.
    if not abs(total - bounds.sum()) <= 1e-3 * np.abs(bounds).sum():
        raise ValueError(f"bound.total must be the sum of log_bound over all rows, {bounds.sum():g}, got {total:g}")
