"""Leaps: every mode at T = 1 with its right weight, found by itself; and what it says where it cannot."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mistakes import each_refused
from stores import assert_same
from truth import LIMIT, distance, distance_between

DIM = 10
NARROW, WEIGHT = 0.3, 0.1


def unequal(x):
    """Two normals in ten dimensions, of weights 0.9 and 0.1, the smaller one three times as narrow."""
    wide = -0.5 * jnp.sum((x + 3) ** 2)
    narrow = -0.5 * jnp.sum(((x - 3) / NARROW) ** 2) - DIM * jnp.log(NARROW)
    return jnp.logaddexp(jnp.log(1 - WEIGHT) + wide, jnp.log(WEIGHT) + narrow)


UNEQUAL = mintmc.Posterior.from_density(unequal)
STARTS = mintmc.PerChain(np.stack([np.full(DIM, -2.5), np.full(DIM, 2.5)]))
"""The narrow mode attracts so little of the space that hot chains from elsewhere miss it."""
SETTINGS = {"draws": 3000, "warmup": 300, "chains": 2, "progress": False}


@pytest.fixture(scope="module")
def tree():
    return mintmc.sample(UNEQUAL, mintmc.Leaps(), init=STARTS, **SETTINGS)


def test_modes_of_unequal_width_get_their_weights(tree):
    theta = tree.posterior.theta.values
    is_narrow = theta[..., 0] > 0
    assert distance(is_narrow, WEIGHT) < LIMIT
    assert abs(is_narrow.mean() - WEIGHT) < 0.02
    assert distance(theta[..., 3], -3 * (1 - WEIGHT) + 3 * WEIGHT) < LIMIT
    verdict = mintmc.diagnose(tree)
    assert verdict.trusted, verdict
    assert tree.attrs["modes_late"] == []
    assert verdict.numbers["modes"] == 2
    assert verdict.numbers["leap_acceptance"] > 0.05


def test_what_was_learnt_is_in_the_tree(tree):
    modes = tree["modes"]
    assert modes.weight.sum() == pytest.approx(1)
    np.testing.assert_allclose(modes.weight, modes.fitted_weight, atol=0.05)
    np.testing.assert_allclose(np.sort(modes.end_theta.values[:, 0]), [-3, 3], atol=0.1)
    wide = int(np.argmin(modes.end_theta.values[:, 0]))
    np.testing.assert_allclose(modes.scale_theta.values[wide].mean(), 1, rtol=0.1)
    rates = modes.leap_rate.values
    assert 0 < rates[wide, 1 - wide] < rates[1 - wide, wide] <= 1  # detailed balance: 9 to 1
    labels = tree.sample_stats["mode"].values
    np.testing.assert_array_equal(labels == 1 - wide, tree.posterior.theta.values.mean(axis=-1) > 0)
    np.testing.assert_allclose(modes.weight, [np.mean(labels == 0), np.mean(labels == 1)], atol=1e-6)


@pytest.mark.slow
def test_without_leaps_the_weights_are_those_of_the_starts():
    """The broken twin: one place for a mode, so nothing to leap to."""
    lost = mintmc.sample(UNEQUAL, mintmc.Leaps(places=1), init=STARTS, **SETTINGS)
    assert np.unique(lost.posterior.theta.values[..., 0] > 0).size == 1
    verdict = mintmc.diagnose(lost)
    assert any("than there is room for" in warning for warning in verdict.warnings)


@pytest.mark.slow
def test_independent_leaps_are_right_too():
    tree = mintmc.sample(UNEQUAL, mintmc.Leaps(independent=True), init=STARTS, **SETTINGS)
    assert distance(tree.posterior.theta.values[..., 0] > 0, WEIGHT) < LIMIT


def test_a_mode_that_leaps_do_not_know_is_told(tree):
    """A draw far below all modes that are known."""
    other = tree.copy()
    other["modes"]["energy"] = other["modes"]["energy"] + 20
    assert any("a mode that leaps do not know" in warning for warning in mintmc.diagnose(other).warnings)


def test_draws_below_all_modes_lead_to_where_to_begin(tree):
    other = tree.copy()
    other["modes"]["energy"] = other["modes"]["energy"] + 20
    (said,) = (warning for warning in mintmc.diagnose(other).warnings if "leaps do not know" in warning)
    call = re.search(r"init=(mintmc\.params_at\(tree, \d+, \d+\))", said)[1]
    lowest = tree.sample_stats.energy.values.min()
    assert UNEQUAL.energy(eval(call, {"mintmc": mintmc, "tree": tree})) == pytest.approx(lowest, abs=1e-3)


@pytest.mark.slow
def test_one_mode_is_no_reason_to_leap():
    normal = mintmc.Posterior.from_density(lambda x: -0.5 * jnp.sum(x**2))
    tree = mintmc.sample(normal, mintmc.Leaps(starts=64), init=np.zeros(2), **SETTINGS)
    assert tree["modes"].sizes["mode"] == 1
    assert distance(tree.posterior.theta.values[..., 0] ** 2, 1) < LIMIT
    assert (tree.sample_stats["leap_rate"] == 0).all()
    assert any("one mode was found" in note for note in mintmc.diagnose(tree).notes)


def test_exploring_that_was_stopped_early_is_told():
    """Forty modes on a circle, five descents: most of them are missing, and it says about how many."""
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    centres = 60 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    circle = mintmc.Posterior.from_density(lambda x: jax.nn.logsumexp(-0.5 * ((x - centres) ** 2).sum(axis=1)))
    hot = mintmc.MetropolisHastings(mintmc.RandomWalk(), temperature=400.0)
    tree = mintmc.sample(circle, mintmc.Leaps(explore=hot, starts=8), init=np.zeros(2), **SETTINGS | {"draws": 200})
    known = tree["modes"].sizes["mode"]
    assert known < 12
    verdict = mintmc.diagnose(tree)
    assert any("modes were not seen" in warning for warning in verdict.warnings)
    # Other hot chains, after the draws, find some of them.
    assert len(tree.attrs["modes_late"]) > 0
    late = len(tree.attrs["modes_late"])
    (said,) = (warning for warning in verdict.warnings if "were found when all draws were made" in warning)
    assert f"init=mintmc.late_starts(posterior, tree), chains={max(late, 2)}" in said
    start = mintmc.late_starts(circle, tree)
    np.testing.assert_allclose(start.params[:late], tree.attrs["modes_late"], rtol=1e-6)
    assert len(start.params) == max(late, 2)
    nearest = [np.abs(np.asarray(mode) - centres).sum(axis=1).min() for mode in tree.attrs["modes_late"]]
    assert max(nearest) < 0.1
    assert not any(
        (np.abs(np.asarray(mode) - tree.modes.end_theta.values) < 1).all(axis=1).any()
        for mode in tree.attrs["modes_late"]
    )


def test_modes_that_are_given_are_not_sought(tree):
    known = [np.full(DIM, -3.0), np.full(DIM, 3.0)]
    given = mintmc.sample(UNEQUAL, mintmc.Leaps(modes=known), init=STARTS, **SETTINGS)
    assert distance(given.posterior.theta.values[..., 0] > 0, WEIGHT) < LIMIT
    np.testing.assert_array_equal(given["modes"].starts, [1, 1])
    verdict = mintmc.diagnose(given)
    assert not any("not seen" in warning for warning in verdict.warnings)  # a list is no sample of the modes
    assert any("the modes were given" in note for note in verdict.notes)


NORMAL = mintmc.Posterior.from_density(lambda x: -0.5 * jnp.sum(x**2))


@pytest.mark.slow
def test_modes_closer_than_their_width_are_one():
    given = mintmc.Leaps(modes=[np.zeros(2), np.full(2, 0.3), np.full(2, -0.3)])
    tree = mintmc.sample(NORMAL, given, init=np.zeros(2), **SETTINGS | {"draws": 500})
    assert tree["modes"].sizes["mode"] == 1
    assert (tree.sample_stats["leap_rate"] == 0).all()
    assert any("2 of the modes that were given are one with another" in note for note in mintmc.diagnose(tree).notes)
    # Two bumps of one valley, found by itself.
    bumps = mintmc.Posterior.from_density(
        lambda x: jnp.logaddexp(-0.5 * jnp.sum((x - 1.2) ** 2), -0.5 * jnp.sum((x + 1.2) ** 2))
    )
    tree = mintmc.sample(bumps, mintmc.Leaps(starts=64), init=np.zeros(2), **SETTINGS)
    assert tree["modes"].sizes["mode"] == 1
    assert distance(tree.posterior.theta.values[..., 0] ** 2, 1 + 1.2**2) < LIMIT


@pytest.mark.slow
def test_a_continuum_of_modes_is_told_and_does_no_harm():
    """A ring of radius 10: descents end all over it, and straight lines between the ends are barred."""
    ring = mintmc.Posterior.from_density(lambda x: -0.5 * ((jnp.sqrt(jnp.sum(x**2) + 1e-9) - 10) / 0.5) ** 2)
    start = np.array([10.0, 0.0])
    tree = mintmc.sample(ring, mintmc.Leaps(), init=start, **SETTINGS | {"draws": 8000, "chains": 4})
    assert tree["modes"].sizes["mode"] > 1
    verdict = mintmc.diagnose(tree)
    assert any("a continuum such as a ring" in note for note in verdict.notes), verdict
    theta = tree.posterior.theta.values
    # On a plane, radii are as likely as their density times themselves.
    assert distance(np.linalg.norm(theta, axis=-1), 10 + 0.25 / 10) < LIMIT
    assert distance(theta[..., 1] > 0, 0.5) < LIMIT


def test_modes_that_are_apart_are_not_called_a_continuum(tree):
    assert not any("continuum" in note for note in mintmc.diagnose(tree).notes)


@pytest.mark.slow
def test_on_data_labels_that_can_be_swapped_have_equal_weights(tmp_path):
    rng = np.random.default_rng(5)
    x = (rng.normal(size=2000) + np.where(rng.random(2000) < 0.5, -1.5, 1.5)).astype(np.float32)
    posterior = mintmc.Posterior(
        lambda theta, x: jnp.logaddexp(-0.5 * (x - theta[0]) ** 2, -0.5 * (x - theta[1]) ** 2), x
    )
    settings = SETTINGS | {"draws": 1500, "warmup": 200}
    tree = mintmc.sample(posterior, mintmc.Leaps(), init=np.zeros(2), out=tmp_path / "run.zarr", **settings)
    theta = tree.posterior.theta.values
    assert distance(theta[..., 0] > theta[..., 1], 0.5) < LIMIT
    assert abs((theta[..., 0] > theta[..., 1]).mean() - 0.5) < 0.05
    share = next(note for note in mintmc.diagnose(tree).notes if note.startswith("looking for other modes"))
    assert 0 < float(re.search(r"took (\S+) of all rows", share)[1]) < 0.3
    more = mintmc.resume(tmp_path / "run.zarr", posterior, draws=2000, progress=False)
    assert_same(more, mintmc.sample(posterior, mintmc.Leaps(), init=np.zeros(2), **settings | {"draws": 2000}))


@pytest.mark.slow
@pytest.mark.audited
def test_six_relabellings_at_the_price_of_a_batch():
    """Three components, T = 1, every move and leap on 500 of 20,000 rows, expanded around the nearest mode."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=20_000) + np.array([-3.0, 0.0, 4.0])[rng.integers(0, 3, 20_000)]).astype(np.float32)
    posterior = mintmc.Posterior(
        lambda t, x: jax.nn.logsumexp(-0.5 * (x - t) ** 2), x, lambda t: -0.5 * jnp.sum(t**2) / 100
    )
    walk = mintmc.Langevin(preconditioner="diagonal")
    sampler = mintmc.Leaps(walk, control=mintmc.Taylor(), batch_size=500)
    tree = mintmc.sample(posterior, sampler, init=np.zeros(3), draws=4000, warmup=300, chains=2, progress=False)
    theta = tree.posterior.theta.values
    order = np.argsort(theta, axis=-1) @ np.array([9, 3, 1])
    assert len(np.unique(order)) == 6
    assert max(distance(order == which, 1 / 6) for which in np.unique(order)) < LIMIT
    exact = mintmc.sample(
        posterior,
        mintmc.MetropolisHastings(mintmc.Langevin()),
        init=np.array([-3.0, 0.0, 4.0]),
        draws=4000,
        warmup=500,
        progress=False,
    ).posterior.theta.values
    for j in range(3):
        there = np.sort(theta, axis=-1)[..., j]
        assert distance_between(there, exact[..., j]) < LIMIT
        assert there.std() == pytest.approx(exact[..., j].std(), rel=0.1)
    verdict = mintmc.diagnose(tree)
    assert verdict.trusted, verdict
    assert float(tree.sample_stats.data_touched.mean()) < 20_000


