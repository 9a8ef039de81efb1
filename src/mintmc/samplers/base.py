"""What every sampler is: frozen settings that are checked against a posterior and build a kernel for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import jax
from jax import Array

from mintmc.energy import Model, Tempered
from mintmc.kernels.base import Kernel
from mintmc.posterior import Params, Posterior, flatten
from mintmc.proposals import Custom, Proposal, initial_scale


class Sampler(Protocol):
    """Settings of a sampler."""

    @property
    def batching(self) -> str:
        """How batches are drawn: "shuffled", "uniform", or "none" if all data are read in their own order."""
        ...

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        ...

    def target_temperature(self, n: int) -> float:
        """The temperature of the distribution that its draws come from."""
        ...

    def kernel(self, model: Model, theta: Array, unravel: Callable, ravel: Callable) -> Kernel:
        """The kernel of one chain."""
        ...


def on_vectors(proposal: Proposal, unravel: Callable, ravel: Callable) -> Proposal:
    """The proposal between flat vectors; only a custom one must be told how."""
    return proposal.on_vectors(unravel, ravel) if isinstance(proposal, Custom) else proposal


def check_has_data(posterior: Posterior) -> None:
    """Refuse a density without data."""
    if posterior.data is None:
        raise ValueError("posterior must have data to take mini-batches of, got a density without data")


def check_temper_fits(temper: str | None, posterior: Posterior) -> None:
    """Refuse to temper a likelihood that is not there."""
    if posterior.data is None and temper == "likelihood":
        raise ValueError("temper must be 'posterior' for a density without data, got 'likelihood'")


def check_proposal_fits(proposal: Any, posterior: Posterior, params: Params) -> None:
    """Refuse a proposal that cannot move these params."""
    if not hasattr(proposal, "move"):
        raise TypeError(f"proposal must be RandomWalk, Langevin, Hamiltonian or Custom, got {proposal!r}")
    if isinstance(proposal, Custom):
        proposal.check_against(params)
    initial_scale(proposal.preconditioner, flatten(params, "init")[0].size, float)
    if proposal.uses_gradient:
        check_differentiable(f"proposal {type(proposal).__name__}", posterior, params)


def check_differentiable(what: str, posterior: Posterior, params: Params) -> None:
    """Refuse a log density without a gradient; ``what`` needs it."""
    theta, unravel = flatten(params, "init")
    model = posterior.model(unravel, theta.size)
    try:
        if posterior.data is None:
            jax.eval_shape(jax.grad(model.log_prior), theta)
        else:
            one = posterior.data.read(0, 1)
            jax.eval_shape(Tempered(model, 1.0).batch_gradient, theta, one)
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{what} needs a log density that JAX can differentiate, got: {reason}") from error
