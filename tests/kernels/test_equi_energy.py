"""One rung of the equi-energy sampler against truth: draw from its target, move or jump, compare.

The targets are exp(B - max(h, H) / T) with h = u^2/2, and B = 0 or another parabola that is not tempered: of a density
without data, or of a Gaussian mean, whose differences of log-likelihoods are normal, so that jumps on batches are exact
with the penalty. States and rings hold quantiles of their laws instead of random draws: their own error, of the order
of 1/count, does not blur what is tested.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.data import Uniform
from mintmc.energy import Model, Referenced
from mintmc.kernels.equi_energy import EquiEnergyKernel, Rung
from mintmc.ladder.rings import FrozenRings, States, ring_of
from mintmc.proposals import Tuning
from truth import LIMIT, gaussian_data, gaussian_log_likelihood, mostly_slow, quickly_compiled

STATES, KEPT, STEPS = 40_000, 20_000, 3
GRID = np.linspace(-120, 120, 400_001)
MOMENTS = [lambda u: u, lambda u: u**2, lambda u: u**4]


@dataclass(frozen=True)
class Law:
    """exp(-base u^2/2 - max(u^2/2, floor) / temperature), by quadrature."""

    temperature: float
    floor: float = -np.inf
    base: float = 0.0

    @cached_property
    def probability(self):
        density = np.exp(-self.base * GRID**2 / 2 - np.maximum(GRID**2 / 2, self.floor) / self.temperature)
        return density / density.sum()

    def quantiles(self, count):
        middle = np.cumsum(self.probability) - self.probability / 2
        return np.interp((np.arange(count) + 0.5) / count, middle, GRID)

    def worst_distance(self, u):
        """Largest distance of a sample's moments from this law, in standard errors of an independent sample."""
        distances = []
        for moment in MOMENTS:
            mean = self.probability @ moment(GRID)
            deviation = np.sqrt(self.probability @ (moment(GRID) - mean) ** 2)
            distances.append(abs(moment(u).mean() - mean) / deviation * np.sqrt(len(u)))
        return float(max(distances))


@dataclass(frozen=True)
class Target:
    """The energy u^2/2 above its minimum, u = sqrt(n) theta: of n data, or of a density if n is 0.

    What is not tempered, -base u^2/2, is the prior of data, and the Jacobian of a density.
    """

    n: int
    base: float = 0.0

    @property
    def scale(self):
        return max(self.n, 1) ** 0.5

    @cached_property
    def rows(self):
        if self.n == 0:
            return None
        x = jnp.asarray(gaussian_data(self.n))
        return Referenced(x, gaussian_log_likelihood(self.reference_theta, x))

    @property
    def reference_theta(self):
        return 0.7 / self.scale

    @cached_property
    def model(self):
        if self.n == 0:
            log_jacobian = (lambda u: -0.5 * self.base * u**2) if self.base else None
            density = mintmc.Posterior.from_density(lambda u: -0.5 * u**2, log_jacobian)
            return density.model(lambda theta: theta[0], 1)
        return Model(
            lambda theta, row: gaussian_log_likelihood(theta[0], row),
            lambda theta: -0.5 * self.base * self.n * theta[0] ** 2,
            self.n,
            self.n,
        )

    @cached_property
    def reference(self):
        return self.model.density(jnp.array([self.reference_theta]), self.rows)

    @property
    def reference_energy(self):
        return self.reference_theta**2 * self.scale**2 / 2


