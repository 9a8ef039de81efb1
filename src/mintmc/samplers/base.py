"""What samplers share: how their settings are checked against a posterior, and how a kernel becomes a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import jax

from mintmc import check
from mintmc.compiled import identity
from mintmc.control import Controlled
from mintmc.energy import TEMPERS, Tempered
from mintmc.flat import FlatTarget
from mintmc.kernels.base import Kernel
from mintmc.params import Params, check_alike, flatten
from mintmc.posterior import Posterior
from mintmc.proposals import Proposal, initial_scale
from mintmc.run.chains import ChainRun
from mintmc.run.protocol import Sampler
from mintmc.run.task import Task
from mintmc.samplers.centred import Centred, Plan
from mintmc.samplers.control import needs_laplace

_PROPOSALS = "RandomWalk, Langevin, Hamiltonian, NUTS or Custom"


class KernelSampler(Sampler, Protocol):
    """A sampler whose run is independent chains of one kernel."""

    batching: Any = "none"  # how batches are drawn: "none" if all data are read in their own order

    def kernel(self, target: FlatTarget) -> Kernel:
        """The kernel of one chain."""
        ...

    def plan(self, task: Task) -> ChainRun:
        """Independent chains, around centres if the sampler needs them."""
        name, asked = type(self).__name__, centre_plan(self, task)
        if asked is None:
            return ChainRun(task, kernel_of(self, task.target), name, batching=self.batching)
        centres = Centred(task, asked)
        return ChainRun(centres.task, centres.kernel, name, batching=self.batching, centres=centres)


def kernel_of(sampler: KernelSampler, target: FlatTarget) -> Kernel:
    """The kernel of a sampler for a target: one object for equal samplers, so that nothing is compiled twice."""
    kernel: Kernel = target.compiled(("kernel", identity(sampler)), lambda: sampler.kernel(target))
    return kernel


def needs_centre(sampler: Any) -> bool:
    """Whether its chains must know the target around a mode: for control variates, or for the proposal's scale."""
    return getattr(sampler, "control", None) is not None or needs_laplace(getattr(sampler, "proposal", None))


def centre_plan(sampler: Any, task: Task) -> Plan | None:
    """What a sampler asks of its centres: control variates, or the curvature for its proposal; None if nothing."""
    control, proposal = getattr(sampler, "control", None), getattr(sampler, "proposal", None)
    if not needs_centre(sampler):
        return None
    target, size = task.target, getattr(sampler, "batch_size", None)
    kind = Tempered if control is None else Controlled

    def kernel(batch_size: int | None) -> Kernel:
        same = sampler if batch_size == size else replace(sampler, batch_size=batch_size)
        return kernel_of(same, target)

    tempered = kind(target.model, sampler.target_temperature(target.n), sampler.temper)
    moves = None if proposal is None else on_vectors(proposal, target)
    # Only batches whose size was left open can be chosen.
    size = size if hasattr(sampler, "batch_size") else target.n
    return Plan(tempered, moves, control, size, kernel)


def on_vectors(proposal: Proposal, target: FlatTarget, several_modes: bool = False) -> Proposal:
    """The proposal between flat vectors, with everything chosen; ``several_modes`` if chains go from one to another."""
    return proposal.on_vectors(target.unravel, target.ravel).settled(target.dim, several_modes)


def start_temperature(proposal: Proposal, temperature: float) -> float | None:
    """At which chains start around one ``init``: a proposal of the user's own may know only some states."""
    return temperature if proposal.starts_apart else None


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
    if not all(hasattr(proposal, name) for name in ("move", "randomness", "step_size", "uses_gradient")):
        raise TypeError(f"proposal must be {_PROPOSALS}, got {check.shown(proposal)}")


def check_temper_fits(temper: str | None, posterior: Posterior) -> None:
    """Refuse to temper a likelihood that is not there."""
    if posterior.data is None and temper == "likelihood":
        raise ValueError("temper must be 'posterior' for a density without data, got 'likelihood'")


def check_reference(reference: Params | None, params: Params) -> None:
    """Refuse a reference that is not like the params."""
    if reference is None:
        return
    given, wanted = flatten(reference, "reference")[0].size, flatten(params, "init")[0].size
    if given != wanted:
        raise ValueError(f"reference must have {wanted} parameters like init, got {given}")
    check_alike("reference", reference, params)


def check_temper(temper: str | None) -> None:
    """Refuse what is no way to temper."""
    if temper is not None:
        check.choice("temper", temper, TEMPERS)


def check_plain(posterior: Posterior, what: str) -> None:
    """Refuse constrained parameters, which chains move in other coordinates, where ``what`` knows only params."""
    if posterior.coordinates.transforms:
        names = ", ".join(posterior.coordinates.transforms)
        raise ValueError(f"posterior must be without transforms for {what}, got transforms of {names}")


def check_proposal_fits(proposal: Any, posterior: Posterior, params: Params) -> None:
    """Refuse a proposal that cannot move these params."""
    proposal.check_against(params)
    if proposal.moves_params:
        check_plain(posterior, f"proposal {type(proposal).__name__}: it moves params")
    initial_scale(proposal.preconditioner, posterior.flat(params).dim, float)
    if proposal.uses_gradient:
        check_differentiable(f"proposal {type(proposal).__name__}", posterior, params)
    else:
        posterior.check_functions(params, "init")


def check_differentiable(what: str, posterior: Posterior, params: Params) -> None:
    """Refuse a log density without a gradient; ``what`` needs it."""
    theta, model = posterior.vector(params), posterior.flat(params).model
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
