"""Parallel tempering against truth: draw all rungs from their targets, move and swap, compare.

Rung k of the Gaussian mean is N(0, T_k / n) exactly, and differences of log-likelihoods are normal, so that swaps on
batches are exact with the penalty.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.data import Uniform, open_batches
from mintmc.energy import Density, Referenced, Tempered
from mintmc.kernels import metropolis
from mintmc.kernels import parallel_tempering as pt
from mintmc.proposals import Tuning
from mintmc.samplers.parallel_tempering import ParallelTempering
from truth import LIMIT, distance, gaussian_data, gaussian_log_likelihood

N, STATES, BASE = 500, 20_000, 200.0
ROWS = jnp.asarray(gaussian_data(N))
SMALL = jnp.asarray(gaussian_data(100))


def flat(theta):
    return jnp.zeros((), theta.dtype)


def parabola(theta):
    """A normal prior, or what stands for a Jacobian, worth BASE observations."""
    return -0.5 * BASE * jnp.sum(theta**2)


def gaussian_mean(rows, log_prior=None):
    """The model on rows beside their log-likelihoods at a reference state, and that state's density."""
    posterior = mintmc.Posterior(gaussian_log_likelihood, rows, log_prior)
    model = posterior.model(lambda theta: theta[0], 1)
    at = jnp.array([0.05])
    return model, Referenced(rows, model.each(at, rows)), model.density(at, rows)


def settings_of(rows, temperatures, sizes, log_prior=None, **changes):
    model, _, reference = gaussian_mean(rows, log_prior)
    settings = pt.Settings(
        model, mintmc.RandomWalk(), reference, temperatures, sizes, "deo", True, 1, jnp.zeros(()).dtype
    )
    return settings._replace(**changes)


def density_settings(log_jacobian=None, **changes):
    """Two-dimensional standard normal density without data, tempered."""
    density = mintmc.Posterior.from_density(lambda x: -0.5 * jnp.sum(x**2), log_jacobian)
    model = density.model(lambda theta: theta, 2)
    settings = settings_of(SMALL, (1.0, 2.0, 5.0), (0, 0, 0), model=model, dim=2)
    return settings._replace(reference=Density(*jnp.zeros(3)), **changes)


# n_eff = 100, 50, 20, 10. On 50 rows the noise of a swap is about n (1/T_i - 1/T_{i+1})^2 (T_i + T_{i+1}) / 50 = 1.5.
BATCHES = settings_of(ROWS, (5.0, 10.0, 25.0), (50, 50, 30))
MIXED = settings_of(ROWS, (5.0, 10.0, 25.0, 50.0), (N, N, 50, 30))
FULL = settings_of(SMALL, (1.0, 2.0, 5.0), (100,) * 3)
LANGEVIN = mintmc.Langevin()
PRIOR = settings_of(ROWS, (5.0, 10.0, 25.0, 50.0), (N, N, 50, 30), parabola, temper="likelihood", proposal=LANGEVIN)


def rows_of(settings):
    rows = {N: ROWS, 100: SMALL, 0: None}[settings.model.n]
    return None if rows is None else gaussian_mean(rows)[1]


def spread(settings):
    """Standard deviation of each rung's target."""
    base = BASE if settings.temper == "likelihood" else 0.0 if settings.model.log_jacobian is None else 0.2
    return 1 / np.sqrt(max(settings.model.n, 1) / np.array(settings.temperatures) + base)


def tuning_of(settings):
    return Tuning(jnp.asarray(1.5 * spread(settings), settings.dtype), None)


def start(thetas, batch, settings):
    """The state of rungs that are at different points."""
    exact, temperatures = settings.exact, jnp.asarray(settings.temperatures)

    def visit(theta, temperature):
        target = Tempered(settings.model, temperature, settings.temper)
        local = metropolis.Settings(target, settings.proposal, None, settings.model.n, settings.dim, settings.dtype)
        return metropolis.visit(theta, batch, local)

    state = pt.init(thetas[0], batch, settings)._replace(theta=thetas)
    if not exact:
        return state
    points = jax.vmap(visit)(thetas[:exact], temperatures[:exact])
    return state._replace(gradient=points.gradient, density=points.density)


def whole_step(key, state, batch, settings):
    return pt.kernel(settings).step(key, state, batch, tuning_of(settings))[0]


def swap_alone(key, state, batch, settings, swap=pt.swap):
    noise = pt.randomness(key, settings)
    tried = jnp.arange(settings.rungs - 1) % 2 == state.scan % 2
    after, _ = swap(noise.swap, state, batch, tried, settings)
    return after._replace(scan=state.scan + 1)


