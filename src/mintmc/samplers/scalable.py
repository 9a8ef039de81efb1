"""MH-SS: exact Metropolis-Hastings on a handful of rows, near a mode and with bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import check
from mintmc.acceptance.scalable import Scalable, residuals
from mintmc.compiled import ByContent
from mintmc.control import ORDERS, Controlled, Expansion, Taylor
from mintmc.control.alias import weighted
from mintmc.control.bounds import RegressionBounds, RemainderBounds
from mintmc.energy import TEMPERS
from mintmc.flat import FlatTarget
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.modes.find import check_hessian_fits
from mintmc.params import Params, check_alike, flatten
from mintmc.posterior import Posterior, check_counted
from mintmc.proposals import Autoregressive, Proposal, RandomWalk
from mintmc.samplers.base import (
    KernelSampler,
    check_has_data,
    check_plain,
    check_settings,
    check_without_gradient,
    on_vectors,
    start_temperature,
)
from mintmc.samplers.control import check_curvature_known, check_expandable

_ROWS_TO_TRY = 1000
"""Rows on which bounds are tried before a run: those made for other data, or another model, show on any."""


@dataclass(frozen=True, eq=False)
class ScalableMH(ByContent, KernelSampler):
    """Metropolis-Hastings with scalable subsampling (MH-SS): exact at T = 1, and reads a handful of rows a step.

    Use it for regression models with many rows: every log-likelihood is expanded around a centre, the expansions are
    summed once, and what they leave is so small near the mode that bounds on it spare nearly all rows. Statistics of
    each draw: ``rows_read``, ``kept`` (rows that entered the decision), ``bound_violations`` (rows farther from their
    expansion than the bounds allow) and ``on_all_data`` (steps decided by a full pass, because bounds left no choice);
    it is exact if there are no violations, whatever the centre.

    Parameters
    ----------
    bounds
        ``RegressionBounds.logistic(x)``, ``.probit(x)``, ``.poisson(x, y)`` or ``.student_t(x, degrees)``, a
        ``RegressionBounds`` with your own constants, or ``RemainderBounds`` for any other model.
    temperature
        T in exp(-energy / T).
    proposal
        ``RandomWalk``, ``Autoregressive`` or ``Custom``: the gradient is not known. None moves around the Laplace
        approximation at the mode (``Autoregressive``), or at order 1, where the curvature is not known, at random.
    order
        Of the expansions: 2 reads fewer rows, 1 does without the d x d matrix of second derivatives.
    centre
        Where to expand, params of the form of ``init``; None finds the mode (``mintmc.find_mode``).
    temper
        "posterior" divides the whole energy by T, "likelihood" leaves the prior as it is.

    Examples
    --------
    >>> import jax, numpy as np, mintmc
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(10_000, 2)), rng.choice([-1.0, 1.0], size=10_000)
    >>> posterior = mintmc.Posterior(lambda t, row: jax.nn.log_sigmoid(row["y"] * (row["x"] @ t)), {"x": x, "y": y})
    >>> sampler = mintmc.ScalableMH(mintmc.RegressionBounds.logistic(x))
    >>> tree = mintmc.sample(posterior, sampler, init=np.zeros(2), draws=500, chains=2, progress=False)
    >>> bool(tree.sample_stats.rows_read.mean() < 2), int(tree.sample_stats.bound_violations.sum())
    (True, 0)
    """

    bounds: RegressionBounds | RemainderBounds
    _: KW_ONLY
    temperature: float = 1.0
    proposal: Proposal | None = None
    order: int = 2
    centre: Params | None = None
    temper: str = "posterior"

    def __post_init__(self) -> None:
        check.integer("order", self.order, min(ORDERS), max(ORDERS))
        if self.proposal is None:
            object.__setattr__(self, "proposal", Autoregressive() if self.order == 2 else RandomWalk())
        check_settings(self)
        what = "RegressionBounds (such as RegressionBounds.logistic(x)) or RemainderBounds"
        check.instance("bounds", self.bounds, (RegressionBounds, RemainderBounds), what)
        check.number("temperature", self.temperature, 0)
        check.choice("temper", self.temper, TEMPERS)
        check_curvature_known("order", self.order, self.proposal)
        if isinstance(self.bounds, RegressionBounds):
            self.bounds.check_order(self.order)

    @property
    def control(self) -> Taylor:
        """The expansion that a run is to be given."""
        return Taylor(self.centre, self.order)

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters, and bounds that do not hold near them."""
        check_has_data(posterior)
        check_counted(posterior)
        check_without_gradient(self.proposal, posterior, params)
        if self.centre is not None:
            flatten(self.centre, "centre")
            check_alike("centre", self.centre, params)
        check_plain(posterior, "ScalableMH: its bounds are of expansions in params")
        theta, target = posterior.vector(params), posterior.flat(params)
        if self.order == 2:
            check_hessian_fits(theta.size)
        check_expandable(target, theta, self.order, "ScalableMH")
        if isinstance(self.bounds, RemainderBounds):
            check.scalar("distance", self.bounds.distance, *[jax.tree.map(jnp.asarray, params)] * 3)
        elif self.bounds.x.shape[1] != theta.size:
            wanted = f"one column for each of the d={theta.size} parameters"
            raise ValueError(f"bounds.x must have {wanted}, got {self.bounds.x.shape[1]}")
        rows = len(self.bounds.x if isinstance(self.bounds, RegressionBounds) else self.bounds.scales)
        if rows != posterior.n:
            raise ValueError(f"bounds must be of n={posterior.n} rows, got {rows}")
        _check_they_hold(self, target, theta)

    def target_temperature(self, n: int) -> float:
        """The temperature of the distribution that its draws come from."""
        return float(self.temperature)

    def start_temperature(self, n: int) -> float | None:
        """At which chains start around one ``init``."""
        assert self.proposal is not None
        return start_temperature(self.proposal, self.target_temperature(n))

    def kernel(self, target: FlatTarget) -> MetropolisKernel:
        """The kernel of one chain."""
        assert self.proposal is not None
        tempered = Controlled(target.model, float(self.temperature), self.temper)
        scales, distance = self._on_vectors(target.unravel)
        test = Scalable(weighted(scales, target.dtype), distance)
        proposal = on_vectors(self.proposal, target)
        return MetropolisKernel(tempered, proposal, test, target.n, target.dim, target.dtype)

    def _on_vectors(self, unravel: Callable[..., Any]) -> tuple[np.ndarray, Callable[[Array, Array, Array], Array]]:
        """c_i, and M as a function of flat vectors."""
        bounds = self.bounds
        if isinstance(bounds, RegressionBounds):
            return bounds.scales(self.order), partial(bounds.distance, self.order)
        return bounds.scales, lambda *vectors: bounds.distance(*(unravel(vector) for vector in vectors))


