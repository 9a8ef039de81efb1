"""Where the modes of a posterior are: hot chains explore, descents find, and what was missed is estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from mintmc import check
from mintmc.control.laplace import curvature
from mintmc.flat import FlatTarget
from mintmc.modes.many import Found, gather
from mintmc.modes.search import Search
from mintmc.params import Params
from mintmc.posterior import Posterior
from mintmc.result.reading import flat_draws, moved_group
from mintmc.run.initial import initial_states
from mintmc.run.interrupt import Interrupt
from mintmc.run.keys import Purpose, key_of
from mintmc.run.progress import Display
from mintmc.run.protocol import Session
from mintmc.run.sample import MOST_CHAINS, check_sampler
from mintmc.run.task import Task
from mintmc.run.workers import cores, workers
from mintmc.samplers.base import check_differentiable
from mintmc.samplers.explore import explore as explored

if TYPE_CHECKING:
    import xarray

_SHOWN = 20
_LEAST_RISE, _MOST_RISE = 0.1, 2.5
"""Of the energy at one standard deviation, if the curvature tells it."""


@dataclass(frozen=True)
class Modes:
    """The modes that were found, the lowest first; it prints as a table.

    ``params`` has a leading axis of modes. ``deviation`` are the standard deviations of all parameters (modes, d) by
    the curvature there, NaN where curvature does not tell (singular models). ``unseen`` estimates
    how many modes no descent led to, from how many were reached once and twice.
    """

    params: Params
    energy: np.ndarray
    deviation: np.ndarray
    starts: np.ndarray
    unseen: float
    lost: int
    rows_read: int
    variables: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.energy)

    def __str__(self) -> str:
        lines = [f"{len(self)} modes, about {self.unseen:.1f} not seen; {self.lost} descents led nowhere"]
        lines += [f"{'mode':>6} {'energy':>14} {'starts':>7} {'deviations':>21}  params"]
        flat = np.concatenate([values.reshape(len(self), -1) for values in self.variables.values()], axis=1)
        for j in range(min(len(self), _SHOWN)):
            some = ", ".join(f"{value:.4g}" for value in flat[j, :4]) + (", ..." if flat.shape[1] > 4 else "")
            widths = self.deviation[j]
            width = "flat" if np.isnan(widths).any() else f"{widths.min():.2g} to {widths.max():.2g}"
            lines.append(f"{j:>6} {self.energy[j]:>14,.2f} {self.starts[j]:>7} {width:>21}  {some}")
        if len(self) > _SHOWN:
            lines.append(f"   ... {len(self) - _SHOWN} more")
        return "\n".join(lines)

    def as_list(self) -> list[Params]:
        """The params of each mode."""
        return [jax.tree.map(lambda leaf, j=j: leaf[j], self.params) for j in range(len(self))]

    def to_dataset(self) -> xarray.Dataset:
        """The same as a dataset, to store or to plot."""
        import xarray

        named: dict[str, Any] = {"energy": ("mode", self.energy), "starts": ("mode", self.starts)}
        for name, values in self.variables.items():
            named[name] = (("mode", *(f"{name}_dim_{axis}" for axis in range(values.ndim - 1))), values)
        named["deviation"] = (("mode", "parameter"), self.deviation)
        coords = {"mode": np.arange(len(self))}
        return xarray.Dataset(named, coords, {"modes_unseen": self.unseen, "descents_lost": self.lost})

    def plot(self) -> Any:
        """Energies of the modes above the lowest, and how many descents led to each; returns the figure."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 3), layout="constrained")
        left, right = figure.subplots(1, 2)
        at = np.arange(len(self))
        left.plot(at, self.energy - self.energy.min(), "o", markersize=4)
        left.set(xlabel="mode", ylabel="energy above the lowest")
        right.bar(at, self.starts)
        right.set(xlabel="mode", ylabel="descents that led there", title=f"about {self.unseen:.1f} modes not seen")
        return figure


