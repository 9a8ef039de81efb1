"""A rung of a ladder against all data: does it sample at the temperature that it claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from mintmc import check
from mintmc.posterior import Posterior
from mintmc.proposals import Proposal, RandomWalk
from mintmc.result.modes import batch_means, standard_error
from mintmc.result.reading import draws_group, flat_draws, settings_of
from mintmc.run.initial import initial_states
from mintmc.run.keys import key_of
from mintmc.run.sample import sample
from mintmc.samplers import MetropolisHastings

if TYPE_CHECKING:
    import xarray

LIMIT = 4.0
"""Standard errors that a right rung exceeds once in 16,000 audits."""


@dataclass(frozen=True)
class Audit:
    """Mean energies of a rung, on its ladder and on all data, above the reference."""

    rung: int
    temperature: float
    ladder_energy: float
    ladder_error: float  # standard errors
    full_energy: float
    full_error: float
    relative_difference: float  # to the mean energy above the lowest state that was seen on all data

    @property
    def z(self) -> float:
        """How many standard errors the two are apart: positive if the rung runs too hot."""
        return (self.ladder_energy - self.full_energy) / float(np.hypot(self.ladder_error, self.full_error))

    @property
    def passed(self) -> bool:
        """Whether they agree."""
        return abs(self.z) < LIMIT

    def __str__(self) -> str:
        """One sentence."""
        verdict = "which agree" if self.passed else f"so the rung runs too {'hot' if self.z > 0 else 'cold'}"
        return (
            f"Rung {self.rung} (T = {self.temperature:.4g}) has mean energy {self.ladder_energy:.4g} ± "
            f"{self.ladder_error:.2g}, and a full-batch run {self.full_energy:.4g} ± {self.full_error:.2g} "
            f"(z = {self.z:+.1f}, {self.relative_difference:+.1%}), {verdict}."
        )


def audit_rung(
    posterior: Posterior,
    tree: xarray.DataTree,
    rung: int,
    *,
    init: Any,
    draws: int = 1000,
    warmup: int = 500,
    chains: int = 2,
    proposal: Proposal | None = None,
    seed: int = 0,
) -> Audit:
    """Run one rung's temperature on all data for a while, and compare mean energies.

    Rungs on batches are exact only if their ratios are normal. This is the check that does not take it on trust. The
    full-batch run moves locally, so choose a rung that is hot enough for that.

    Parameters
    ----------
    posterior, tree
        What was sampled, and what ``sample`` returned for a ladder sampler.
    rung
        Which rung, 0 the coldest.
    init, draws, warmup, chains, seed
        Of the full-batch run, as in ``sample``.
    proposal
        Of the full-batch run; by default ``RandomWalk()``.

    Examples
    --------
    >>> import numpy as np, mintmc
    >>> x = np.random.default_rng(0).normal(size=1000)
    >>> posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    >>> sampler = mintmc.EquiEnergy(mintmc.Ladder([1, 20], [None, 200]))
    >>> tree = mintmc.sample(posterior, sampler, init=0.0, draws=2000, chains=2, progress=False)
    >>> mintmc.audit_rung(posterior, tree, rung=1, init=0.0).passed
    True
    """
    check.instance("posterior", posterior, Posterior, "a mintmc.Posterior")
    ladder: Any = check.tree(tree, "ladder", attributes=("sampler_settings",))["ladder"]
    rung = check.integer("rung", rung, 0, ladder.sizes["rung"] - 1, "the hottest")
    if settings_of(tree).get("truncate"):
        raise ValueError("tree must be of a run with truncate=False: the energies of its rungs are cut off, got True")
    temperature = float(ladder["temperature"][rung])
    temper = ladder.attrs["energy_of"]
    sampler = MetropolisHastings(RandomWalk() if proposal is None else proposal, temperature=temperature, temper=temper)
    full: Any = sample(
        posterior, sampler, init=init, draws=draws, warmup=warmup, chains=chains, seed=seed, progress=False
    )
    energies = full["sample_stats"]["energy"].values - ladder.attrs["reference_energy"]
    if temper == "likelihood":
        energies = energies + _log_priors(posterior, full, init)
    ladder_energy, ladder_error = _mean_and_error(ladder["energy"].values[rung])
    full_energy, full_error = _mean_and_error(energies)
    difference = (ladder_energy - full_energy) / (full_energy - float(energies.min()))
    return Audit(rung, temperature, ladder_energy, ladder_error, full_energy, full_error, difference)


def _log_priors(posterior: Posterior, full: Any, init: Any) -> np.ndarray:
    """The log prior of every draw (chain, draw): what the energy has beside the likelihood."""
    group = full[draws_group(full)]
    _, example = initial_states(posterior, init, group.sizes["chain"], key_of(0))
    target = posterior.flat(example)
    shape = (group.sizes["chain"], group.sizes["draw"])
    log_prior = jax.jit(jax.vmap(target.model.log_prior))
    return np.asarray(log_prior(flat_draws(full, target.names)), float).reshape(shape)


def _mean_and_error(energies: np.ndarray) -> tuple[float, float]:
    return float(energies.mean()), float(standard_error(batch_means(energies).ravel()))
