"""Parallel tempering against truth: draw all rungs from their targets, move and swap, compare.

Rung k of the Gaussian mean is N(0, T_k / n) exactly, and differences of log-likelihoods are normal, so that swaps on
batches are exact with the penalty.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc import ParallelTempering, count
from mintmc.data import Uniform
from mintmc.energy import Density, Referenced
from mintmc.kernels.parallel_tempering import ParallelTemperingKernel
from mintmc.ladder.reference import Reference
from mintmc.proposals import Tuning
from mistakes import each_refused
from truth import LIMIT, distance, fresh_batches, gaussian_data, gaussian_log_likelihood, mostly_slow, quickly_compiled

N, STATES, BASE = 500, 20_000, 200.0
ROWS = jnp.asarray(gaussian_data(N))
SMALL = jnp.asarray(gaussian_data(100))


def parabola(theta):
    """A normal prior, or what stands for a Jacobian, worth BASE observations."""
    return -0.5 * BASE * jnp.sum(theta**2)


def gaussian_mean(rows, log_prior=None):
    """The model on rows beside their log-likelihoods at a reference state, and that state's density."""
    posterior = mintmc.Posterior(gaussian_log_likelihood, rows, log_prior)
    model = posterior.model(lambda theta: theta[0], 1)
    at = jnp.array([0.05])
    return model, Referenced(rows, model.each(at, rows)), model.density(at, rows)


def kernel_of(rows, temperatures, sizes, log_prior=None, **changes):
    model, _, reference = gaussian_mean(rows, log_prior)
    settings = (mintmc.RandomWalk(), reference, temperatures, sizes, "deo", True, 1, jnp.zeros(()).dtype)
    return replace(ParallelTemperingKernel(model, *settings), **changes)


def density_kernel(log_jacobian=None, **changes):
    """Two-dimensional standard normal density without data, tempered."""
    density = mintmc.Posterior.from_density(lambda x: -0.5 * jnp.sum(x**2), log_jacobian)
    model, reference = density.model(lambda theta: theta, 2), Density(*jnp.zeros(3))
    return kernel_of(SMALL, (1.0, 2.0, 5.0), (0, 0, 0), model=model, dim=2, reference=reference, **changes)


# n_eff = 100, 50, 20, 10. On 50 rows the noise of a swap is about n (1/T_i - 1/T_{i+1})^2 (T_i + T_{i+1}) / 50 = 1.5.
BATCHES = kernel_of(ROWS, (5.0, 10.0, 25.0), (50, 50, 30))
MIXED = kernel_of(ROWS, (5.0, 10.0, 25.0, 50.0), (N, N, 50, 30))
FULL = kernel_of(SMALL, (1.0, 2.0, 5.0), (100,) * 3)
LANGEVIN = mintmc.Langevin()
PRIOR = kernel_of(ROWS, (5.0, 10.0, 25.0, 50.0), (N, N, 50, 30), parabola, temper="likelihood", proposal=LANGEVIN)


def rows_of(kernel):
    rows = {N: ROWS, 100: SMALL, 0: None}[kernel.model.n]
    return None if rows is None else gaussian_mean(rows)[1]


def spread(kernel):
    """Standard deviation of each rung's target."""
    base = BASE if kernel.temper == "likelihood" else 0.0 if kernel.model.log_jacobian is None else 0.2
    return 1 / np.sqrt(max(kernel.model.n, 1) / np.array(kernel.temperatures) + base)


def tuning_of(kernel):
    return Tuning(jnp.asarray(1.5 * spread(kernel), kernel.dtype), None)


def start(thetas, batch, kernel):
    """The state of rungs that are at different points."""
    exact, temperatures = kernel.exact, jnp.asarray(kernel.temperatures)
    state = kernel.init(thetas[0], batch)._replace(theta=thetas)
    if not exact:
        return state

    def visit(theta, temperature):
        return kernel.local(0, temperature).visit(theta, batch)

    points = jax.vmap(visit)(thetas[:exact], temperatures[:exact])
    return state._replace(gradient=points.gradient, density=points.density)