def run(settings, step, steps, thetas, keep=lambda state: state.theta):
    """Apply steps to independent ladders, each with its own keys and batches; returns what is kept of the last."""
    sizes, rows = pt.batches(settings), rows_of(settings)
    # Uniform subsets: slices of one fixed shuffle would be only n/m different batches.
    batching = Uniform(max(settings.model.n, 2))

    def one(args):
        key, thetas = args

        def batch(key):
            tickets = {role: batching.ticket(jax.random.fold_in(key, i)) for i, role in enumerate(sizes, start=1)}
            return open_batches(sizes, batching, rows, tickets)

        def body(i, state):
            at = jax.random.fold_in(key, i)
            return step(jax.random.fold_in(at, 0), state, batch(at), settings)

        return keep(jax.lax.fori_loop(0, steps, body, start(thetas, batch(key), settings)))

    keys = jax.random.split(jax.random.key(3), len(thetas))
    return jax.jit(lambda args: jax.lax.map(one, args, batch_size=500))((keys, thetas))


def worst_distance(settings, step, steps=4):
    """Largest distance, in standard errors, of any rung's moments and of the products of neighbours."""
    z = np.random.default_rng(7).normal(size=(STATES, settings.rungs, settings.dim))
    # Exact moments of the starting sample, so that only what the kernel adds is judged.
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    scale = spread(settings)[:, None]
    ends = run(settings, step, steps, jnp.asarray(z * scale, settings.dtype))
    z = np.asarray(ends, float) / scale
    deviations = [z, (z**2 - 1) / np.sqrt(2), (z**4 - 3) / np.sqrt(96), z[:, 1:] * z[:, :-1]]
    return max(float(np.abs(d.mean(axis=0)).max()) for d in deviations) * np.sqrt(STATES)


