"""A leap leaves the target invariant, whatever the fits are; what is forgotten is caught."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.acceptance.exact import Exact
from mintmc.energy import Tempered
from mintmc.kernels.leap import LeapKernel
from mintmc.kernels.metropolis import MetropolisKernel
from mintmc.modes.label import Landscape
from mintmc.proposals import Leap, RandomWalk, Tuning
from truth import LIMIT

CENTRES = np.array([[-4.0, 0.0], [3.0, 2.0], [2.0, -4.0]])
WIDTHS = np.array([[1.0, 0.5], [0.3, 0.8], [0.6, 0.6]])
WEIGHTS = np.array([0.5, 0.2, 0.3])
STATES, STEPS = 40_000, 2


def log_density(x):
    each = -0.5 * (((x - CENTRES) / WIDTHS) ** 2).sum(axis=1) - jnp.log(jnp.asarray(WIDTHS)).sum(axis=1)
    return jax.nn.logsumexp(each + jnp.log(jnp.asarray(WEIGHTS)))


def drawn(seed):
    """Independent states of the target."""
    rng = np.random.default_rng(seed)
    mode = rng.choice(3, STATES, p=WEIGHTS)
    return (CENTRES[mode] + WIDTHS[mode] * rng.normal(size=(STATES, 2))).astype(np.float32)


def landscape(places=5, error=0.3, wide=1.0, seed=0):
    """Fits of the three modes that are wrong by about a third of their width, and places without a mode."""
    rng = np.random.default_rng(seed)
    mean, factor = np.zeros((places, 2)), np.stack([np.eye(2)] * places)
    mean[:3] = CENTRES + error * WIDTHS * rng.normal(size=(3, 2))
    for j in range(3):
        factor[j] = wide * np.tril(np.diag(WIDTHS[j]) + error * WIDTHS[j].min() * rng.uniform(-0.5, 0.5, (2, 2)))
    weight = np.array([0.3, 0.3, 0.4] + [0.0] * (places - 3))
    with np.errstate(divide="ignore"):
        arrays = (mean, factor, np.linalg.inv(factor), np.log(weight))
    return Landscape(*(jnp.asarray(array, jnp.float32) for array in arrays))


def kernel(leap=None):
    target = mintmc.Posterior.from_density(log_density).flat(np.zeros(2, np.float32))
    walk = RandomWalk(step_size=0.2)
    local = MetropolisKernel(Tempered(target.model, 1.0), walk, Exact(), 0, 2, jnp.float32)
    return LeapKernel(local) if leap is None else replace(local, proposal=leap)


def errors(states):
    """Distances of the weights and moments of independent states from the exact ones, in standard errors."""
    label = np.linalg.norm((states[:, None] - CENTRES) / WIDTHS, axis=2).argmin(axis=1)
    exact_mean = WEIGHTS @ CENTRES
    exact_square = WEIGHTS @ (CENTRES**2 + WIDTHS**2)
    values = [(label == j, WEIGHTS[j]) for j in range(3)]
    values += [(states[:, i], exact_mean[i]) for i in range(2)] + [
        (states[:, i] ** 2, exact_square[i]) for i in range(2)
    ]
    return [abs(np.mean(v) - exact) / (np.std(v) / np.sqrt(STATES)) for v, exact in values]


def after(step, modes=None, seed=1):
    """Independent states of the target after a few steps."""
    modes = landscape() if modes is None else modes
    tuning = Tuning(jnp.asarray(0.2), None, modes=modes)

    def chain(key, theta):
        state = step.init(theta, {"all": None})

        def one(i, state):
            return step.step(jax.random.fold_in(key, i), state, {"all": None, "modes": modes}, tuning)[0]

        return step.position(jax.lax.fori_loop(0, STEPS, one, state))

    return np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(seed), STATES), drawn(seed)), float)


@pytest.mark.parametrize("independent", [False, True], ids=["affine", "independent"])
def test_a_leap_leaves_the_target_invariant(independent):
    assert max(errors(after(kernel(Leap(independent))))) < LIMIT


def test_local_moves_and_leaps_together_do():
    assert max(errors(after(kernel()))) < LIMIT


@dataclass(frozen=True)
class NoJacobian(Leap):
    def move(self, randomness, here, visit, tuning):
        there, log_q = super().move(randomness, here, visit, tuning)
        return there, jnp.where(jnp.isfinite(log_q), 0.0, log_q)


@dataclass(frozen=True)
class NoLabel(Leap):
    def move(self, randomness, here, visit, tuning):
        modes = tuning.modes
        mode = modes.log_weighted(here.theta).argmax()
        to = modes.other(randomness.uniform, mode)
        return visit(modes.carried(here.theta, mode, to)), modes.log_volume[to] - modes.log_volume[mode]


@dataclass(frozen=True)
class ChangedFit(Leap):
    def move(self, randomness, here, visit, tuning):
        shift = jnp.where(here.theta[0] < 0, 0.5, 0.0)  # a fit that follows the chain
        modes = tuning.modes._replace(mean=tuning.modes.mean + shift)
        return super().move(randomness, here, visit, tuning._replace(modes=modes))


@pytest.mark.parametrize("broken", [NoJacobian(), NoLabel(), ChangedFit()], ids=lambda leap: type(leap).__name__)
def test_a_broken_twin_is_caught(broken):
    # Overlapping fits, so that a label that is not checked matters.
    modes = landscape(wide=15.0) if isinstance(broken, NoLabel) else landscape()
    assert max(errors(after(kernel(broken), modes))) > LIMIT


def test_the_right_leap_is_right_where_fits_overlap():
    assert max(errors(after(kernel(Leap()), landscape(wide=15.0)))) < LIMIT


def test_one_mode_alone_leaves_states_where_they_are():
    only = landscape()._replace(log_weight=jnp.asarray([0.0] + [-jnp.inf] * 4))
    np.testing.assert_array_equal(after(kernel(Leap()), only), drawn(1).astype(float))


def test_the_carried_state_comes_back():
    modes, theta = landscape(), jnp.asarray([-4.3, 0.2])
    there = modes.carried(theta, 0, 2)
    np.testing.assert_allclose(modes.carried(there, 2, 0), theta, rtol=1e-5)
