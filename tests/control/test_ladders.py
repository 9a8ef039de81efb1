"""Cold rungs on batches: a ladder whose batches estimate only what expansions around both modes leave, at T = 1."""

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.control import atlas
from mistakes import each_refused
from truth import LIMIT, distance

N, APART = 2000, 1.5
RNG = np.random.default_rng(4)
X = (RNG.normal(size=N) + APART * np.where(RNG.random(N) < 0.5, 1, -1)).astype(np.float32)


def log_likelihood(theta, x):
    """A mixture of normals at theta and -theta: two modes, alike but for the prior."""
    return jnp.logaddexp(-0.5 * (x - theta) ** 2, -0.5 * (x + theta) ** 2)


def log_prior(theta):
    return 0.3 * theta - 0.5 * theta**2 / 4


LADDER = mintmc.Ladder([1, 4, 16, 64, 256], [300, 200, 100, 100, 100])
STARTS = mintmc.PerChain(np.array([-1.5, 1.5, -1.4, 1.4]))


def posterior():
    return mintmc.Posterior(log_likelihood, X, log_prior)


def exact():
    """Mean, second moment and the probability of the left mode, over a grid."""
    grid = np.linspace(-3, 3, 6001)
    levels = np.array([np.logaddexp(-0.5 * (X - t) ** 2, -0.5 * (X + t) ** 2).sum(dtype=float) for t in grid])
    levels += 0.3 * grid - grid**2 / 8
    weights = np.exp(levels - levels.max())
    weights /= weights.sum()
    return weights @ grid, weights @ np.abs(grid), weights @ grid**2, weights[grid < 0].sum()


def run(target, init=STARTS, control=None, **settings):
    sampler = mintmc.ParallelTempering(LADDER, control=control or mintmc.Taylor())
    given = {"draws": 8000, "warmup": 500, "chains": 4, "progress": False} | settings
    return mintmc.sample(target, sampler, init=init, **given)


def errors(tree):
    theta = tree.posterior.theta.values.astype(float)
    values = (theta, np.abs(theta), theta**2, theta < 0)
    return [distance(value, truth) for value, truth in zip(values, exact(), strict=True)]


@pytest.mark.slow
def test_a_ladder_on_batches_alone_samples_the_posterior():
    tree = run(posterior())
    assert max(errors(tree)) < LIMIT
    assert len(tree.attrs["centres"]) == 2
    noise = tree["ladder"]["log_ratio_noise"].values
    assert noise.max() < 1, noise  # without control rung 0 alone has a noise of about N / 300 times that of its moves
    assert (tree["sample_stats"]["data_touched"] < 10 * sum(LADDER.batch_sizes)).all()


@pytest.mark.slow
def test_levels_of_another_centre_would_be_caught(monkeypatch):
    """The broken twin: the atlas forgets how much lower one mode is than the other."""

    def forgetful(*args):
        made = atlas(*args)
        return made._replace(level=made.level + jnp.arange(len(made.level)))

    monkeypatch.setattr("mintmc.samplers.charted.atlas", forgetful)
    assert max(errors(run(posterior()))) > LIMIT


@pytest.mark.slow
def test_without_a_centre_in_a_mode_it_is_told():
    """All chains start in one mode: the other one has no expansion, and the verdict does not trust the run."""
    tree = run(posterior(), init=1.5, draws=2000)
    assert len(tree.attrs["centres"]) == 1
    assert not mintmc.diagnose(tree).trusted


MISTAKES = {
    "order": (
        lambda: mintmc.ParallelTempering(LADDER, control=mintmc.Taylor(order=1)),
        "control.order must be 2 on a ladder, got 1",
    ),
    "kind": (lambda: mintmc.ParallelTempering(LADDER, control=3), TypeError, "control must be a Taylor, or None"),
    "no batches": (
        lambda: mintmc.sample(
            posterior(), mintmc.ParallelTempering(mintmc.Ladder([1, 2]), control=mintmc.Taylor()), init=0.5
        ),
        "control is for rungs on batches",
    ),
    "no data": (
        lambda: mintmc.sample(
            mintmc.Posterior.from_density(lambda x: -(x**2)),
            mintmc.ParallelTempering(mintmc.Ladder([1, 2]), control=mintmc.Taylor()),
            init=0.5,
        ),
        "posterior must have data",
    ),
}
test_a_mistake_is_refused = each_refused(MISTAKES)


@pytest.mark.slow
def test_a_ladder_on_batches_goes_on_from_a_store(tmp_path):
    target, path = posterior(), tmp_path / "run.zarr"
    run(target, draws=300, out=path)
    resumed = mintmc.resume(path, target, draws=600, progress=False)
    whole = run(target, draws=600)
    np.testing.assert_array_equal(resumed.posterior.theta, whole.posterior.theta)
