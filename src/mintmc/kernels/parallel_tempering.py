"""Parallel tempering: all rungs of a ladder move side by side, and neighbours try to swap their states.

With h the tempered part of the energy and B what is not tempered, rung k samples exp(B - h / T_k). A scan is a local
Metropolis move on every rung, then a swap of the states of rungs i and i+1 for all even i or for all odd i, each
accepted with log ratio

    (1/T_i - 1/T_{i+1}) (h(x_i) - h(x_{i+1})),

in which B cancels.

*deo* takes even and odd pairs in turn, so that states are carried along the ladder; *seo* tosses a coin, and they
diffuse (Okabe et al. 2001; Syed, Bouchard-Côté, Deligiannidis & Doucet 2022).

Where both rungs read all data the ratio is exact and costs nothing: densities are kept beside the states. Where only
the colder one does, the state of the hotter gets a full pass. Where both read batches, they are compared on one fresh
batch, with the penalty for its noise: exact under normality. That noise is small: only 1/T_i - 1/T_{i+1} multiplies it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc.acceptance.metropolis import Decision, decide
from mintmc.acceptance.minibatch import Common
from mintmc.data import Batch, Rows
from mintmc.energy import Density, Model, Tempered
from mintmc.kernels import metropolis
from mintmc.kernels.base import Info, Kernel
from mintmc.proposals import Point, Proposal, Tuning

SCHEMES = ("deo", "seo")


class State(NamedTuple):
    """What the next step needs: the states of all rungs, and who they are."""

    theta: Array  # (rungs, d)
    gradient: Array | None  # (exact rungs, d) of each rung's own log target; for a gradient proposal
    density: Density  # (exact rungs,) each
    replica: Array  # (rungs,) which replica is on each rung
    visited: Array  # (rungs,) by replica: 0 nothing, 1 the hottest rung last, 2 rung 0 after the hottest
    scan: Array
    lowest: Lowest


class Lowest(NamedTuple):
    """The lowest energy, above the reference, that any rung on all data has had, and the state there."""

    energy: Array
    theta: Array


class Settings(NamedTuple):
    """What stays the same from step to step."""

    model: Model
    proposal: Proposal
    reference: Density
    temperatures: tuple[float, ...]
    batch_sizes: tuple[int, ...]  # n reads all data
    scheme: str
    penalised: bool
    dim: int
    dtype: Any
    temper: str = "posterior"

    @property
    def rungs(self) -> int:
        """The number of rungs."""
        return len(self.temperatures)

    @property
    def exact(self) -> int:
        """Rungs that read all data; they come first."""
        return sum(size == self.model.n for size in self.batch_sizes)


class Noise(NamedTuple):
    """The randomness of one step."""

    local: metropolis.Noise  # with a leading axis of rungs
    swap: Array  # (rungs - 1,)
    coin: Array


def randomness(key: Array, settings: Settings) -> Noise:
    """Everything random in one step but the batches."""
    keys = jax.random.split(key, settings.rungs + 2)
    return Noise(
        jax.vmap(partial(metropolis.randomness, settings=_local(settings, 0)))(keys[:-2]),
        jnp.log(jax.random.uniform(keys[-2], (settings.rungs - 1,), settings.dtype)),
        jax.random.bernoulli(keys[-1]).astype(jnp.int32),
    )


def init(theta: Array, batch: Batch, settings: Settings) -> State:
    """All rungs at one point, of which one full pass tells everything."""
    rungs, exact = settings.rungs, settings.exact
    point = _visit(theta, 1.0, batch, settings) if exact else _unknown(theta, settings)
    point = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (exact, *leaf.shape)), point)
    gradient = point.gradient
    if gradient is not None:
        base = _target(settings, 1.0).base_gradient(theta)
        gradient = base + (gradient - base) / _temperatures(settings)[:exact, None]
    return State(
        theta=jnp.broadcast_to(theta, (rungs, theta.size)),
        gradient=gradient,
        density=point.density,
        replica=jnp.arange(rungs, dtype=jnp.int32),
        visited=jnp.zeros(rungs, jnp.int32).at[-1].set(1),
        scan=jnp.zeros((), jnp.int32),
        lowest=Lowest(jnp.asarray(jnp.inf, settings.dtype), theta),
    )


def advance(noise: Noise, state: State, batch: Batch, tuning: Tuning, settings: Settings) -> tuple[State, Info]:
    """Move every rung, then swap neighbours."""
    moved, local = move(noise.local, state, batch, tuning, settings)
    parity = state.scan % 2 if settings.scheme == "deo" else noise.coin
    tried = jnp.arange(settings.rungs - 1) % 2 == parity
    after, swaps = swap(noise.swap, moved, batch, tried, settings)
    visited, round_trips = _count_round_trips(after)
    energies = _energies(state, after, batch, settings)
    lowest = _lower(state.lowest, energies[: settings.exact], after.theta)
    after = after._replace(visited=visited, scan=state.scan + 1, lowest=lowest)
    is_defined = local.is_defined.all() & (swaps.is_defined | ~tried).all()
    extras = {
        "rung_acceptance": local.acceptance_rate,
        "rung_noise": local.log_ratio_noise,
        "swaps": tried.astype(jnp.int32),
        "swap_rate": swaps.acceptance_rate,
        "swap_noise": swaps.log_ratio_noise,
        "round_trips": round_trips,
        "undefined": (~local.is_defined).astype(jnp.int32).at[:-1].add(tried & ~swaps.is_defined),
    }
    snapshot = {"rung_energy": energies, "replica": after.replica, "hot_theta": after.theta[-1]}
    density = jax.tree.map(lambda leaf: leaf[0], after.density) if settings.exact else None
    touched = None if settings.exact == settings.rungs else _data_touched(tried, settings)
    accepted, rate, noisiness, _ = (leaf[0] for leaf in local[:4])
    return after, Info(accepted, rate, noisiness, is_defined, touched, density, extras, snapshot)


def move(
    noise: metropolis.Noise, state: State, batch: Batch, tuning: Tuning, settings: Settings
) -> tuple[State, Decision]:
    """A local move of every rung; what is decided has a leading axis of rungs."""

    def one(at: tuple, batch: Batch, rung: int) -> tuple[Point, Decision]:
        point, noise, tuning, temperature = at
        local = _local(settings, rung, temperature)
        moved, info = metropolis.advance(noise, metropolis.State(point, ()), batch, tuning, local)
        return moved.point, Decision(*info[:4])

    exact = settings.exact
    known = Point(state.theta[:exact], state.gradient, state.density)
    each = (noise, tuning, _temperatures(settings))
    results = []
    if exact:
        cold = (known, *jax.tree.map(lambda leaf: leaf[:exact], each))
        alone = partial(one, batch=batch, rung=0)
        # Full passes side by side would not fit into the cache; without data, one by one they would take longer.
        results.append(jax.vmap(alone)(cold) if settings.model.n == 0 else jax.lax.map(alone, cold))
        known = results[0][0]
    for rung in range(exact, settings.rungs):
        roles = {role: batch[f"{role}{rung}"] for role in metropolis.batches(_local(settings, rung))}
        at = (Point(state.theta[rung]), *jax.tree.map(lambda leaf, k=rung: leaf[k], each))
        results.append(_one_more(one(at, roles, rung)))
    theta = jnp.concatenate([point.theta for point, _ in results])
    decision = _joined([decision for _, decision in results])
    return state._replace(theta=theta, gradient=known.gradient, density=known.density), decision


def swap(noise: Array, state: State, batch: Batch, tried: Array, settings: Settings) -> tuple[State, Decision]:
    """Swap the states of rungs i and i+1 for all pairs i that are tried and accepted."""
    exact, temperatures = settings.exact, _temperatures(settings)
    known = Point(state.theta[:exact], state.gradient, state.density)
    if 0 < exact < settings.rungs:
        # What the colder rung must know of a state that it may get costs a full pass.
        new = jax.lax.cond(
            tried[exact - 1],
            lambda: _visit(state.theta[exact], settings.temperatures[exact], batch, settings),
            lambda: _unknown(state.theta[exact], settings),
        )
        known = jax.tree.map(lambda old, row: jnp.concatenate([old, row]), known, _one_more(new))
    decision = _decide(noise, state.theta, known.density, batch, tried, settings)
    # Rung k gets the state of rung source[k].
    goes = decision.accepted.astype(jnp.int32)
    source = jnp.arange(settings.rungs) + jnp.pad(goes, (0, 1)) - jnp.pad(goes, (1, 0))
    known = jax.tree.map(lambda leaf: leaf[source[:exact]], known)
    if known.gradient is not None:
        # That of log pi at one temperature is not that at another.
        base = jax.vmap(_target(settings, 1.0).base_gradient)(known.theta)
        ratio = (temperatures[source] / temperatures)[:exact, None]
        carried = base + (known.gradient - base) * ratio
        known = known._replace(gradient=jnp.where(ratio == 1, known.gradient, carried))
    theta, replica = state.theta[source], state.replica[source]
    return state._replace(theta=theta, gradient=known.gradient, density=known.density, replica=replica), decision


def _decide(noise: Array, theta: Array, density: Density, batch: Batch, tried: Array, settings: Settings) -> Decision:
    """Which pairs swap: exactly where both densities are known, on a batch elsewhere."""
    # A swap is a move from x_i to x_{i+1} at the temperature of the difference.
    between = jnp.asarray(-1 / np.diff(1 / np.asarray(settings.temperatures)), settings.dtype)
    pairs = max(density.prior.size - 1, 0)
    here, there = (jax.tree.map(lambda leaf, at=at: leaf[at : at + pairs], density) for at in (0, 1))
    ratio = _target(settings, between[:pairs], exchange=True).log_ratio(here, there)
    decisions = [decide(noise[:pairs], ratio, jnp.zeros_like(ratio))]
    for i in range(pairs, settings.rungs - 1):
        rows, target = _swap_rows(batch, i, settings), _target(settings, between[i], exchange=True)
        compare = partial(_compare, noise[i], theta[i : i + 2], rows, target, settings.penalised)
        untried = partial(decide, *jnp.zeros((3,), settings.dtype))
        decisions.append(_one_more(jax.lax.cond(tried[i], compare, untried)))
    # Of a pair that is not tried nothing is recorded.
    return jax.tree.map(lambda leaf: jnp.where(tried, leaf, jnp.zeros_like(leaf)), _joined(decisions))


def _local(settings: Settings, rung: int, temperature: float | Array | None = None) -> metropolis.Settings:
    """The Metropolis kernel of a rung's local moves."""
    size = settings.batch_sizes[rung]
    target = _target(settings, settings.temperatures[rung] if temperature is None else temperature)
    test = None if size == settings.model.n else Common(settings.penalised)
    return metropolis.Settings(target, settings.proposal, test, size, settings.dim, settings.dtype)


