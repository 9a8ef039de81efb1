"""One rung of the equi-energy sampler (Kou, Zhou & Wong 2006): a local move, or a jump into a ring of the hotter rung.

With h the tempered part of the energy and B what is not tempered, rung k samples exp(B - max(h, H_k) / T_k). A jump
from x proposes a state y drawn uniformly from the states that the hotter rung k+1 left in the ring of x, and accepts it
with log ratio

    (max(h(x), H_k) - max(h(y), H_k)) / T_k  -  (max(h(x), H_{k+1}) - max(h(y), H_{k+1})) / T_{k+1},

in which B cancels. If the rung reads all data this is exact, and it costs nothing where the hotter rung does too:
density and gradient are kept beside the states. On batches both states are compared on one fresh batch, with the
penalty for its noise, which is small because only 1/T_k - 1/T_{k+1} multiplies it. Without floors (H = -inf) the rungs
are plainly tempered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from mintmc import count
from mintmc.acceptance.base import AcceptanceTest, chosen, decide, log_uniform
from mintmc.acceptance.exact import Exact
from mintmc.acceptance.minibatch import Common
from mintmc.data import Batch
from mintmc.energy import Density, Model, Tempered, Truncated
from mintmc.kernels import metropolis
from mintmc.kernels.base import Kernel
from mintmc.kernels.metropolis import MetropolisKernel, State
from mintmc.ladder.rings import FrozenRings, States, ring_of
from mintmc.proposals import Point, Proposal
from mintmc.statistics import DATA_TOUCHED, DECIDED, ENERGY, Info, Statistic, counted


class Rung(NamedTuple):
    """Where a rung stands on its ladder, passed to each step, so that rungs alike but for this share one program."""

    temperature: Array
    floor: Array
    hotter_temperature: Array
    hotter_floor: Array
    jump_probability: Array


class Randomness(NamedTuple):
    """All random numbers of one step but its batches."""

    local: metropolis.Randomness
    coin: Array
    pick: Array
    test: Array


class Outcome(NamedTuple):
    """What a move or a jump led to."""

    state: State
    decision: Info
    touched: count.Count
    energy: Array
    is_empty: Array  # a jump found nothing in its ring


JUMPS = (
    counted("jumps", "jumps tried"),
    counted("empty_rings", "jumps that found an empty ring"),
    Statistic("jump_rate", unit="probability, 0 for a local move"),
    Statistic("jump_noise", unit="variance of the log ratio, 0 for a local move"),
)


@dataclass(frozen=True)
class EquiEnergyKernel(Kernel):
    """Jump if the coin says so, once the hotter rung has left anything; move locally otherwise.

    Its settings are the same for all rungs that read batches of one size; what differs comes with each step
    (``batch["rung"]``), and so do the rings of the hotter rung (``batch["rings"]``).
    """

    model: Model
    proposal: Proposal
    reference: Density
    penalised: bool
    batch_size: int | None  # None reads all data
    subset_size: int  # rows that tell the hotter rung's rings apart; 0 where its energies are exact
    dim: int
    dtype: Any
    temper: str = "posterior"

    temperatures = 1.0  # its rung's own comes with each step

    def randomness(self, key: Array) -> Randomness:
        """Everything random in one step but the batches."""
        local, coin, pick, test = jax.random.split(key, 4)
        return Randomness(
            self.local(None).randomness(local),
            jax.random.uniform(coin, dtype=self.dtype),
            jax.random.uniform(pick, dtype=self.dtype),
            log_uniform(test, self.dtype),
        )

    def init(self, theta: Array, batch: Batch) -> State:
        """The first state."""
        return self.local(batch["rung"]).init(theta, batch)

    def advance(self, randomness: Randomness, state: State, batch: Batch, tuning: Any) -> tuple[State, Info]:
        """Jump or move."""
        jumps = (randomness.coin < batch["rung"].jump_probability) & (batch["rings"].filled.sum() > 0)
        outcome = jax.lax.cond(
            jumps,
            lambda: self._jump(randomness, state, batch),
            lambda: self._move(randomness.local, state, batch, tuning),
        )
        info = outcome.decision | {
            "data_touched": outcome.touched,
            "jumps": jumps.astype(jnp.int32),
            "empty_rings": outcome.is_empty.astype(jnp.int32),
            "jump_rate": jnp.where(jumps, outcome.decision["acceptance_rate"], 0),
            "jump_noise": jnp.where(jumps, outcome.decision["log_ratio_noise"], 0),
            "energy_above": outcome.energy,
        }
        here = outcome.state.point
        if self.is_exact:
            info["energy"] = here.density
        if self.keeps_gradient:
            base = self._target(batch["rung"]).base_gradient(here.theta)
            info["gradient"] = (here.gradient - base) * batch["rung"].temperature
        return outcome.state, info

    def position(self, state: State) -> Array:
        """Where a state is."""
        return state.point.theta

    def learns_from(self, state: State, info: Info) -> tuple[Array, Array]:
        """A jump says nothing about the step size."""
        rate = jnp.where(info["jumps"] > 0, self.proposal.target_acceptance, info["acceptance_rate"])
        return rate, state.point.theta

    @property
    def is_exact(self) -> bool:
        """Whether the rung reads all data."""
        return self.batch_size is None

    @property
    def keeps_gradient(self) -> bool:
        """Whether gradients are kept beside states."""
        return self.is_exact and self.proposal.uses_gradient

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Those of a decision and of jumps, and what rings need to know of a state."""
        of_state = [Statistic("energy_above", over="last", kept="watched")]
        if self.keeps_gradient:
            of_state.append(Statistic("gradient", ("parameter",), over="last", kept="watched"))
        return (*DECIDED, DATA_TOUCHED, *JUMPS, *((ENERGY,) if self.is_exact else ()), *of_state)

    @property
    def batches(self) -> dict[str, int]:
        """Those of local moves: a jump reads the same."""
        return self.local(None).batches

    @property
    def init_touched(self) -> int:
        """A rung on all data must know its first state."""
        return self.model.n if self.is_exact else 0

    def local(self, rung: Rung | None) -> MetropolisKernel:
        """The kernel of this rung's local moves; without a rung, what does not depend on where it stands."""
        target = Tempered(self.model, 1.0, self.temper) if rung is None else self._target(rung)
        test: AcceptanceTest = Exact() if self.is_exact else Common(self.penalised)
        size = self.batch_size or self.model.n
        return MetropolisKernel(target, self.proposal, test, size, self.dim, self.dtype)

    def plain(self, temperature: float) -> MetropolisKernel:
        """The local moves of a rung at this temperature whose energies are not cut off."""
        local = self.local(None)
        return replace(local, target=Tempered(self.model, temperature, self.temper))

    def _target(self, rung: Rung, exchange: bool = False) -> Truncated:
        """Of local moves, or of jumps from the hotter rung."""
        terms = [(1 / rung.temperature, rung.floor)]
        if exchange:
            terms.append((-1 / rung.hotter_temperature, rung.hotter_floor))
        return Truncated(
            self.model, rung.temperature, self.temper, exchange, terms=tuple(terms), reference=self.reference
        )

    def _move(self, randomness: metropolis.Randomness, state: State, batch: Batch, tuning: Any) -> Outcome:
        local = self.local(batch["rung"])
        moved, info = local.advance(randomness, state, batch, tuning)
        decision = {each.name: info[each.name] for each in DECIDED}
        touched = info["data_touched"] if local.touched is None else count.of(local.touched)
        touched = count.add(touched, count.of(self.model.reference_rows(self.batch_size or 0)))
        return Outcome(moved, decision, touched, self._energy(state, moved, batch), jnp.zeros((), bool))

    def _jump(self, randomness: Randomness, state: State, batch: Batch) -> Outcome:
        rung, rings = batch["rung"], batch["rings"]
        ring = self._ring(state.point, rings)
        # Then the chain stays where it is. A local move instead (as in Algorithm 2) would be made more often in empty
        # rings than in others, and so would not be reversible.
        is_empty = rings.filled[ring] == 0
        log_uniform = jnp.where(is_empty, jnp.inf, randomness.test)
        place = jnp.minimum((randomness.pick * rings.filled[ring]).astype(jnp.int32), rings.filled[ring] - 1)
        target = self._target(rung, exchange=True)
        found = States.unpacked(rings.states[ring, place], self.dim, self.model.log_jacobian is not None)
        if self.batch_size is not None:
            there = Point(found.theta)
            decision, _ = Common(self.penalised).decide(log_uniform, state.point, there, 0.0, (), batch, target)
            touched = 2 * self.batch_size + self.model.reference_rows(self.batch_size)
        else:
            there, touched = self._known(found, batch)
            ratio = target.log_ratio(state.point.density, there.density)
            decision = decide(log_uniform, ratio, jnp.zeros_like(ratio))
        moved = state._replace(point=chosen(decision["accepted"], there, state.point))
        decision["acceptance_rate"] = jnp.where(is_empty, 0, decision["acceptance_rate"])
        read = count.of(touched + self.subset_size)
        return Outcome(moved, decision, read, self._energy(state, moved, batch), is_empty)

    def _known(self, found: States, batch: Batch) -> tuple[Point, int]:
        """What a rung on all data must know of a state of the hotter one, and the rows that takes."""
        rung = batch["rung"]
        if found.density is None:
            return self.local(rung).visit(found.theta, batch), self.model.n
        gradient = found.gradient
        if gradient is not None:
            gradient = self._target(rung).base_gradient(found.theta) + gradient / rung.temperature
        return Point(found.theta, gradient, found.density), 0

    def _ring(self, here: Point, rings: FrozenRings) -> Array:
        if rings.edges.size == 0:
            return jnp.zeros((), jnp.int32)
        if rings.subset is None:
            energy = here.density.energy_above(self.reference, self.temper)
        else:
            energy, _ = self.model.energies_above(here.theta, rings.subset, self.reference, self.temper)
        return ring_of(energy, rings.edges).astype(jnp.int32)

    def _energy(self, before: State, after: State, batch: Batch) -> Array:
        """The energy to record: exact and of the new state, or estimated and of the old.

        A new state was accepted because of the batch of this step, which is therefore biased in its favour; the old
        state has not seen it.
        """
        if self.is_exact:
            result: Array = after.point.density.energy_above(self.reference, self.temper)
            return result
        return self.model.energies_above(before.point.theta, batch["test"], self.reference, self.temper)[0]
