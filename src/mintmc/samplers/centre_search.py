"""The search for the centres of a run's chains: modes, or a point that was given if it is near one."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from mintmc import check
from mintmc.control import Expansion, Laplace, Taylor, expand, laplace
from mintmc.energy import Tempered
from mintmc.modes.find import Mode, mode_of
from mintmc.modes.tails import slowest_fall
from mintmc.proposals import Proposal
from mintmc.run.task import Task

FAR = 10.0
"""Standard deviations from the mode at which a centre that was given is refused."""
_SAME_START = 10.0
"""Standard deviations within which chains are taken to start in one place."""
_PASSES = 200


class Centre(NamedTuple):
    """What a chain knows of the target around its centre."""

    expansion: Expansion
    laplace: Laplace | None


class CentreSearch:
    """Finds centres, and counts what that takes.

    Parameters
    ----------
    task, target
        What was asked for, and what the chains sample.
    control
        The expansion that was asked for; None if only the shape of the mode is.
    proposal
        Of the chains; one that draws from the Laplace approximation must know how heavy the tails are beside it.
    """

    def __init__(self, task: Task, target: Tempered, control: Taylor | None, proposal: Proposal | None):
        self.task, self.target, self.control = task, target, control
        self.is_around = proposal is not None and proposal.is_around
        self.rows_read, self.passes = 0, 0.0
        self.gradient = float("nan")  # at the centres, in standard deviations: the largest
        self.fall = float("nan")  # away from them, over that of the Laplace approximation: the slowest
        self.not_found = 0

    def find(self) -> list[Centre]:
        """A centre for each chain; those that start near each other share one."""
        control, starts = self.control, self.task.thetas
        if control is not None and control.centre is not None:
            centre = self._given(self.task.target.ravel(control.centre).astype(starts[0].dtype))
            return [centre] * len(starts)
        found: list[tuple[Array, Centre]] = []
        centres = []
        for theta in starts:
            near = [centre for start, centre in found if _apart(centre, start, theta) < _SAME_START]
            if not near:
                found.append((theta, self.centre_at(self.mode(theta))))
                near = [found[-1][1]]
            centres.append(near[0])
        return centres

    def mode(self, theta: Array) -> Mode:
        """The mode that a state leads to, or the best point on the way."""
        order = self._order
        settings: dict[str, Any] = {"max_passes": _PASSES, "is_patient": False}
        mode = mode_of(self.task.target, theta, seed=self.task.seed, order=order, **settings)
        self.not_found += int(order == 2 and mode.covariance is None)
        self.rows_read += mode.rows_read
        self.passes += mode.passes
        self.gradient = np.fmax(self.gradient, mode.gradient)
        return mode

    def centre_at(self, mode: Mode) -> Centre:
        """What is to be known around a mode."""
        is_peak = mode.covariance is not None
        return self._expanded(self.task.target.ravel(mode.params), mode.expansion, is_peak)

    def _expanded(self, at: Array, expansion: Expansion | None, is_peak: bool = True) -> Centre:
        """The expansion at a centre, if it is not known already."""
        task, target = self.task, self.target
        if expansion is None:
            model, order = target.model, self._order
            program = task.target.compiled(
                ("expand", order), lambda: jax.jit(lambda at, rows: expand(model, at, rows, order))
            )
            expansion = jax.block_until_ready(program(at, task.target.posterior.rows))
            task.check_reads()
            self.rows_read += task.target.n
        normal = None if expansion.hessian is None else laplace(target, expansion, is_peak)
        if normal is not None and is_peak and self.is_around:
            fall, rows_read = slowest_fall(task.target, target, normal, task.seed)
            self.fall, self.rows_read = float(np.fmin(self.fall, fall)), self.rows_read + rows_read
        return Centre(expansion, normal)

    def _given(self, at: Array) -> Centre:
        """The centre that the user gave, if it is near a mode."""
        centre = self._expanded(at, None)
        expansion = centre.expansion
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(expansion)):
            raise ValueError(
                "control.centre must have finite derivatives of log_likelihood on all data, got others there"
            )
        if expansion.hessian is None:
            return centre
        if centre.laplace is None:
            raise ValueError("control.centre must be near a mode, got a point where the density is not curved like one")
        target = self.target
        own = np.asarray(target.without_data_gradient(expansion.centre), float)
        gradient = np.asarray(expansion.gradient, float) / float(target.temperature) + own
        self.gradient = float(np.sqrt(np.mean((np.asarray(centre.laplace.factor, float).T @ gradient) ** 2)))
        if self.gradient > FAR:
            raise ValueError(
                f"control.centre must lie within {FAR:g} standard deviations of a mode (None finds it), got "
                f"{check.shown(np.asarray(at).tolist())}, about {self.gradient:.3g} away"
            )
        return centre

    @property
    def _order(self) -> int:
        return 2 if self.control is None else self.control.order


def _apart(centre: Centre, one: Array, other: Array) -> float:
    """The distance of two states in standard deviations."""
    if centre.laplace is None:
        return 0.0
    return float(centre.laplace.distance(np.asarray(centre.laplace.centre + (one - other))))