def _target(settings: Settings, temperature: float | Array, exchange: bool = False) -> Tempered:
    return Tempered(settings.model, temperature, settings.temper, exchange)


def _temperatures(settings: Settings) -> Array:
    return jnp.asarray(settings.temperatures, settings.dtype)


def _visit(theta: Array, temperature: float, batch: Batch, settings: Settings) -> Point:
    return metropolis.visit(theta, batch, _local(settings, 0, temperature))


def _unknown(theta: Array, settings: Settings) -> Point:
    """A point of which nothing is known, in the shape of one that all data were read for."""
    gradient = jnp.zeros_like(theta) if settings.proposal.uses_gradient else None
    return Point(theta, gradient, settings.model.no_density(settings.dtype))


def _compare(noise: Array, theta: Array, rows: Rows, target: Tempered, penalised: bool) -> Decision:
    return Common(penalised).decide(noise, theta[0], theta[1], 0.0, (), {"test": rows}, target)[0]


def _swap_rows(batch: Batch, pair: int, settings: Settings) -> Rows:
    """The fresh batch of a pair. Pairs of either parity share it: only one of them reads it."""
    return jax.tree.map(lambda leaf: leaf[: settings.batch_sizes[pair]], batch[f"swap{pair // 2}"])


def _one_more(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[None], tree)