def _check_they_hold(sampler: ScalableMH, target: FlatTarget, theta: Array) -> None:
    """Try the bounds on some rows, on moves around ``theta`` of about the size of the posterior, and ten times it."""
    data, model, number = target.posterior.data, target.model, min(_ROWS_TO_TRY, target.n)
    assert data is not None
    rows = data.read(0, number)
    if isinstance(sampler.bounds, RegressionBounds):
        _check_slopes(target, theta, rows, sampler.bounds.x[:number])
    scales, distance = sampler._on_vectors(target.unravel)
    hessian = jnp.zeros((theta.size,) * 2, theta.dtype) if sampler.order == 2 else None
    expansion = Expansion(theta, jnp.zeros_like(theta), hessian)
    shifts = np.random.default_rng(0).normal(size=(2, theta.size)) / np.sqrt(target.n)

    def left(expansion: Expansion, here: Array, there: Array, rows: Any) -> Any:
        return residuals(Controlled(model, 1.0, expansion=expansion), here, there, rows)

    both = target.compiled(("what expansions leave", sampler.order), lambda: jax.jit(left))
    for reach in (1, 10):
        here, there = (theta + jnp.asarray(reach * shift, theta.dtype) for shift in shifts)
        residual, rounding = map(np.asarray, both(expansion, here, there, rows))
        allowed = scales[:number] * float(distance(here, there, theta))
        above = np.flatnonzero(~(np.abs(residual) <= allowed * (1 + 1e-5) + rounding))
        if above.size:
            i = above[0]
            got = f"{abs(residual[i]):.3g} in row {i}, where {allowed[i]:.3g} is allowed ({above.size} such rows)"
            raise ValueError(f"bounds must hold for log_likelihood, got a remainder near init of {got}")


def _check_slopes(target: FlatTarget, theta: Array, rows: Any, x: np.ndarray) -> None:
    """A function of x_i'theta has a gradient along x_i: refuse rows of other data, or in another order."""
    slopes = jax.vmap(jax.grad(target.model.log_likelihood), (None, 0))
    gradients = np.asarray(target.compiled(("slopes",), lambda: jax.jit(slopes))(theta, rows), np.float64)
    x = np.asarray(x, np.float64)
    lengths = np.maximum(np.sum(x**2, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    beside = gradients - x * (np.sum(gradients * x, axis=1, keepdims=True) / lengths)
    wrong = np.flatnonzero(np.linalg.norm(beside, axis=1) > 1e-3 * np.linalg.norm(gradients, axis=1))
    if wrong.size:
        raise ValueError(
            f"bounds.x must be the rows x_i of a log_likelihood that depends on x_i'params alone, got row {wrong[0]}, "
            f"along which its gradient does not point ({wrong.size} such rows)"
        )