@dataclass(frozen=True)
class Case:
    """A rung, what it is fed with, and its mistakes."""

    target: Target
    temperatures: tuple[float, float]
    floors: tuple[float, float] = (-np.inf, -np.inf)
    edges: tuple[float, ...] = (1.0, 4.0)  # in units of the colder temperature, above the minimum
    batch_size: int | None = None
    subset_size: int = 0  # 0: the hotter rung reads all data
    penalised: bool = True
    proposal: mintmc.RandomWalk | mintmc.Langevin = mintmc.RandomWalk()  # noqa: RUF009  it is frozen
    step: float = 2.0  # in standard deviations of the target
    fed_by: Law | None = None  # None is the hotter rung
    believed_floors: tuple[float, float] | None = None  # None are the floors
    gradient_scale: float = 1.0  # anything else stores the gradient of another temperature
    filed_by: str = "subset"  # which rows sort the states: the fixed "subset", or a "fresh" batch for each
    looked_up_by: str = "subset"  # the same for the state that wants to jump; "test" is the batch of the ratio
    temper: str = "posterior"
    has_base_gradient: bool = True  # False leaves out that of what is not tempered

    @property
    def law(self):
        return Law(self.temperatures[0], self.floors[0], self.target.base)

    @property
    def hotter(self):
        return Law(self.temperatures[1], self.floors[1], self.target.base)

    @property
    def rung(self):
        """Where it stands; how often it jumps is up to the test."""
        floors = np.array(self.believed_floors or self.floors) - self.target.reference_energy
        values = (self.temperatures[0], floors[0], self.temperatures[1], floors[1])
        return Rung(*(jnp.asarray(value, jnp.float32) for value in (*values, np.nan)))

    @property
    def subset(self):
        """The rows that tell rings apart; their own order says nothing."""
        if self.subset_size == 0:
            return None
        return jax.tree.map(lambda leaf: leaf[: self.subset_size], self.target.rows)

    def rings(self):
        """Rings with quantiles of the law that feeds them."""
        target = self.target
        u = jnp.asarray((self.fed_by or self.hotter).quantiles(KEPT), jnp.float32)
        theta = (u / target.scale)[:, None]
        edges = jnp.asarray(np.array(self.edges) * self.temperatures[0] - target.reference_energy, jnp.float32)
        member = np.asarray(ring_of(self.filing_energies(theta), edges))
        filled = np.bincount(member, minlength=len(self.edges) + 1)
        kept = np.zeros((len(filled), KEPT, 1), np.float32)
        for ring in range(len(filled)):
            kept[ring, : filled[ring]] = theta[member == ring]
        density = gradient = None
        if self.subset_size == 0:
            flat = jnp.asarray(kept.reshape(-1, 1))
            density = jax.jit(jax.vmap(partial(target.model.density, rows=target.rows)))(flat)
            density = jax.tree.map(lambda leaf: leaf.reshape(kept.shape[:2]), density)
            # That of -u^2/2.
            missing = 0 if self.has_base_gradient else self.target.base * self.temperatures[0]
            gradient = jnp.asarray((missing - self.gradient_scale) * kept) if self.proposal.uses_gradient else None
        states = jnp.asarray(States(kept, gradient, density).packed())
        return FrozenRings(edges, jnp.asarray(filled, jnp.int32), states, self.subset)

    def filing_energies(self, theta):
        model, rows, reference = self.target.model, self.target.rows, self.target.reference
        if self.subset_size == 0:
            return jax.vmap(lambda at: model.density(at, rows).energy_above(reference, self.temper))(theta)
        if self.filed_by == "subset":
            return jax.vmap(lambda at: model.energies_above(at, self.subset, reference, self.temper)[0])(theta)

        def fresh(args):
            key, at = args
            return model.energies_above(at, fresh_rows(key, rows, self.subset_size), reference)[0]

        return jax.lax.map(fresh, (jax.random.split(jax.random.key(5), len(theta)), theta), batch_size=500)


def fresh_rows(key, rows, size):
    # Uniform subsets: slices of one fixed shuffle would be only n/m different batches.
    batching = Uniform(len(rows.rows))
    return batching.take(rows, batching.ticket(key), 0, size)


@lru_cache
def program(target, proposal, batch_size, subset_size, penalised, looked_up_by, temper):
    """Applies a few steps to independent states, each with its own keys and batches. Cases alike share it."""

    def apply(keys, thetas, rung, rings, step_size):
        kernel = EquiEnergyKernel(
            model=target.model,
            proposal=proposal,
            reference=target.reference,
            penalised=penalised,
            batch_size=batch_size,
            subset_size=subset_size,
            dim=1,
            dtype=thetas.dtype,
            temper=temper,
        )

        def batch_of(key):
            batch = {"rung": rung, "rings": rings, "all": target.rows}
            if batch_size is not None:
                batch["test"] = fresh_rows(jax.random.fold_in(key, 1), target.rows, batch_size)
            if looked_up_by == "fresh":
                batch["rings"] = rings._replace(subset=fresh_rows(jax.random.fold_in(key, 2), target.rows, subset_size))
            if looked_up_by == "test":
                batch["rings"] = rings._replace(subset=batch["test"])
            return batch

        def one(args):
            key, theta = args

            def step(i, state):
                at = jax.random.fold_in(key, i)
                return kernel.step(jax.random.fold_in(at, 0), state, batch_of(at), Tuning(step_size, None))[0]

            return kernel.position(jax.lax.fori_loop(0, STEPS, step, kernel.init(theta, batch_of(key))))

        return jax.lax.map(one, (keys, thetas), batch_size=500)

    return quickly_compiled(apply)


def worst_distance(case, jump_probability):
    u = np.random.default_rng(7).permutation(case.law.quantiles(STATES))
    thetas = jnp.asarray(u[:, None] / case.target.scale, jnp.float32)
    step_size = jnp.asarray(case.step * case.temperatures[0] ** 0.5 / case.target.scale)
    rows = (case.batch_size, case.subset_size)
    apply = program(case.target, case.proposal, *rows, case.penalised, case.looked_up_by, case.temper)
    keys = jax.random.split(jax.random.key(11), STATES)
    rung = case.rung._replace(jump_probability=jnp.float32(jump_probability))
    ends = apply(keys, thetas, rung, case.rings(), step_size)
    return case.law.worst_distance(np.asarray(ends, float)[:, 0] * case.target.scale)