MISTAKES = {
    "control without batches": (lambda: mintmc.Leaps(control=mintmc.Taylor()), "control and batch_size must be given"),
    "order": (
        lambda: mintmc.Leaps(control=mintmc.Taylor(order=1), batch_size=10),
        r"control must be Taylor\(\) of order 2",
    ),
    "warmup": (
        lambda: mintmc.sample(UNEQUAL, mintmc.Leaps(), init=np.zeros(DIM), warmup=3),
        "warmup must be at least 30 for Leaps to fit its modes, got 3",
    ),
    "modes": (
        lambda: mintmc.sample(UNEQUAL, mintmc.Leaps(modes=[np.zeros(3)]), init=np.zeros(DIM)),
        r"modes\[0\] must have the form of init",
    ),
    "control without data": (
        lambda: mintmc.sample(
            UNEQUAL, mintmc.Leaps(control=mintmc.Taylor(), batch_size=10), init=np.zeros(DIM), progress=False
        ),
        "posterior must have data to take mini-batches of",
    ),
    "no list of modes": (
        lambda: mintmc.sample(UNEQUAL, mintmc.Leaps(modes=3), init=np.zeros(DIM)),
        TypeError,
        "modes must be a list of params, or what find_modes returned, got 3",
    ),
    "an empty list of modes": (
        lambda: mintmc.sample(UNEQUAL, mintmc.Leaps(modes=[]), init=np.zeros(DIM)),
        TypeError,
        r"modes must be a list of params, or what find_modes returned, got \[\]",
    ),
    "places": (lambda: mintmc.Leaps(places=0), "places must be at least 1, got 0"),
    "explore": (lambda: mintmc.Leaps(explore=3), TypeError, "explore must be a mintmc sampler"),
    "laplace": (
        lambda: mintmc.sample(UNEQUAL, mintmc.Leaps(mintmc.Autoregressive()), init=np.zeros(DIM)),
        "preconditioner must be",
    ),
}
test_a_mistake_is_refused = each_refused(MISTAKES)
