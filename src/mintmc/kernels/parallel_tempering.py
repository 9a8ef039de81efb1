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
from mintmc.acceptance.base import AcceptanceTest
from mintmc.acceptance.exact import Exact
from mintmc.acceptance.minibatch import Common
from mintmc.data import Batch
from mintmc.energy import Density, Model
from mintmc.kernels import metropolis
from mintmc.kernels.base import Kernel
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.kernels.replicas import Lowest, count_round_trips, lower
from mintmc.kernels.swap import Swaps, joined, one_more
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
        return self.swaps.exact

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
        point = self._visit(theta, 1.0, batch) if exact else self._unknown(theta)
        point = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (exact, *leaf.shape)), point)
        gradient = point.gradient
        if gradient is not None:
            base = self.swaps.target(1.0).base_gradient(theta)
            gradient = base + (gradient - base) / self._temperatures[:exact, None]
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

        def one(at: tuple[Any, ...], batch: Batch, rung: int) -> tuple[Point, Info]:
            point, randomness, tuning, temperature = at
            local = self.local(rung, temperature)
            moved, info = local.advance(randomness, metropolis.State(point, ()), batch, tuning)
            names = [each.name for each in DECIDED] + (["data_touched"] if self.proposal.varies else [])
            return moved.point, {name: info[name] for name in names}

        exact = self.exact
        known = Point(state.theta[:exact], state.gradient, state.density)
        each = (randomness, tuning, self._temperatures)
        results = []
        if exact:
            cold = (known, *jax.tree.map(lambda leaf: leaf[:exact], each))
            alone = partial(one, batch=batch, rung=0)
            # Full passes side by side would not fit into the cache; without data, one by one they would take longer.
            results.append(jax.vmap(alone)(cold) if self.model.n == 0 else jax.lax.map(alone, cold))
            known = results[0][0]
        for rung in range(exact, self.rungs):
            roles = {role: batch[f"{role}{rung}"] for role in self.local(rung).batches} | self.swaps.others(batch)
            at = (Point(state.theta[rung]), *jax.tree.map(lambda leaf, k=rung: leaf[k], each))
            results.append(one_more(one(at, roles, rung)))
        theta = jnp.concatenate([point.theta for point, _ in results])
        decided = joined([decided for _, decided in results])
        return state._replace(theta=theta, gradient=known.gradient, density=known.density), decided

    def swap(self, log_uniform: Array, state: State, batch: Batch, tried: Array) -> tuple[State, Info]:
        """Swap the states of rungs i and i+1 for all pairs i that are tried and accepted."""
        exact, temperatures = self.exact, self._temperatures
        known = Point(state.theta[:exact], state.gradient, state.density)
        if 0 < exact < self.rungs:
            # What the colder rung must know of a state that it may get costs a full pass.
            new = jax.lax.cond(
                tried[exact - 1],
                lambda: self._visit(state.theta[exact], self.temperatures[exact], batch),
                lambda: self._unknown(state.theta[exact]),
            )
            known = jax.tree.map(lambda old, row: jnp.concatenate([old, row]), known, one_more(new))
        decided = self.swaps.decide(log_uniform, state.theta, known.density, batch, tried)
        # Rung k gets the state of rung source[k].
        goes = decided["accepted"].astype(jnp.int32)
        source = jnp.arange(self.rungs) + jnp.pad(goes, (0, 1)) - jnp.pad(goes, (1, 0))
        known = jax.tree.map(lambda leaf: leaf[source[:exact]], known)
        if known.gradient is not None:
            # That of log pi at one temperature is not that at another.
            base = jax.vmap(self.swaps.target(1.0).base_gradient)(known.theta)
            ratio = (temperatures[source] / temperatures)[:exact, None]
            carried = base + (known.gradient - base) * ratio
            known = known._replace(gradient=jnp.where(ratio == 1, known.gradient, carried))
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
        sizes = {"all": self.model.n} if self.exact else {}
        for rung in range(self.exact, self.rungs):
            sizes |= {f"{role}{rung}": size for role, size in self.local(rung).batches.items()}
        return sizes | self.swaps.batches

    @property
    def touched(self) -> int | None:
        """Where all rungs read all data, swaps read nothing."""
        return self._data_per_move if self.exact == self.rungs and not self.proposal.varies else None

    @property
    def init_touched(self) -> int:
        """One pass for all rungs."""
        return self.model.n if self.exact else 0

    def local(self, rung: int, temperature: float | Array | None = None) -> MetropolisKernel:
        """The kernel of a rung's local moves."""
        size = self.batch_sizes[rung]
        target = self.swaps.target(self.temperatures[rung] if temperature is None else temperature)
        test: AcceptanceTest = Exact() if size == self.model.n else Common(self.penalised)
        return MetropolisKernel(target, self.proposal, test, size, self.dim, self.dtype)

    @property
    def swaps(self) -> Swaps:
        """How neighbours compare their states."""
        return Swaps(
            self.model,
            self.temperatures,
            self.batch_sizes,
            self.penalised,
            self.dtype,
            self.temper,
            self.is_controlled,
        )

    @property
    def _temperatures(self) -> Array:
        return jnp.asarray(self.temperatures, self.dtype)

    def _visit(self, theta: Array, temperature: float, batch: Batch) -> Point:
        return self.local(0, temperature).visit(theta, batch)

    def _unknown(self, theta: Array) -> Point:
        """A point of which nothing is known, in the shape of one that all data were read for."""
        gradient = jnp.zeros_like(theta) if self.proposal.uses_gradient else None
        return Point(theta, gradient, self.model.no_density(self.dtype))

    def _energies(self, before: State, after: State, batch: Batch) -> Array:
        """Exact and of the new states, or estimated and of the old ones, which have not seen this step's batches."""
        above = partial(self.model.energies_above, reference=self.reference, temper=self.temper)
        estimated = [above(before.theta[rung], batch[f"test{rung}"])[0][None] for rung in range(self.exact, self.rungs)]
        return jnp.concatenate([after.density.energy_above(self.reference, self.temper), *estimated])

    @property
    def _data_per_move(self) -> int:
        return sum(self.local(rung).touched or 0 for rung in range(self.rungs))

    def _data_touched(self, tried: Array, local: Info) -> count.Count:
        """Data points read in a step that swaps noisy pairs: a full pass, or both states on a batch, for each."""
        reference = sum(self.model.reference_rows(size) for size in self.batch_sizes[self.exact :])
        total = count.of(self._data_per_move + reference)
        for rung in range(self.rungs if self.proposal.varies else 0):
            total = count.add(total, jax.tree.map(lambda word, k=rung: word[k], local["data_touched"]))
        for i, cost in enumerate(self.swaps.costs):
            if cost:
                total = count.add(total, jax.tree.map(lambda word, i=i: jnp.where(tried[i], word, 0), count.of(cost)))
        return total
