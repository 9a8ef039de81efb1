"""Leaps: every mode at T = 1 with its right weight, by moves that go from mode to mode directly."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mintmc import check
from mintmc.acceptance.exact import Exact
from mintmc.acceptance.minibatch import Common
from mintmc.compiled import ByContent
from mintmc.control import Atlas, Controlled, Taylor, expand
from mintmc.energy import Tempered
from mintmc.flat import FlatTarget
from mintmc.kernels.leap import LeapKernel
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.modes.many import Found, gather
from mintmc.params import Params, check_alike, flatten
from mintmc.posterior import Posterior, check_counted
from mintmc.proposals import Hamiltonian, Proposal
from mintmc.run.leap_run import LeapRun
from mintmc.run.leap_watch import LeapWatcher
from mintmc.run.protocol import Sampler, Session
from mintmc.run.sample import check_sampler
from mintmc.run.survey import Survey
from mintmc.run.task import Task
from mintmc.samplers.base import check_has_data, check_proposal_fits, check_settings, on_vectors, start_temperature
from mintmc.samplers.charted import joined
from mintmc.samplers.control import check_control, check_control_fits, check_without_laplace
from mintmc.samplers.explore import DRAWS, DRAWS_AGAIN, explore

LEAST_WARMUP = 30
_MOST_PLACES = 2**12
_AGAIN, _FEWEST_AGAIN = 32, 16
"""Descents from other hot chains after the draws: one for so many before them, and the fewest."""
_OTHERS = 2**31
"""Their seed, from that of the run on."""


@dataclass(frozen=True, eq=False)
class Leaps(ByContent, Sampler):
    """Metropolis-Hastings at T = 1 that mixes local moves with leaps between fitted modes.

    One call explores with hot chains, finds the modes, fits mean and scale of each from local draws, refines the fits
    while it leaps, freezes them, and draws. A leap carries a state to the same place within another mode; it is exact
    whatever the fits are, and its acceptance says how good they are. Use it for posteriors whose modes can be found;
    a mode that exploring missed stays missed, and ``diagnose`` says how many there may be.

    Parameters
    ----------
    proposal
        Of local moves.
    modes
        Params of the modes, if they are known: a list, or what ``find_modes`` returned. None finds them.
    explore
        A sampler of hot chains to find them with, or None to choose one.
    starts
        States of the hot chains from which to go down, at most; it ends earlier when hardly any mode can be missing.
    places
        The most modes that there is room for.
    independent
        Leap to a fresh place within the other mode instead of the same one.
    control, batch_size
        A ``Taylor`` of order 2, and rows a step: moves and leaps are decided on batches that estimate only what is left
        of every row beside its expansion around the nearest mode, with the penalty. For modes that are regular (curved
        in all directions): a step then costs the same at any n. None decides on all data.

    Examples
    --------
    >>> import jax.numpy as jnp, mintmc
    >>> def log_density(x):
    ...     wide, narrow = -0.5 * (x + 9) ** 2, -0.5 * ((x - 9) / 0.3) ** 2
    ...     return jnp.logaddexp(jnp.log(0.3) + wide, jnp.log(0.7 / 0.3) + narrow)
    >>> two_modes = mintmc.Posterior.from_density(log_density)
    >>> tree = mintmc.sample(two_modes, mintmc.Leaps(), init=0.0, draws=2000, warmup=300, progress=False)
    >>> bool(abs((tree.posterior.theta < 0).mean() - 0.3) < 0.05), tree.modes.sizes["mode"]
    (True, 2)
    """

    proposal: Proposal = field(default_factory=Hamiltonian)
    _: KW_ONLY
    modes: Any = None
    explore: Any = None
    starts: int = 2048
    places: int = 64
    independent: bool = False
    control: Taylor | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        check_settings(self)
        check.integer("starts", self.starts, 1)
        check.integer("places", self.places, 1, most=_MOST_PLACES)
        check.flag("independent", self.independent)
        if self.explore is not None:
            check_sampler(self.explore, "explore")
        if self.control is not None:
            check_control(self)
        if self.batch_size is not None:
            check.integer("batch_size", self.batch_size, 2)
        if (self.control is None) != (self.batch_size is None):
            raise ValueError(
                f"control and batch_size must be given together, got {check.shown(self.control)} and {self.batch_size}"
            )
        if self.control is not None and (self.control.order != 2 or self.control.centre is not None):
            raise ValueError(
                f"control must be Taylor() of order 2, around the modes that are found, got {check.shown(self.control)}"
            )

    def check(self, posterior: Posterior, params: Params) -> None:
        """Refuse settings that do not fit the posterior or its parameters."""
        check_counted(posterior)
        check_without_laplace(self.proposal)
        check_proposal_fits(self.proposal, posterior, params)
        if self.explore is not None:
            self.explore.check(posterior, params)
        if self.control is not None:
            check_has_data(posterior)
            check.integer("batch_size", self.batch_size, 2, posterior.n, "n")
            check_control_fits(self.control, self.proposal, posterior, params)
        for number, mode in enumerate(self._given()):
            flatten(mode, f"modes[{number}]")
            check_alike(f"modes[{number}]", mode, params)
            posterior.vector(mode, f"modes[{number}]")

    def start_temperature(self, n: int) -> float | None:
        """Chains start in the modes; hot ones around ``init``."""
        return start_temperature(self.proposal, 1.0)

    def plan(self, task: Task) -> LeapRun:
        """Chains that find the modes first."""
        if task.warmup < LEAST_WARMUP:
            raise ValueError(f"warmup must be at least {LEAST_WARMUP} for Leaps to fit its modes, got {task.warmup}")
        if task.parts > 1:
            raise ValueError(
                f"processes must be 1 for Leaps, whose chains share what they know of the modes, got {task.parts}"
            )
        kernel = self.kernel(task.target)
        chart = None if self.control is None else partial(_charted, task, self.places)
        survey = Survey(task, kernel, self.places, partial(self._seek, task), chart)
        watcher = LeapWatcher(survey, task.chains, task.target)
        batching = "none" if self.control is None else "shuffled"
        return LeapRun(task, kernel, type(self).__name__, batching=batching, watcher=watcher, centres=survey)

    def kernel(self, target: FlatTarget) -> LeapKernel:
        """The kernel of one chain."""
        proposal = on_vectors(self.proposal, target, several_modes=True)
        if self.control is None:
            local = MetropolisKernel(Tempered(target.model, 1.0), proposal, Exact(), target.n, target.dim, target.dtype)
        else:
            size = self.batch_size or target.n
            tempered = Controlled(target.model, 1.0)
            local = MetropolisKernel(tempered, proposal, Common(True), size, target.dim, target.dtype)
        return LeapKernel(local, self.independent)

    def _seek(self, task: Task, session: Session, again: bool) -> Found | None:
        given, chains, rows_read = self._given(), None, 0
        if given and again:  # who gives modes does not want others
            return None
        if given:
            starts = np.stack([np.asarray(task.target.ravel(mode)) for mode in given])
        else:
            number = max(self.starts // _AGAIN, _FEWEST_AGAIN) if again else self.starts
            own = replace(task, seed=(task.seed + _OTHERS) % 2**32) if again else task
            hot = None if self.explore is None else [self.explore]
            explored = explore(own, session, hot, number, DRAWS_AGAIN if again else DRAWS)
            if explored is None:
                return None
            starts, chains, rows_read = explored
        phase = session.display.phase("descents", len(starts))
        found = gather(
            task.target,
            starts,
            chains=chains,
            seed=task.seed,
            is_enough=not (given or again),
            advance=lambda: session.display.advance(phase, 1),
            pool=session.pool,
        )
        return found._replace(is_sample=not given, rows_read=found.rows_read + rows_read)

    def _given(self) -> list[Any]:
        """The modes that the user gave."""
        if self.modes is None:
            return []
        if isinstance(self.modes, (list, tuple)) and self.modes:
            return list(self.modes)
        as_list = getattr(type(self.modes), "as_list", None)
        if as_list is None:
            wanted = "a list of params, or what find_modes returned"
            raise TypeError(f"modes must be {wanted}, got {check.shown(self.modes)}")
        return list(as_list(self.modes))


def _charted(task: Task, places: int, ends: np.ndarray) -> Atlas:
    """Expansions around the modes."""
    flat = task.target
    program = flat.compiled(("expand", 2), lambda: jax.jit(lambda at, rows: expand(flat.model, at, rows, 2)))
    centres = [jnp.asarray(end, flat.dtype) for end in ends]
    expansions = [jax.block_until_ready(program(centre, flat.posterior.rows)) for centre in centres]
    task.check_reads()
    return joined(flat, Tempered(flat.model, 1.0), expansions, places)
