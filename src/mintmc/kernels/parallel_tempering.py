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
With control variates batches estimate only what expansions around the modes leave, so cold rungs can do with them, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mintmc import count
from mintmc.data import Batch
from mintmc.energy import Density, Model
from mintmc.kernels import metropolis
from mintmc.kernels.base import Kernel
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.kernels.replicas import Lowest, count_round_trips, lower
from mintmc.kernels.rung_moves import RungMoves
from mintmc.kernels.rungs import Rungs
from mintmc.kernels.swap import Swaps, one_more, sources
from mintmc.proposals import Point, Proposal, Tuning
from mintmc.statistics import DATA_TOUCHED, DECIDED, ENERGY, Info, Statistic, counted

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


class Randomness(NamedTuple):
    """All random numbers of one step but its batches."""

    local: metropolis.Randomness  # with a leading axis of rungs
    swap: Array  # (rungs - 1,)
    coin: Array


RUNGS = (
    Statistic("rung_acceptance", ("rung",), unit="probability", kept="total"),
    Statistic("rung_noise", ("rung",), unit="variance of the log ratio, over batches", kept="total"),
    counted("swaps", "swaps tried", ("pair",), kept="total"),
    Statistic("swap_rate", ("pair",), unit="probability, 0 where no swap is tried", kept="total"),
    Statistic("swap_noise", ("pair",), unit="variance of the log ratio, over batches", kept="total"),
    counted("undefined", "moves", ("rung",), kept="total"),
    counted("round_trips", "round trips"),
    Statistic("rung_energy", ("rung",), unit="nats above the reference", over="last", kept="state"),
    Statistic("replica", ("rung",), np.int32, over="last", kept="state"),
    Statistic("hot_theta", ("parameter",), over="last", kept="watched"),
)