def _joined(decisions: Sequence[Decision]) -> Decision:
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *decisions)


def _count_round_trips(state: State) -> tuple[Array, Array]:
    """What every replica has visited, and whether one has come back to the hottest rung from rung 0."""
    cold, hot = state.replica[0], state.replica[-1]
    back = (state.visited[hot] == 2).astype(jnp.int32)
    visited = state.visited.at[hot].set(1)
    return visited.at[cold].set(jnp.where(visited[cold] > 0, 2, 0)), back


def _lower(lowest: Lowest, energies: Array, theta: Array) -> Lowest:
    """The lower of what was lowest and of the rungs with these exact energies, the first of ``theta``."""
    if energies.size == 0:
        return lowest
    at = jnp.nanargmin(energies)
    new = Lowest(energies[at], theta[at])
    return jax.tree.map(partial(jnp.where, new.energy < lowest.energy), new, lowest)


def _energies(before: State, after: State, batch: Batch, settings: Settings) -> Array:
    """Exact and of the new states, or estimated and of the old ones, which have not seen this step's batches."""
    estimated = [
        settings.model.energies_above(before.theta[rung], batch[f"test{rung}"], settings.reference, settings.temper)[0][
            None
        ]
        for rung in range(settings.exact, settings.rungs)
    ]
    return jnp.concatenate([after.density.energy_above(settings.reference, settings.temper), *estimated])