def whole_step(key, state, batch, kernel):
    return kernel.step(key, state, batch, tuning_of(kernel))[0]


def swap_alone(key, state, batch, kernel, swap=ParallelTemperingKernel.swap):
    tried = jnp.arange(kernel.rungs - 1) % 2 == state.scan % 2
    after, _ = swap(kernel, kernel.randomness(key).swap, state, batch, tried)
    return after._replace(scan=state.scan + 1)


def run(kernel, step, steps, thetas, keep=lambda state: state.theta):
    """Apply steps to independent ladders, each with its own keys and batches; returns what is kept of the last."""
    rows = rows_of(kernel)
    # Uniform subsets: slices of one fixed shuffle would be only n/m different batches.
    batching = Uniform(max(kernel.model.n, 2))

    def one(args):
        key, thetas = args

        def body(i, state):
            at = jax.random.fold_in(key, i)
            return step(jax.random.fold_in(at, 0), state, fresh_batches(at, kernel, batching, rows), kernel)

        first = start(thetas, fresh_batches(key, kernel, batching, rows), kernel)
        return keep(jax.lax.fori_loop(0, steps, body, first))

    keys = jax.random.split(jax.random.key(3), len(thetas))
    return quickly_compiled(lambda args: jax.lax.map(one, args, batch_size=min(500, len(thetas))))((keys, thetas))


def worst_distance(kernel, step, steps=4):
    """Largest distance, in standard errors, of any rung's moments and of the products of neighbours."""
    z = np.random.default_rng(7).normal(size=(STATES, kernel.rungs, kernel.dim))
    # Exact moments of the starting sample, so that only what the kernel adds is judged.
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    scale = spread(kernel)[:, None]
    ends = run(kernel, step, steps, jnp.asarray(z * scale, kernel.dtype))
    z = np.asarray(ends, float) / scale
    deviations = [z, (z**2 - 1) / np.sqrt(2), (z**4 - 3) / np.sqrt(96), z[:, 1:] * z[:, :-1]]
    return max(float(np.abs(d.mean(axis=0)).max()) for d in deviations) * np.sqrt(STATES)


RIGHT = {
    "swap, full": (FULL, swap_alone),
    "swap, batches": (BATCHES, swap_alone),
    "swap, mixed": (MIXED, swap_alone),
    "full": (FULL, whole_step),
    "density": (density_kernel(scheme="seo"), whole_step),
    "density, Langevin": (density_kernel(proposal=LANGEVIN), whole_step),
    "mixed, Langevin": (replace(MIXED, proposal=LANGEVIN), whole_step),
    "batches, Langevin": (replace(BATCHES, proposal=LANGEVIN), whole_step),
    "prior, Langevin": (PRIOR, whole_step),
    "prior, Hamiltonian": (
        kernel_of(SMALL, (1.0, 2.0, 5.0), (100,) * 3, parabola, temper="likelihood", proposal=mintmc.Hamiltonian()),
        whole_step,
    ),
    "density, Hamiltonian": (density_kernel(proposal=mintmc.Hamiltonian()), whole_step),
    "Jacobian, Langevin": (
        density_kernel(lambda x: -0.1 * jnp.sum(x**2), proposal=LANGEVIN),
        whole_step,
    ),
}


@pytest.mark.parametrize("name", mostly_slow(RIGHT, "full", "swap, mixed", "batches, Langevin"))
def test_all_targets_are_invariant(name):
    assert worst_distance(*RIGHT[name]) < LIMIT


def wrong_sign(kernel, *others):
    return replace(kernel, temperatures=kernel.temperatures[::-1]).swap(*others)