RIGHT = {
    "swap, full": (FULL, swap_alone),
    "swap, batches": (BATCHES, swap_alone),
    "swap, mixed": (MIXED, swap_alone),
    "full": (FULL, whole_step),
    "density": (density_settings(scheme="seo"), whole_step),
    "density, Langevin": (density_settings(proposal=LANGEVIN), whole_step),
    "mixed, Langevin": (MIXED._replace(proposal=LANGEVIN), whole_step),
    "batches, Langevin": (BATCHES._replace(proposal=LANGEVIN), whole_step),
    "prior, Langevin": (PRIOR, whole_step),
    "Jacobian, Langevin": (
        density_settings(lambda x: -0.1 * jnp.sum(x**2), proposal=LANGEVIN),
        whole_step,
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_all_targets_are_invariant(name):
    assert worst_distance(*RIGHT[name]) < LIMIT


def wrong_sign(noise, state, batch, tried, settings):
    return pt.swap(noise, state, batch, tried, settings._replace(temperatures=settings.temperatures[::-1]))


def copied(noise, state, batch, tried, settings):
    """The hotter rung keeps its state, which is then on both."""
    after, decision = pt.swap(noise, state, batch, tried, settings)
    hotter = jnp.where(decision.accepted[:, None], state.theta[1:], after.theta[1:])
    return after._replace(theta=after.theta.at[1:].set(hotter)), decision


def not_rescaled(key, state, batch, settings):
    """The gradient of a state that changed rung is still that of its old temperature."""
    after = whole_step(key, state, batch, settings)
    source = jnp.argmax(state.replica == after.replica[:, None], axis=1)
    t = jnp.asarray(settings.temperatures)
    return after._replace(gradient=after.gradient * (t / t[source])[: settings.exact, None])


def prior_tempered(key, state, batch, settings):
    """Swaps and moves of another law than that of the rungs, whose spread is still that of the likelihood alone."""
    return whole_step(key, state, batch, settings._replace(temper="posterior"))


def prior_in_swaps(key, state, batch, settings):
    """Right moves, but the prior does not cancel where states change places."""
    return swap_alone(key, state, batch, settings._replace(temper="posterior"))


BROKEN = {
    "prior tempered": (PRIOR, prior_tempered),
    "prior in swaps": (PRIOR, prior_in_swaps),
    "no penalty": (BATCHES._replace(penalised=False), swap_alone),
    "wrong sign": (FULL, partial(swap_alone, swap=wrong_sign)),
    "wrong rung": (FULL, partial(swap_alone, swap=copied)),
    "gradient of another temperature": (density_settings(proposal=LANGEVIN), not_rescaled),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_twin_is_caught(name):
    assert worst_distance(*BROKEN[name], steps=6) > LIMIT


@pytest.mark.parametrize("settings", [density_settings(proposal=LANGEVIN), MIXED._replace(proposal=LANGEVIN)])
def test_what_is_kept_of_a_state_belongs_to_it(settings):
    z = np.random.default_rng(1).normal(size=(50, settings.rungs, settings.dim)) * spread(settings)[:, None]
    states = run(settings, whole_step, 9, jnp.asarray(z, settings.dtype), keep=lambda state: state)
    batch = {"all": rows_of(settings), **dict.fromkeys(pt.batches(settings).keys() - {"all"})}
    fresh = jax.jit(jax.vmap(lambda theta: start(theta, batch, settings)))(states.theta)
    assert np.mean(np.asarray(states.replica) != np.arange(settings.rungs)) > 0.3
    np.testing.assert_allclose(states.gradient, fresh.gradient, rtol=1e-3, atol=1e-3)
    here = jax.tree.map(lambda leaf: leaf[:, : settings.exact], states.density)
    _, likelihood = here.minus(fresh.density)
    np.testing.assert_allclose(likelihood, 0, atol=1e-3)
    np.testing.assert_allclose(states.density.prior, fresh.density.prior, rtol=1e-5)


def infos_of(settings):
    """What an even and an odd scan report."""
    kernel, rows = pt.kernel(settings), rows_of(settings)
    batch = {role: jax.tree.map(lambda leaf, m=m: leaf[:m], rows) for role, m in kernel.batches.items()}

    thetas = jnp.asarray(spread(settings)[:, None] * np.ones(settings.dim), settings.dtype)

    def step(scan):
        state = start(thetas, batch, settings)._replace(scan=scan)
        return kernel.step(jax.random.key(0), state, batch, tuning_of(settings))[1]

    step = jax.jit(step)
    return [step(jnp.asarray(scan)) for scan in (0, 1)]


@pytest.mark.parametrize(("proposal", "reads"), [(mintmc.RandomWalk(), 2), (LANGEVIN, 4)])
def test_data_are_counted(proposal, reads):
    settings = MIXED._replace(proposal=proposal)
    local = 2 * N + reads * (50 + 30)
    # Even scans swap pairs 0 (free) and 2 (two states on 50 rows), odd ones pair 1 (a full pass).
    assert [int(info.data_touched) for info in infos_of(settings)] == [local + 2 * 50, local + N]
    on_batches = BATCHES._replace(proposal=proposal)
    assert [int(info.data_touched) for info in infos_of(on_batches)] == [reads * 130 + 100] * 2
    kernels = [pt.kernel(each._replace(proposal=proposal)) for each in (FULL, settings, on_batches, density_settings())]
    assert [kernel.touched for kernel in kernels] == [300, None, None, 0]
    assert [kernel.init_touched for kernel in kernels] == [100, N, 0, 0]


def test_pairs_of_one_parity_are_tried_in_turn():
    extras = [info.extras for info in infos_of(MIXED)]
    expected = [[1, 0, 1], [0, 1, 0]]
    np.testing.assert_array_equal([each["swaps"] for each in extras], expected)
    np.testing.assert_array_equal([each["swap_rate"] > 0 for each in extras], expected)
    # Only the last pair is noisy.
    np.testing.assert_array_equal([each["swap_noise"] > 0 for each in extras], [[0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal([each["rung_noise"] > 0 for each in extras], [[0, 0, 1, 1]] * 2)


def test_energies_are_counted_from_the_reference():
    """Exact where all data are read; on a batch unbiased, and of the state before the move."""
    settings = MIXED._replace(proposal=mintmc.Custom(lambda key, theta: theta))
    thetas = jnp.asarray(np.random.default_rng(2).normal(size=(1, 4, 1)) * spread(settings)[:, None], jnp.float32)
    batching, rows = Uniform(N), rows_of(settings)

    def energies(key):
        tickets = {role: batching.ticket(jax.random.fold_in(key, i)) for i, role in enumerate(pt.batches(settings))}
        batch = open_batches(pt.batches(settings), batching, rows, tickets)
        state, info = pt.kernel(settings).step(key, start(thetas[0], batch, settings), batch, tuning_of(settings))
        return info.snapshot["rung_energy"], state.theta

    drawn, after = jax.jit(jax.vmap(energies))(jax.random.split(jax.random.key(1), 4000))

    def exact(theta):
        return 0.5 * N * (np.asarray(theta, float)[..., 0] ** 2 - 0.05**2)

    np.testing.assert_allclose(drawn[:, :2], exact(after[:, :2]), atol=1e-3)
    error = np.std(drawn[:, 2:], axis=0) / np.sqrt(4000)
    assert (np.abs(np.mean(drawn[:, 2:], axis=0) - exact(thetas[0, 2:])) < LIMIT * error).all()


MODES = mintmc.Posterior.from_density(
    lambda x: jnp.logaddexp(jnp.log(0.3) - 0.5 * jnp.sum((x - 5) ** 2), jnp.log(0.7) - 0.5 * jnp.sum((x + 5) ** 2))
)


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


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused(name):
    call, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        call()


def test_only_batches_need_a_reference():
    assert pt_on([None, 50]).needs_reference(100)
    assert not pt_on([None, 100]).needs_reference(100)
    assert not pt_on().needs_reference(0)
