"""What is recorded of a run on a ladder for those who judge it: starts, lowest states, the hot end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.ladder.reference import Reference
from mintmc.run.landmarks import Landmarks
from mintmc.run.task import Task
from truth import gaussian_data, gaussian_log_likelihood, mostly_slow

X, SCALE = gaussian_data(200), 0.3
POSTERIOR = mintmc.Posterior(gaussian_log_likelihood, X, lambda mean: -0.5 * (mean / SCALE) ** 2)
STARTS = np.array([0.3, -0.2], np.float32)
LADDER = mintmc.Ladder([1, 10, 100], [None, None, 60])
SAMPLERS = {
    "equi-energy": mintmc.EquiEnergy(LADDER, round_length=100, share_rings=True),
    "equi-energy, posterior": mintmc.EquiEnergy(LADDER, round_length=100, temper="posterior"),
    "parallel tempering": mintmc.ParallelTempering(LADDER),
}


def energy(theta, with_prior):
    """Above that of the reference, the first start; the data have mean 0 exactly."""
    exact = 0.5 * len(X) * (theta**2 - STARTS[0].astype(float) ** 2)
    return exact + with_prior * 0.5 * (theta**2 - STARTS[0].astype(float) ** 2) / SCALE**2


@pytest.mark.parametrize("name", mostly_slow(SAMPLERS, "parallel tempering"))
def test_landmarks(name):
    tree = mintmc.sample(
        POSTERIOR, SAMPLERS[name], init=mintmc.PerChain(STARTS), draws=2000, warmup=300, chains=2, progress=False
    )
    ladder, with_prior = tree.ladder, name.endswith("posterior")
    assert ladder.attrs["energy_of"] == ("posterior" if with_prior else "likelihood")
    np.testing.assert_array_equal(tree.start.theta, STARTS)
    np.testing.assert_allclose(ladder.start_energy, energy(STARTS.astype(float), with_prior), atol=1e-3)
    # The reference is the first start: energies are counted from its own.
    np.testing.assert_allclose(
        ladder.attrs["reference_energy"], 0.5 * np.sum((X - STARTS[0]) ** 2) + with_prior * 0.5, rtol=1e-5
    )
    # No draw on all data lies lower, and the state there has that energy.
    assert (ladder.lowest_energy <= ladder.energy[:2].min(["rung", "draw"])).all()
    np.testing.assert_allclose(ladder.lowest_energy, energy(ladder.lowest_state.values[:, 0], with_prior), atol=1e-3)
    np.testing.assert_allclose(ladder.energy[0], energy(tree.posterior.theta.values, with_prior), atol=1e-3)
    # The hottest rung has precision n/T + 1/SCALE^2, the second term over T if the prior is tempered.
    sd = (len(X) / 100 + SCALE**-2 / (100 if with_prior else 1)) ** -0.5
    np.testing.assert_allclose(ladder.hot_sd, sd, rtol=0.3)
    assert (np.abs(ladder.hot_mean) < sd).all()
    assert (ladder.undefined_moves == 0).all()
    if name.startswith("equi"):
        assert ladder.attrs["ring_groups"] == (2 if with_prior else 1)


def test_sums_do_not_depend_on_their_portions():
    target = POSTERIOR.flat(STARTS[0])
    task = Task(target, [target.ravel(start) for start in STARTS], STARTS[0], seed=0, draws=10, warmup=10, thin=1)
    reference = Reference.of(target, LADDER, None, STARTS[0], None)
    draws = np.random.default_rng(0).normal(1000.0, 2.0, size=(500, 1)).astype(np.float32)
    whole, parts = (Landmarks(task, len(LADDER), reference) for _ in range(2))
    whole.wander(0, draws)
    for part in np.split(draws, [7, 7, 100]):
        parts.wander(0, part)
    one, other = whole.facts(), parts.facts()
    for name in ("hot_mean", "hot_sd"):
        np.testing.assert_array_equal(one[name], other[name])
        assert np.isnan(one[name][1]).all()
    np.testing.assert_allclose(one["hot_mean"][0], draws.astype(float).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(one["hot_sd"][0], draws.astype(float).std(axis=0, ddof=1), rtol=1e-9)


def test_what_is_tempered_by_default():
    flat = mintmc.Posterior(gaussian_log_likelihood, X)
    density = mintmc.Posterior.from_density(lambda x: -0.5 * jnp.sum(x**2))
    for posterior, expected in ((POSTERIOR, "likelihood"), (flat, "posterior"), (density, "posterior")):
        assert posterior.model(lambda theta: theta[0], 1).tempered(None) == expected
        assert posterior.model(lambda theta: theta[0], 1).tempered("posterior") == "posterior"
    with pytest.raises(ValueError, match="temper must be 'posterior' for a density without data, got 'likelihood'"):
        mintmc.ParallelTempering(mintmc.Ladder([1, 2]), temper="likelihood").check(density, jnp.zeros(1))


@pytest.mark.slow
@pytest.mark.parametrize("temper", ["likelihood", "posterior"])
def test_hot_rungs_of_a_mixture_stay_in_the_prior(temper):
    """Three components, six modes, T up to 1000: with the prior tempered the hottest rung is 20 times too wide."""
    rng, means = np.random.default_rng(0), np.array([-4.0, 0.0, 4.0], np.float32)
    x = (means[rng.integers(0, 3, 300)] + rng.normal(size=300)).astype(np.float32)
    posterior = mintmc.Posterior(
        lambda p, x: jax.nn.logsumexp(-0.5 * (x - p) ** 2), x, lambda p: -0.5 * jnp.sum((p / 5) ** 2)
    )
    ladder = mintmc.Ladder(np.geomspace(1, 1000, 9).round(6), [None] * 7 + [100, 50])
    start = mintmc.PerChain(np.stack([means, means]))
    sampler = mintmc.ParallelTempering(ladder, temper=temper)
    tree = mintmc.sample(posterior, sampler, init=start, draws=10_000, chains=2, progress=False, seed=1)
    assert np.isfinite(tree.ladder.log_ratio_noise).all()
    if temper == "posterior":
        assert (tree.ladder.hot_sd > 20).any()
        return
    assert ((tree.ladder.hot_sd > 3) & (tree.ladder.hot_sd < 6)).all()
    assert (np.abs(tree.ladder.hot_mean) < 2).all()
    # All six orders of the means at T = 1, each with 1/6 of the draws.
    orders = np.argsort(tree.posterior.theta.values.reshape(-1, 3), axis=1) @ np.array([9, 3, 1])
    weights = np.unique(orders, return_counts=True)[1] / len(orders)
    assert len(weights) == 6
    assert weights.min() > 0.08