def copied(kernel, log_uniform, state, *others):
    """The hotter rung keeps its state, which is then on both."""
    after, decided = kernel.swap(log_uniform, state, *others)
    hotter = jnp.where(decided["accepted"][:, None], state.theta[1:], after.theta[1:])
    return after._replace(theta=after.theta.at[1:].set(hotter)), decided


def not_rescaled(key, state, batch, kernel):
    """The gradient of a state that changed rung is still that of its old temperature."""
    after = whole_step(key, state, batch, kernel)
    source = jnp.argmax(state.replica == after.replica[:, None], axis=1)
    t = jnp.asarray(kernel.temperatures)
    return after._replace(gradient=after.gradient * (t / t[source])[: kernel.exact, None])


def prior_tempered(key, state, batch, kernel):
    """Swaps and moves of another law than that of the rungs, whose spread is still that of the likelihood alone."""
    return whole_step(key, state, batch, replace(kernel, temper="posterior"))


def prior_in_swaps(key, state, batch, kernel):
    """Right moves, but the prior does not cancel where states change places."""
    return swap_alone(key, state, batch, replace(kernel, temper="posterior"))


BROKEN = {
    "prior tempered": (PRIOR, prior_tempered),
    "prior in swaps": (PRIOR, prior_in_swaps),
    "no penalty": (replace(BATCHES, penalised=False), swap_alone),
    "wrong sign": (FULL, partial(swap_alone, swap=wrong_sign)),
    "wrong rung": (FULL, partial(swap_alone, swap=copied)),
    "gradient of another temperature": (density_kernel(proposal=LANGEVIN), not_rescaled),
}


@pytest.mark.parametrize("name", mostly_slow(BROKEN, "no penalty", "gradient of another temperature"))
def test_a_broken_twin_is_caught(name):
    assert worst_distance(*BROKEN[name], steps=6) > LIMIT


@pytest.mark.parametrize("kernel", [density_kernel(proposal=LANGEVIN), replace(MIXED, proposal=LANGEVIN)])
def test_what_is_kept_of_a_state_belongs_to_it(kernel):
    z = np.random.default_rng(1).normal(size=(50, kernel.rungs, kernel.dim)) * spread(kernel)[:, None]
    states = run(kernel, whole_step, 9, jnp.asarray(z, kernel.dtype), keep=lambda state: state)
    batch = {"all": rows_of(kernel), **dict.fromkeys(kernel.batches.keys() - {"all"})}
    fresh = quickly_compiled(jax.vmap(lambda theta: start(theta, batch, kernel)))(states.theta)
    assert np.mean(np.asarray(states.replica) != np.arange(kernel.rungs)) > 0.3
    np.testing.assert_allclose(states.gradient, fresh.gradient, rtol=1e-3, atol=1e-3)
    here = jax.tree.map(lambda leaf: leaf[:, : kernel.exact], states.density)
    _, likelihood = here.minus(fresh.density)
    np.testing.assert_allclose(likelihood, 0, atol=1e-3)
    np.testing.assert_allclose(states.density.prior, fresh.density.prior, rtol=1e-5)


def infos_of(kernel):
    """What an even and an odd scan report."""
    rows = rows_of(kernel)
    batch = {role: jax.tree.map(lambda leaf, m=m: leaf[:m], rows) for role, m in kernel.batches.items()}
    thetas = jnp.asarray(spread(kernel)[:, None] * np.ones(kernel.dim), kernel.dtype)

    def step(scan):
        state = start(thetas, batch, kernel)._replace(scan=scan)
        return kernel.step(jax.random.key(0), state, batch, tuning_of(kernel))[1]

    step = quickly_compiled(step)
    return [step(jnp.asarray(scan)) for scan in (0, 1)]


