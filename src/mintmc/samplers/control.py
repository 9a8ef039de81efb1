"""What samplers with control variates share: checks of ``control``, and the proposal that suits it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mintmc import check
from mintmc.control import Taylor
from mintmc.flat import FlatTarget
from mintmc.modes.find import check_hessian_fits
from mintmc.params import Params, check_alike, flatten
from mintmc.posterior import Posterior, check_counted
from mintmc.proposals import Autoregressive, Langevin, Proposal, RandomWalk
from mintmc.proposals.tuning import LAPLACE


def default_proposal(control: Taylor | None) -> Proposal:
    """Around the Laplace approximation where the curvature is known, along the gradient where only that is."""
    if control is None:
        return RandomWalk()
    return Autoregressive() if control.order == 2 else Langevin(preconditioner="diagonal")


def check_control(sampler: Any) -> None:
    """Refuse what is no control variate, or an estimate that has no use for one."""
    check.instance("control", sampler.control, Taylor, "a Taylor, or None")
    estimator = getattr(sampler, "estimator", "common")
    if estimator != "common":
        raise ValueError(f"estimator must be 'common' with control (differences are controlled), got {estimator!r}")


def needs_laplace(proposal: Any) -> bool:
    """Whether a proposal must know the curvature at the mode."""
    given = getattr(proposal, "preconditioner", None)
    return isinstance(given, str) and given == LAPLACE


def check_without_laplace(proposal: Any) -> None:
    """Refuse a proposal that must know the curvature at one mode, where there may be many."""
    if needs_laplace(proposal):
        raise ValueError(
            "preconditioner must be None, 'diagonal', 'dense' or an array on a ladder, whose rungs see many modes, "
            f"got {LAPLACE!r}"
        )


def check_control_fits(control: Taylor, proposal: Any, posterior: Posterior, params: Params) -> None:
    """Refuse a centre of another form, and a log-likelihood that has not the derivatives that are needed."""
    check_counted(posterior)
    theta = posterior.vector(params)
    if control.centre is not None:
        flatten(control.centre, "control.centre")
        check_alike("control.centre", control.centre, params)
        posterior.vector(control.centre, "control.centre")
    check_curvature_known("control.order", control.order, proposal)
    if control.order == 2:
        check_hessian_fits(theta.size)
    check_expandable(posterior.flat(params), theta, control.order)


def check_curvature_known(name: str, order: int, proposal: Any) -> None:
    """Refuse a proposal that needs the curvature where the expansion does without it."""
    if order == 1 and needs_laplace(proposal):
        raise ValueError(f"{name} must be 2 for {_wanted(proposal)}, which needs the curvature, got 1")


def check_expandable(target: FlatTarget, theta: Any, order: int, who: str = "control") -> None:
    """Refuse a log-likelihood without the derivatives that an expansion needs, or with such as are not finite."""
    data, model = target.posterior.data, target.model
    assert data is not None
    some = data.read(0, min(target.n, 100))

    def along(at: Any, rows: Any) -> Any:
        return jax.jvp(lambda at: model.each(at, rows), (at,), (jnp.ones_like(at),))[1]

    def twice(at: Any, rows: Any) -> Any:
        return jax.jvp(lambda at: along(at, rows), (at,), (jnp.ones_like(at),))[1]

    derivatives = along if order == 1 else twice
    what = "first" if order == 1 else "first and second"
    try:
        jax.eval_shape(jax.grad(lambda at: derivatives(at, some).sum()), theta)
        values = np.asarray(target.compiled(("derivatives", order), lambda: jax.jit(derivatives))(theta, some))
    except Exception as error:
        reason = check.first_line(error)
        raise ValueError(f"{who} needs a log_likelihood with {what} derivatives by JAX, got {reason}") from error
    if not np.isfinite(values).all():
        wrong = values[~np.isfinite(values)][0]
        raise ValueError(f"{who} needs a log_likelihood with finite {what} derivatives at init, got {wrong}")


def _wanted(proposal: Any) -> str:
    name = type(proposal).__name__
    return name if isinstance(proposal, Autoregressive) else f"{name}(preconditioner='laplace')"
