"""NUTS through BlackJAX: the law on all data, what it costs, and where it is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mistakes import each_refused

LONG, SHORT, TIE = 3.0, 0.5, 0.6
COVARIANCE = np.array([[LONG**2, TIE * LONG * SHORT], [TIE * LONG * SHORT, SHORT**2]])
PRECISION = jnp.asarray(np.linalg.inv(COVARIANCE), jnp.float32)
DENSITY = mintmc.Posterior.from_density(lambda x: -0.5 * x @ PRECISION @ x)


def errors_of(tree, temperature=1.0):
    """How far the squares of both coordinates and their product are from exact, in standard errors."""
    group = "posterior" if temperature == 1 else "tempered_posterior"
    x = tree[group]["theta"].values.astype(float)
    found = np.stack([x[..., 0] ** 2, x[..., 1] ** 2, x[..., 0] * x[..., 1]], axis=-1)
    means = found.reshape(-1, found.shape[1] // 20, 3).mean(axis=1)
    exact = temperature * np.array([LONG**2, SHORT**2, COVARIANCE[0, 1]])
    return np.abs(means.mean(axis=0) - exact) / (means.std(axis=0, ddof=1) / np.sqrt(len(means)))


def run(sampler, draws=4000):
    return mintmc.sample(DENSITY, sampler, init=np.zeros(2), draws=draws, warmup=500, chains=2, progress=False)


class Flattened(mintmc.NUTS):
    """The broken twin: its trajectories compare densities at twice the temperature."""

    def transition(self, randomness, here, visit, log_ratio, tuning):
        return super().transition(randomness, here, visit, lambda a, b: 0.5 * log_ratio(a, b), tuning)


def test_the_law_is_exact():
    tree = run(mintmc.MetropolisHastings(mintmc.NUTS()))
    assert errors_of(tree).max() < 4
    assert mintmc.diagnose(tree).trusted
    assert not tree.sample_stats["diverging"].any()


@pytest.mark.slow
def test_the_broken_twin_fails():
    assert errors_of(run(mintmc.MetropolisHastings(Flattened()))).max() > 4


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.0, 5.0])
def test_rungs_of_a_ladder_move_by_it(temperature):
    sampler = mintmc.ParallelTempering(mintmc.Ladder([1.0, 5.0]), proposal=mintmc.NUTS())
    if temperature != 1:
        sampler = mintmc.MetropolisHastings(mintmc.NUTS(), temperature=temperature)
    assert errors_of(run(sampler), temperature).max() < 4


def test_every_state_of_a_trajectory_is_counted():
    x = np.random.default_rng(0).normal(size=50).astype(np.float32)
    posterior = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    sampler = mintmc.MetropolisHastings(mintmc.NUTS(step_size=0.05, max_doublings=2))
    tree = mintmc.sample(posterior, sampler, init=0.0, draws=200, warmup=0, chains=1, progress=False)
    # One, three steps, each on all rows, and the state drawn once more: never more than four steps and that one.
    passes = tree.sample_stats["data_touched"].values / 50
    assert set(np.unique(passes)) <= {2.0, 4.0}
    assert passes.mean() > 3.5


@pytest.mark.slow
def test_divergences_are_told():
    funnel = mintmc.Posterior.from_density(
        lambda x: -0.5 * x[0] ** 2 / 9 - 0.5 * (x[1] * jnp.exp(-x[0] / 2)) ** 2 - x[0] / 2
    )
    sampler = mintmc.MetropolisHastings(mintmc.NUTS(step_size=1.5))
    tree = mintmc.sample(funnel, sampler, init=np.zeros(2), draws=1000, warmup=0, chains=2, progress=False)
    assert tree.sample_stats["diverging"].sum() > 0
    verdict = mintmc.diagnose(tree)
    assert not verdict.trusted
    assert any("diverge" in warning for warning in verdict.warnings)


X = np.zeros(100, np.float32)
POSTERIOR = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, X)
test_a_mistake_is_refused = each_refused(
    {
        "doublings": (lambda: mintmc.NUTS(max_doublings=99), r"max_doublings must be in \[1, 15\], got 99"),
        "step": (lambda: mintmc.NUTS(-1.0), "step_size must be"),
        "batches": (
            lambda: mintmc.sample(POSTERIOR, mintmc.MINT(10, alpha=0.5, proposal=mintmc.NUTS()), init=0.0),
            "proposal NUTS decides on all data by itself, got batches of 10 rows",
        ),
        "batches on a rung": (
            lambda: mintmc.sample(
                POSTERIOR,
                mintmc.ParallelTempering(mintmc.Ladder([1, 20], [None, 10]), proposal=mintmc.NUTS()),
                init=0.0,
            ),
            "proposal NUTS decides on all data by itself, got batches of 10 rows",
        ),
    }
)