DENSITY = Case(Target(0), (2.0, 4.0))
CUT_OFF = Case(Target(0), (2.0, 4.0), floors=(3.0, 10.0), edges=(1.5, 5.0, 10.0))
LANGEVIN = Case(Target(0), (2.0, 4.0), proposal=mintmc.Langevin(), step=1.0)
# The noise of a jump is about n_eff (1 - 1/4)^2 (1 + 4) / m = 2.8, n_eff = 100.
BATCHES = Case(Target(2000), (20.0, 80.0), batch_size=100, subset_size=50, edges=(1.0, 3.0))
FED_BY_BATCHES = Case(Target(500), (5.0, 20.0), subset_size=50, edges=(1.0, 3.0))
# A prior worth as much as the likelihood at the colder temperature, and a Jacobian worth four times as much.
PRIOR = replace(BATCHES, target=Target(2000, base=1 / 20), temper="likelihood")
JACOBIAN = replace(LANGEVIN, target=Target(0, base=2.0), step=0.5)
RIGHT = {
    "density": DENSITY,
    "density, cut off": CUT_OFF,
    "density, Langevin": LANGEVIN,
    "batches": BATCHES,
    "all data, fed by batches": FED_BY_BATCHES,
}


@pytest.mark.parametrize("jump_probability", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("name", mostly_slow(RIGHT, "batches", "density"))
def test_the_target_is_invariant(name, jump_probability):
    assert worst_distance(RIGHT[name], jump_probability) < LIMIT


@pytest.mark.parametrize("case", [PRIOR, JACOBIAN], ids=["prior", "Jacobian"])
def test_what_is_not_tempered_stays_as_it_is(case):
    assert worst_distance(case, 0.5) < LIMIT


NO_FLOORS = (-np.inf, -np.inf)
BROKEN = {
    # name: (case, jump probability)
    "moves without floors": (replace(CUT_OFF, believed_floors=NO_FLOORS), 0.0),
    "jumps without floors": (replace(CUT_OFF, believed_floors=NO_FLOORS), 1.0),
    "floors of the next colder rung": (replace(CUT_OFF, believed_floors=(-np.inf, 3.0)), 1.0),
    "fed by the rung above the hotter": (replace(DENSITY, fed_by=Law(8.0)), 1.0),
    "fed by itself": (replace(DENSITY, fed_by=Law(2.0)), 1.0),
    "gradient of the hotter rung": (replace(LANGEVIN, gradient_scale=1 / 4), 0.5),
    "batches, no penalty": (replace(BATCHES, penalised=False), 1.0),
    "batches, fed by the rung above the hotter": (replace(BATCHES, fed_by=Law(320.0)), 1.0),
    "batches, fed by itself": (replace(BATCHES, fed_by=Law(20.0)), 1.0),
    "batches, looked up by a fresh one": (replace(BATCHES, looked_up_by="fresh"), 1.0),
    "batches, filed by fresh ones": (replace(BATCHES, filed_by="fresh"), 1.0),
    "batches, looked up by that of the ratio": (
        replace(BATCHES, subset_size=100, filed_by="fresh", looked_up_by="test"),
        1.0,
    ),
    "the prior is tempered": (replace(PRIOR, temper="posterior"), 0.5),
    "no gradient of the Jacobian": (replace(JACOBIAN, has_base_gradient=False), 0.5),
    "fed by the wrong batches": (replace(FED_BY_BATCHES, fed_by=Law(80.0)), 1.0),
    "fed by batches, looked up by a fresh one": (replace(FED_BY_BATCHES, looked_up_by="fresh"), 1.0),
}


@pytest.mark.parametrize(
    "name",
    mostly_slow(
        BROKEN, "fed by itself", "batches, no penalty", "batches, looked up by a fresh one", "jumps without floors"
    ),
)
def test_a_broken_twin_is_caught(name):
    case, jump_probability = BROKEN[name]
    assert worst_distance(case, jump_probability) > LIMIT


@pytest.mark.parametrize("name", ["batches", "all data, fed by batches"])
def test_random_rings_are_exact_if_their_noise_is_alike_and_independent(name):
    """No broken twin: a ring r drawn from P(r | x) is an auxiliary variable.

    Given r, a jump to y with density proportional to pi'(y) P(r | y) has the ratio of fixed rings: P cancels. So fresh
    energies do no harm if states are filed and looked up with noise of the same law, independent of the ratio's.
    They do in the twins above: one side fixed and the other fresh, or ring and ratio from one batch.
    """
    case = replace(RIGHT[name], filed_by="fresh", looked_up_by="fresh")
    assert worst_distance(case, 1.0) < LIMIT


class Gap(Case):
    """The lowest ring of the hotter rung is empty."""

    def rings(self):
        rings = super().rings()
        return rings._replace(filled=rings.filled.at[0].set(0))


def test_an_empty_ring_does_no_harm():
    assert worst_distance(Gap(Target(0), (2.0, 4.0)), 0.5) < LIMIT
