"""What every sampler is: frozen settings that are checked against a posterior and build a kernel for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import jax
from jax import Array

from mintmc import check
from mintmc.energy import Model, Tempered
from mintmc.kernels.base import Kernel
from mintmc.posterior import Params, Posterior, flatten
from mintmc.proposals import Custom, Proposal, initial_scale

_PARTS = ("batching", "check", "target_temperature", "kernel")
_PROPOSALS = "RandomWalk, Langevin, Hamiltonian or Custom"


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


def check_sampler(sampler: Any) -> None:
    """Refuse what is no sampler."""
    what = "a mintmc sampler such as MINT(...)"
    check.instance("sampler", sampler, object, what)
    if not hasattr(sampler, "for_data") and not all(hasattr(sampler, name) for name in _PARTS):
        raise TypeError(f"sampler must be {what}, got {check.shown(sampler)}")


def on_vectors(proposal: Proposal, unravel: Callable, ravel: Callable) -> Proposal:
    """The proposal between flat vectors; only a custom one must be told how."""
    return proposal.on_vectors(unravel, ravel) if isinstance(proposal, Custom) else proposal


def check_has_data(posterior: Posterior) -> None:
    """Refuse a density without data."""
    if posterior.data is None:
        raise ValueError("posterior must have data to take mini-batches of, got a density without data")


def check_settings(sampler: Any) -> None:
    """What all samplers share: numbers of any kind are stored as Python's, and a proposal is one."""
    check.plain(sampler)
    if "proposal" in vars(sampler):
        check_proposal_kind(sampler.proposal)


def check_proposal_kind(proposal: Any) -> None:
    """Refuse what is no proposal."""
    check.instance("proposal", proposal, object, _PROPOSALS)
    if not all(hasattr(proposal, name) for name in ("move", "noise", "step_size", "uses_gradient")):
        raise TypeError(f"proposal must be {_PROPOSALS}, got {check.shown(proposal)}")


def check_temper_fits(temper: str | None, posterior: Posterior) -> None:
    """Refuse to temper a likelihood that is not there."""
    if posterior.data is None and temper == "likelihood":
        raise ValueError("temper must be 'posterior' for a density without data, got 'likelihood'")


def check_proposal_fits(proposal: Any, posterior: Posterior, params: Params) -> None:
    """Refuse a proposal that cannot move these params."""
    if isinstance(proposal, Custom):
        proposal.check_against(params)
    initial_scale(proposal.preconditioner, flatten(params, "init")[0].size, float)
    if proposal.uses_gradient:
        check_differentiable(f"proposal {type(proposal).__name__}", posterior, params)
    else:
        posterior.check_functions(params, "init")


def check_differentiable(what: str, posterior: Posterior, params: Params) -> None:
    """Refuse a log density without a gradient; ``what`` needs it."""
    theta, unravel = flatten(params, "init")
    model = posterior.model(unravel, theta.size)
    try:
        posterior.check_functions(params, "init")
    except TypeError as error:
        raise ValueError(f"{what} needs a log density that JAX can differentiate, got none: {error}") from error
    try:
        if posterior.data is None:
            jax.eval_shape(jax.grad(model.log_prior), theta)
        else:
            one = posterior.data.read(0, 1)
            jax.eval_shape(Tempered(model, 1.0).batch_gradient, theta, one)
    except Exception as error:
        reason = check.first_line(error)
        raise ValueError(f"{what} needs a log density that JAX can differentiate, got {reason}") from error


def check_without_gradient(proposal: Any, posterior: Posterior, params: Params) -> None:
    """Refuse a proposal that cannot move these params without a gradient."""
    check_proposal_fits(proposal, posterior, params)
    if proposal.uses_gradient:
        raise ValueError(f"proposal must be one without gradient, RandomWalk or Custom, got {type(proposal).__name__}")