def find_modes(
    posterior: Posterior, *, init: Any, explore: Any = None, starts: int = 2048, chains: int = 8, seed: int = 0
) -> Modes:
    """Find the modes of a posterior.

    Parameters
    ----------
    posterior
        Its log density must be differentiable.
    init
        Where hot chains start, as for ``sample``.
    explore
        A sampler of hot chains, or a tree of draws to go down from; None chooses MINT at several temperatures.
    starts
        Draws to go down from, at most; it ends earlier when hardly any mode can be missing.
    chains
        Hot chains at each temperature.
    seed
        Of all randomness.

    Examples
    --------
    >>> import jax.numpy as jnp, mintmc
    >>> two_modes = mintmc.Posterior.from_density(lambda x: jnp.logaddexp(-0.5 * (x - 9) ** 2, -0.5 * (x + 9) ** 2))
    >>> modes = mintmc.find_modes(two_modes, init=0.0)
    >>> sorted(modes.params.round(3).tolist()), modes.unseen
    ([-9.0, 9.0], 0.0)
    """
    check.instance("posterior", posterior, Posterior, "a mintmc.Posterior")
    starts, chains = check.integer("starts", starts, 1), check.integer("chains", chains, 1, most=MOST_CHAINS)
    seed = check.integer("seed", seed, 0, 2**32 - 1)
    thetas, example = initial_states(posterior, init, chains, key_of(seed, Purpose.init))
    check_differentiable("find_modes", posterior, example)
    target = posterior.flat(example)
    if hasattr(explore, "children"):
        draws = _draws_of(check.tree(explore), target)
        states = np.random.default_rng(seed).permutation(draws)[:starts]
        with workers(cores(_SHOWN)) as pool:
            return _table(gather(target, states, seed=seed, is_enough=True, pool=pool), target)
    if explore is not None:
        check_sampler(explore, "explore")
        explore.check(posterior, example)
    task = Task(target, thetas, example, seed, draws=0, warmup=0, thin=1)
    with Interrupt() as interrupt, workers(cores(_SHOWN)) as pool, Display(False) as display:
        hot = explored(task, Session(pool, display, interrupt), None if explore is None else [explore], starts)
        if hot is None:
            raise KeyboardInterrupt("interrupted: no modes were found yet")
        found = gather(target, hot.states, chains=hot.chains, seed=seed, is_enough=True, pool=pool)
        found = found._replace(rows_read=found.rows_read + hot.rows_read)
    return _table(found, target)


def _draws_of(tree: Any, target: FlatTarget) -> np.ndarray:
    """The draws of a tree, if they are of such params."""
    found = sorted(map(str, tree[moved_group(tree)].data_vars))
    if found != sorted(target.names):
        raise ValueError(f"explore must be a tree of draws of {sorted(target.names)}, got {found}")
    draws = flat_draws(tree, target.names)
    if draws.shape[1] != target.dim:
        raise ValueError(f"explore must be a tree of draws of {target.dim} parameters, got {draws.shape[1]}")
    return draws


def _table(found: Found, target: Any) -> Modes:
    theta = found.theta.astype(target.dtype)
    params = jax.tree.map(np.asarray, jax.vmap(target.unravel)(theta))
    search = Search(target, 2**31)
    deviation = np.array([_deviations(search, end) for end in theta]).reshape(theta.shape)
    numbers = (found.energy, deviation, found.starts, found.unseen, found.lost, found.rows_read + search.rows_read)
    return Modes(params, *numbers, target.shown(theta))


def _deviations(search: Search, theta: np.ndarray) -> np.ndarray:
    """Of all parameters, by the curvature at a mode."""
    expansion, _ = search.expansion(jnp.asarray(theta))
    precision = curvature(search.target, expansion)
    unknown = np.full(theta.shape, np.nan)
    if not np.isfinite(precision).all():
        return unknown
    values, vectors = np.linalg.eigh(precision)
    if values[0] <= 0:
        return unknown
    # One deviation along the flattest direction must be one: there a parabola rises by 0.5.
    steps = (sign * vectors[:, 0] / np.sqrt(values[0]) for sign in (-1, 1))
    rises = [search.energy(theta + step) - search.energy(theta) for step in steps]
    if not all(_LEAST_RISE < rise < _MOST_RISE for rise in rises):
        return unknown
    return np.asarray(np.sqrt(np.diagonal(np.linalg.inv(precision))))