def batches(settings: Settings) -> dict[str, int]:
    """The batches that a step reads: all data, or each rung's own, and one for every other pair on batches."""
    sizes = {"all": settings.model.n} if settings.exact else {}
    for rung in range(settings.exact, settings.rungs):
        sizes |= {f"{role}{rung}": size for role, size in metropolis.batches(_local(settings, rung)).items()}
    for pair in range(settings.exact, settings.rungs - 1):
        # The first is the largest.
        sizes.setdefault(f"swap{pair // 2}", settings.batch_sizes[pair])
    return sizes


def _data_per_move(settings: Settings) -> int:
    return sum(metropolis.data_per_step(_local(settings, rung)) or 0 for rung in range(settings.rungs))


def _data_touched(tried: Array, settings: Settings) -> Array:
    """Data points read in a step that swaps noisy pairs: a full pass, or both states on a batch, for each."""
    full_passes = [0] * (settings.exact - 1) + [settings.model.n] * (settings.exact > 0)
    costs = jnp.asarray(full_passes + [2 * size for size in settings.batch_sizes[settings.exact : -1]], jnp.int32)
    reference = sum(settings.model.reference_rows(size) for size in settings.batch_sizes[settings.exact :])
    return _data_per_move(settings) + reference + jnp.where(tried, costs, 0).sum()


def kernel(settings: Settings) -> Kernel:
    """The kernel for the runner."""
    return Kernel(
        randomness=partial(randomness, settings=settings),
        init=partial(init, settings=settings),
        advance=partial(advance, settings=settings),
        position=lambda state: state.theta[0],
        batches=batches(settings),
        touched=_data_per_move(settings) if settings.exact == settings.rungs else None,
        init_touched=settings.model.n if settings.exact else 0,
        proposal=settings.proposal,
        temperatures=settings.temperatures,
        lesson=lambda state, info: (info.extras["rung_acceptance"], state.theta),
        moves={rung: _local(settings, rung) for rung in range(settings.exact, settings.rungs)},
    )
