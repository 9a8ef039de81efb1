"""What a run with leaps knows of the modes: where they are, how wide, how well leaps between them are accepted."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mintmc.control import Atlas, empty_atlas
from mintmc.kernels.base import Kernel
from mintmc.kernels.leap import in_params
from mintmc.modes.fit import Moments, fit
from mintmc.modes.label import Landscape
from mintmc.modes.many import Found, unknown
from mintmc.proposals.leap import drawn
from mintmc.run.beside import Centres
from mintmc.run.keys import Purpose
from mintmc.run.protocol import Session
from mintmc.run.task import Task

FOUND, FITTED, REFINED, LOOKED = 1, 2, 3, 4
"""Stages of a survey that are done."""
_PILOT_STEPS = 60
"""Of warm-up in every mode."""
_PILOT_DRAWS, _FEWEST, _MOST = 2000, 25, 200
"""In all modes together (they share what they can), and in each."""
_PROPOSED = 1000
"""States drawn from the fits, whose energies tell the evidence."""
_FADES = 0.5
"""What was learnt counts less with every round of refinement."""
_LEAST_WEIGHT = 0.01
"""Shared out among all modes: none is ever without weight."""


class _Charts(NamedTuple):
    """What all chains know of the target around the modes: an Atlas, if it is controlled."""

    expansion: Any = None
    laplace: None = None


class Survey(Centres):
    """The modes of a run, in a fixed number of places, so that programs and checkpoints have one shape.

    Parameters
    ----------
    task, kernel
        What was asked for, and one step.
    places
        The most modes that there is room for.
    seek
        Finds the modes, or looks again when all draws are made, more briefly and from elsewhere.
    chart
        Expands the target around the modes (modes, d), for moves on batches; None on all data.
    """

    def __init__(
        self,
        task: Task,
        kernel: Kernel,
        places: int,
        seek: Callable[[Session, bool], Found | None],
        chart: Callable[[np.ndarray], Atlas] | None = None,
    ):
        self.task, self.kernel, self.places, self.seek, self.chart = task, kernel, places, seek, chart
        self._lock, dim = Lock(), task.target.dim
        charts = None if chart is None else empty_atlas(places, dim, task.target.dtype)
        self.of_chain = [_Charts(charts)] * task.chains
        self.stage = self.known = self.lost = self.rows_read = self.rows_again = self.rounds = 0
        self.unseen, self.crowded = 0.0, 0
        self.ends, self.energy = np.zeros((places, dim)), np.full(places, np.nan)
        self.starts = np.zeros(places, int)
        self.moments = Moments.none(places, dim)
        self.visits = np.zeros(places)
        self.late = np.zeros((0, dim))  # modes that were found after all draws were made
        self.leaps = np.zeros(2)  # tried, and the sum of their rates, in the last round of refinement
        self.landscape = self._landscape(np.zeros((places, dim)), np.stack([np.eye(dim)] * places), 0)
        self.proposed = np.full((2, _PROPOSED), np.nan)  # energies of states drawn from the fits, and log fits there

    def find(self, session: Session) -> None:
        """Explore and descend; nothing is found if that was interrupted."""
        found = self.seek(session, False)
        if found is None:
            return
        known = min(len(found.energy), self.places)
        if known == 0:
            raise ValueError("init must lead to a mode, got none: every descent ended where the density is not finite")
        self.known, self.crowded = known, len(found.energy) - known
        self.ends[:known], self.energy[:known] = found.theta[:known], found.energy[:known]
        self.starts[:known], self.lost, self.unseen = found.starts[:known], found.lost, found.unseen
        self.rows_read += found.rows_read
        if self.chart is not None:
            self.of_chain = [_Charts(self.chart(self.ends[:known]))] * self.task.chains
            self.rows_read += 2 * self.task.target.n * known
        self.stage = FOUND

    def look_again(self, session: Session) -> None:
        """Whether other hot chains find a mode that leaps did not know; nothing if that was interrupted."""
        found = self.seek(session, True)
        if found is not None:
            is_new = unknown(self.task.target, found, self.ends[: self.known])
            is_new &= found.matters(self.energy[: self.known].min())
            self.late = np.concatenate([self.late, found.theta[is_new].reshape(-1, self.late.shape[1])])
            self.rows_read += found.rows_read
            self.rows_again = found.rows_read
            self.stage = LOOKED

    def pilot_steps(self, warmup: int, most_draws: int) -> tuple[int, int]:
        """Steps of warm-up and draws of the chain that fits a mode."""
        draws = int(np.clip(_PILOT_DRAWS // self.known, _FEWEST, _MOST))
        return min(warmup, _PILOT_STEPS), min(draws, most_draws)

    def read(self, rows: Any) -> None:
        """Count rows that were read to know the modes; several may count at once."""
        with self._lock:
            self.rows_read += int(rows)

    def learn(self, mode: int, thetas: np.ndarray) -> None:
        """From the draws (number, d) of a local chain in one mode."""
        self.moments.add(mode, thetas, self.ends[mode])
        self.visits[mode] += 1

    def fade(self) -> None:
        """What was learnt so far counts half: it is from shorter chains, with poorer fits."""
        self.moments, self.leaps = self.moments.faded(_FADES), np.zeros(2)

    def learn_from_leaps(self, thetas: np.ndarray, values: Any) -> None:
        """From the draws of a chain that leaps."""
        modes = np.asarray(values["mode"])
        self.leaps = self.leaps + np.array([len(modes), np.sum(values["leap_rate"])], float)
        for mode in np.unique(modes):
            here = modes == mode
            self.moments.add(int(mode), thetas[here], self.ends[mode])
            self.visits[mode] += here.sum()

    def fit(self) -> None:
        """Fit all modes anew."""
        fitted = fit(self.moments, self.ends[: self.known])
        mean, factor = self.ends.copy(), np.stack([np.eye(self.ends.shape[1])] * self.places)
        mean[: self.known], factor[: self.known] = fitted
        self.landscape = self._landscape(mean, factor, self.known)
        self.stage = max(self.stage, FITTED)

    def propose(self, session: Session) -> None:
        """Draw from the fits as they will stay, and ask all data for the energies."""
        target, modes = self.task.target, self.landscape
        density = target.compiled(("density",), lambda: jax.jit(target.model.density))
        propose = target.compiled(("proposed", self.places), lambda: jax.jit(_proposed))
        thetas, log_fits = propose(modes, self.task.key(Purpose.pilot, self.places))
        phase = session.display.phase("evidence", len(thetas))

        def one(theta: Any, log_fit: Any) -> tuple[float, float]:
            found = density(theta, target.posterior.rows)
            session.display.advance(phase, 1)
            return float(found.energy()), float(in_params(log_fit, found))

        self.proposed = np.array(list(session.pool.map(one, thetas, log_fits))).T
        self.task.check_reads()
        self.rows_read += target.n * len(thetas)

    def fitted_weights(self) -> np.ndarray:
        """What energies and widths alone say of the weights: exact for normal modes, a rough guess for others."""
        logs = np.asarray(self.landscape.log_volume, float)[: self.known] - self.energy[: self.known]
        weights = np.exp(logs - logs.max())
        result: np.ndarray = weights / weights.sum()
        return result

    def supplied(self, chain: int) -> dict[str, Any]:
        """The modes, and expansions around them."""
        charts = self.of_chain[chain].expansion
        return {"modes": self.landscape} | ({} if charts is None else {"control": charts})

    def reconsider(self, states: list[Any], tunings: list[Any]) -> list[int]:
        """No chain needs another centre."""
        return []

    def checkpoint(self) -> Any:
        """All that it has learnt."""
        rows = (self.rows_read, self.rows_again)
        numbers = np.array([self.stage, self.known, self.lost, *rows, self.crowded, self.rounds])
        arrays = (self.ends, self.energy, self.starts, self.visits, self.leaps, self.late)
        return numbers, np.array([self.unseen]), arrays, self.moments, self.landscape, self.of_chain[0], self.proposed

    def restore(self, checkpoint: Any) -> None:
        """Go on with what a checkpoint has learnt."""
        numbers, unseen, arrays, self.moments, self.landscape, charts, self.proposed = checkpoint
        self.of_chain = [charts] * self.task.chains
        self.stage, self.known, self.lost, *others = (int(number) for number in numbers)
        self.rows_read, self.rows_again, self.crowded, self.rounds = others
        self.unseen = float(unseen[0])
        self.ends, self.energy, self.starts, self.visits, self.leaps, self.late = arrays

    def facts(self) -> dict[str, Any]:
        """What the tree should know."""
        tried, rates = self.leaps
        return {
            "modes_known": self.known,
            "modes_unseen": self.unseen,
            "modes_crowded_out": self.crowded,
            "modes_late": self.late.tolist(),
            "data_touched_looking_again": self.rows_again,
            "descents_lost": self.lost,
            "leap_acceptance_expected": float(rates / tried) if tried else 0.0,
        }

    def said(self) -> str:
        """One line about the modes."""
        return f"at most {self.places} modes; they are sought first"

    def _landscape(self, mean: np.ndarray, factor: np.ndarray, known: int) -> Landscape:
        dtype = self.task.target.dtype
        share = self.visits / max(self.visits.sum(), 1)
        weight = (1 - _LEAST_WEIGHT) * share + _LEAST_WEIGHT / max(known, 1)
        log_weight = np.where(np.arange(self.places) < known, np.log(weight), -np.inf)
        arrays = (mean, factor, np.linalg.inv(factor), log_weight)
        return Landscape(*(jnp.asarray(array, dtype) for array in arrays))


def _proposed(modes: Landscape, key: Any) -> tuple[Any, Any]:
    """States drawn from the fits, and the log density of the fits there."""
    thetas = drawn(modes, key, _PROPOSED)
    return thetas, jax.vmap(lambda theta: modes.log_density(modes.log_weighted(theta)))(thetas)