@pytest.mark.parametrize(("proposal", "reads"), [(mintmc.RandomWalk(), 2), (LANGEVIN, 4)])
def test_data_are_counted(proposal, reads):
    full, mixed, on_batches = (replace(kernel, proposal=proposal) for kernel in (FULL, MIXED, BATCHES))
    local = 2 * N + reads * (50 + 30)
    # Even scans swap pairs 0 (free) and 2 (two states on 50 rows), odd ones pair 1 (a full pass).
    assert [count.total(info["data_touched"]) for info in infos_of(mixed)] == [local + 2 * 50, local + N]
    assert [count.total(info["data_touched"]) for info in infos_of(on_batches)] == [reads * 130 + 100] * 2
    kernels = (full, mixed, on_batches, density_kernel())
    assert [kernel.touched for kernel in kernels] == [300, None, None, 0]
    assert [kernel.init_touched for kernel in kernels] == [100, N, 0, 0]


def test_pairs_of_one_parity_are_tried_in_turn():
    infos = infos_of(MIXED)
    expected = [[1, 0, 1], [0, 1, 0]]
    np.testing.assert_array_equal([info["swaps"] for info in infos], expected)
    np.testing.assert_array_equal([info["swap_rate"] > 0 for info in infos], expected)
    # Only the last pair is noisy.
    np.testing.assert_array_equal([info["swap_noise"] > 0 for info in infos], [[0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal([info["rung_noise"] > 0 for info in infos], [[0, 0, 1, 1]] * 2)


@pytest.mark.slow
def test_energies_are_counted_from_the_reference():
    """Exact where all data are read; on a batch unbiased, and of the state before the move."""
    kernel = replace(MIXED, proposal=mintmc.Custom(lambda key, theta: theta))
    thetas = jnp.asarray(np.random.default_rng(2).normal(size=(4, 1)) * spread(kernel)[:, None], jnp.float32)
    batching, rows = Uniform(N), rows_of(kernel)

    def energies(key):
        batch = fresh_batches(key, kernel, batching, rows)
        state, info = kernel.step(key, start(thetas, batch, kernel), batch, tuning_of(kernel))
        return info["rung_energy"], state.theta

    drawn, after = quickly_compiled(jax.vmap(energies))(jax.random.split(jax.random.key(1), 4000))

    def exact(theta):
        return 0.5 * N * (np.asarray(theta, float)[..., 0] ** 2 - 0.05**2)

    np.testing.assert_allclose(drawn[:, :2], exact(after[:, :2]), atol=1e-3)
    error = np.std(drawn[:, 2:], axis=0) / np.sqrt(4000)
    assert (np.abs(np.mean(drawn[:, 2:], axis=0) - exact(thetas[2:])) < LIMIT * error).all()


MODES = mintmc.Posterior.from_density(
    lambda x: jnp.logaddexp(jnp.log(0.3) - 0.5 * jnp.sum((x - 5) ** 2), jnp.log(0.7) - 0.5 * jnp.sum((x + 5) ** 2))
)


@pytest.mark.slow
def test_two_modes():
    sampler = ParallelTempering(mintmc.Ladder.geometric(hottest=40, rungs=5))
    # Every chain starts in the smaller mode, 14 standard deviations away from the other.
    settings = {"draws": 20_000, "warmup": 1000, "chains": 4, "progress": False, "seed": 4}
    tree = mintmc.sample(MODES, sampler, init=lambda key: jnp.full(2, 5.0), **settings)
    x = tree.posterior["theta"].values
    assert distance(x[..., 0] > 0, 0.3) < LIMIT
    assert distance(x[..., 1], 0.3 * 5 - 0.7 * 5) < LIMIT
    assert distance(x[..., 0] ** 2, 1 + 25) < LIMIT
    assert distance(x[..., 0] * x[..., 1], 25) < LIMIT
    # Within a mode, so that the weights do not hide it.
    assert distance((np.abs(x[..., 0]) - 5) ** 2, 1) < LIMIT
    np.testing.assert_allclose(tree.sample_stats["energy"], tree["ladder"]["energy"][0], rtol=1e-5)
    assert (tree["ladder"]["round_trips"] > 100).all()
    # Every rung has a step of its own.
    np.testing.assert_allclose(tree["ladder"]["acceptance_rate"], sampler.proposal.target_acceptance, atol=0.08)


@pytest.mark.slow
def test_batches_through_the_runner():
    """Rung 0 reads all data, the others batches; all are right, and rung 0 is recorded."""
    x = gaussian_data(400)
    posterior = mintmc.Posterior(gaussian_log_likelihood, x)
    sampler = ParallelTempering(mintmc.Ladder([1, 3, 10], [None, 100, 50]))
    tree = mintmc.sample(posterior, sampler, init=0.1, draws=4000, warmup=500, chains=4, progress=False, seed=1)
    theta = tree.posterior["theta"].values
    assert distance(theta * np.sqrt(400), 0) < LIMIT
    assert distance(theta**2 * 400, 1) < LIMIT
    # Energies are T/2 above the minimum on average, and counted from where the chains start.
    energy = tree["ladder"]["energy"].values + 0.5 * 400 * 0.1**2
    for rung, temperature in enumerate(sampler.ladder.temperatures):
        assert distance(energy[rung], temperature / 2) < LIMIT


MISTAKES = {
    # name: (what to call, error, what the message says)
    "no ladder": (lambda: ParallelTempering([1, 2]), TypeError, r"ladder must be a mintmc.Ladder, got \[1, 2\]"),
    "scheme": (lambda: pt_on(scheme="even"), ValueError, "scheme must be one of 'deo', 'seo', got 'even'"),
    "penalty": (lambda: pt_on(penalty=1), TypeError, "penalty must be True or False, got 1"),
    "batching": (lambda: pt_on(batching="all"), ValueError, "batching must be one of .*, got 'all'"),
    "large batch": (lambda: checked(pt_on(sizes=[None, 200])), ValueError, r"in \[2, n=100\], got 200"),
    "reference": (lambda: checked(pt_on(reference=jnp.zeros(2))), ValueError, "reference must have 1 .*, got 2"),
    "proposal": (lambda: checked(pt_on(proposal="walk")), TypeError, "proposal must be .*, got 'walk'"),
    "batches of a density": (
        lambda: pt_on(sizes=[None, 20]).check(MODES, jnp.zeros(2)),
        ValueError,
        "batch_sizes must be None for a density without data, got 20",
    ),
}


def pt_on(sizes=None, **settings):
    return ParallelTempering(mintmc.Ladder([1, 2], sizes), **settings)


def checked(sampler):
    sampler.check(mintmc.Posterior(gaussian_log_likelihood, gaussian_data(100)), 0.0)


test_mistakes_are_refused = each_refused(MISTAKES)


@pytest.mark.parametrize(("sizes", "lie_beside", "touched"), [([None, 50], True, 200), ([None, 100], False, 100)])
def test_only_batches_need_rows_beside_their_likelihoods(sizes, lie_beside, touched):
    """One pass for the reference's own density, one more for every row by itself where a rung reads batches."""
    target = mintmc.Posterior(gaussian_log_likelihood, SMALL).flat(0.0)
    reference = Reference.of(target, mintmc.Ladder([1, 2], sizes), at=0.05, example=0.0, temper=None)
    assert isinstance(reference.target.posterior.rows, Referenced) == lie_beside
    assert (reference.target is target) != lie_beside
    assert reference.touched == touched
    np.testing.assert_allclose(reference.energy, 0.5 * 100 * (1 + 0.05**2), rtol=1e-5)


def test_a_density_without_data_is_counted_from_zero():
    reference = Reference.of(MODES.flat(jnp.zeros(2)), mintmc.Ladder([1, 2]), None, jnp.zeros(2), None)
    assert (reference.energy, reference.touched, reference.energy_of) == (0.0, 0, "posterior")