@dataclass(frozen=True)
class ParallelTemperingKernel(Kernel):
    """Move every rung, then swap neighbours."""

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
    is_controlled: bool = False  # whether batches estimate only what the expansions in batch["control"] leave
    keeps_rungs: bool = False  # whether the states of all rungs are recorded

    @property
    def rungs(self) -> int:
        """The number of rungs."""
        return len(self.temperatures)

    @property
    def exact(self) -> int:
        """Rungs that read all data; they come first."""
        return self._rungs.exact

    def randomness(self, key: Array) -> Randomness:
        """Everything random in one step but the batches."""
        keys = jax.random.split(key, self.rungs + 2)
        return Randomness(
            jax.vmap(self.local(0).randomness)(keys[:-2]),
            jnp.log(jax.random.uniform(keys[-2], (self.rungs - 1,), self.dtype)),
            jax.random.bernoulli(keys[-1]).astype(jnp.int32),
        )

    def init(self, theta: Array, batch: Batch) -> State:
        """All rungs at one point, of which one full pass tells everything."""
        rungs, exact = self.rungs, self.exact
        point = self._moves.visit(theta, 1.0, batch) if exact else self._moves.unknown(theta)
        point = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (exact, *leaf.shape)), point)
        gradient = point.gradient
        if gradient is not None:
            base = self._rungs.target(1.0).base_gradient(theta)
            gradient = base + (gradient - base) / self._rungs.all_temperatures[:exact, None]
        return State(
            theta=jnp.broadcast_to(theta, (rungs, theta.size)),
            gradient=gradient,
            density=point.density,
            replica=jnp.arange(rungs, dtype=jnp.int32),
            visited=jnp.zeros(rungs, jnp.int32).at[-1].set(1),
            scan=jnp.zeros((), jnp.int32),
            lowest=Lowest(jnp.asarray(jnp.inf, self.dtype), theta),
        )

    def advance(self, randomness: Randomness, state: State, batch: Batch, tuning: Tuning) -> tuple[State, Info]:
        """Move every rung, then swap neighbours."""
        moved, local = self.move(randomness.local, state, batch, tuning)
        parity = state.scan % 2 if self.scheme == "deo" else randomness.coin
        tried = jnp.arange(self.rungs - 1) % 2 == parity
        after, swaps = self.swap(randomness.swap, moved, batch, tried)
        visited, round_trips = count_round_trips(after.visited, after.replica)
        energies = self._energies(state, after, batch)
        lowest = lower(state.lowest, energies[: self.exact], after.theta)
        after = after._replace(visited=visited, scan=state.scan + 1, lowest=lowest)
        unclear = tried & ~swaps["is_defined"]
        info = {name: local[name][0] for name in ("accepted", "acceptance_rate", "log_ratio_noise")} | {
            "is_defined": local["is_defined"].all() & ~unclear.any(),
            "rung_acceptance": local["acceptance_rate"],
            "rung_noise": local["log_ratio_noise"],
            "swaps": tried.astype(jnp.int32),
            "swap_rate": swaps["acceptance_rate"],
            "swap_noise": swaps["log_ratio_noise"],
            "undefined": (~local["is_defined"]).astype(jnp.int32).at[:-1].add(unclear),
            "round_trips": round_trips,
            "rung_energy": energies,
            "replica": after.replica,
            "hot_theta": after.theta[-1],
        }
        if self.exact:
            info["energy"] = jax.tree.map(lambda leaf: leaf[0], after.density)
        if self.touched is None:
            info["data_touched"] = self._data_touched(tried, local)
        if self.keeps_rungs:
            info["rung_theta"] = after.theta
        return after, info

    def move(self, randomness: metropolis.Randomness, state: State, batch: Batch, tuning: Tuning) -> tuple[State, Info]:
        """A local move of every rung; what is decided has a leading axis of rungs."""
        known = Point(state.theta[: self.exact], state.gradient, state.density)
        theta, known, decided = self._moves.make(randomness, state.theta, known, batch, tuning)
        return state._replace(theta=theta, gradient=known.gradient, density=known.density), decided

    def swap(self, log_uniform: Array, state: State, batch: Batch, tried: Array) -> tuple[State, Info]:
        """Swap the states of rungs i and i+1 for all pairs i that are tried and accepted."""
        exact = self.exact
        known = Point(state.theta[:exact], state.gradient, state.density)
        if 0 < exact < self.rungs:
            # What the colder rung must know of a state that it may get costs a full pass.
            new = jax.lax.cond(
                tried[exact - 1],
                lambda: self._moves.visit(state.theta[exact], self.temperatures[exact], batch),
                lambda: self._moves.unknown(state.theta[exact]),
            )
            known = jax.tree.map(lambda old, row: jnp.concatenate([old, row]), known, one_more(new))
        decided = self._swaps.decide(log_uniform, state.theta, known.density, batch, tried)
        source = sources(decided["accepted"])
        known = self._swaps.carried(known, source)
        theta, replica = state.theta[source], state.replica[source]
        return state._replace(theta=theta, gradient=known.gradient, density=known.density, replica=replica), decided

    def position(self, state: State) -> Array:
        """Where rung 0 is."""
        return state.theta[0]

    def learns_from(self, state: State, info: Info) -> tuple[Array, Array]:
        """Every rung from its own moves."""
        return info["rung_acceptance"], state.theta

    def audited(self) -> Mapping[int, Kernel]:
        """Local moves of every rung on batches."""
        return {rung: self.local(rung) for rung in range(self.exact, self.rungs)}

    def of_rung(self, state: State, tuning: Tuning, rung: int) -> tuple[Array, Tuning]:
        """Where a rung stands, and its tuning."""
        return state.theta[rung], jax.tree.map(lambda leaf: leaf[rung], tuning)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Those of rung 0, and of all rungs."""
        varying = (DATA_TOUCHED,) if self.touched is None else ()
        states = (Statistic("rung_theta", ("rung", "parameter"), self.dtype, over="last", kept="state"),)
        return (*DECIDED, *varying, *((ENERGY,) if self.exact else ()), *RUNGS, *(states if self.keeps_rungs else ()))

    @property
    def batches(self) -> dict[str, int]:
        """The batches that a step reads: all data, or each rung's own, and one for every other pair on batches."""
        return self._moves.batches | self._swaps.batches

    @property
    def touched(self) -> int | None:
        """Where all rungs read all data, swaps read nothing."""
        return self._moves.data_per_move if self.exact == self.rungs and not self.proposal.varies else None

    @property
    def init_touched(self) -> int:
        """One pass for all rungs."""
        return self.model.n if self.exact else 0

    def local(self, rung: int, temperature: float | Array | None = None) -> MetropolisKernel:
        """The kernel of a rung's local moves."""
        return self._moves.local(rung, temperature)

    @property
    def _rungs(self) -> Rungs:
        sizes, settings = self.batch_sizes, (self.penalised, self.dtype, self.temper, self.is_controlled)
        return Rungs(self.model, self.temperatures, sizes, *settings)

    @property
    def _moves(self) -> RungMoves:
        return RungMoves(self._rungs, self.proposal, self.dim)

    @property
    def _swaps(self) -> Swaps:
        return Swaps(self._rungs)

    def _energies(self, before: State, after: State, batch: Batch) -> Array:
        """Exact and of the new states, or estimated and of the old ones, which have not seen this step's batches."""
        above = partial(self.model.energies_above, reference=self.reference, temper=self.temper)
        estimated = [above(before.theta[rung], batch[f"test{rung}"])[0][None] for rung in range(self.exact, self.rungs)]
        return jnp.concatenate([after.density.energy_above(self.reference, self.temper), *estimated])

    def _data_touched(self, tried: Array, local: Info) -> count.Count:
        """Data points read in a step: to move, to swap, and to know the energies."""
        reference = sum(self.model.reference_rows(size) for size in self.batch_sizes[self.exact :])
        moved = count.add(self._moves.data_touched(local), count.of(reference))
        return count.add(moved, self._swaps.data_touched(tried))
