"""Weights of modes by regions, and draws of all rungs at T = 1, against exact answers, in standard errors."""

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.result.regional import regional
from mintmc.result.rung_energies import RungEnergies
from mistakes import each_refused, refused
from stores import assert_same
from truth import LIMIT

B = np.array([1.0, 0.6, 0.35, 0.2])
SHAPES, FACTORS = np.array([2.0, 4.0]), np.array([0.7, 0.3])
"""A region with Z(b) = factor * b^-shape has energies of a gamma distribution, and the factor for its weight."""


def rungs_of(draws, seed=0, chains=4, shares=None):
    """Independent draws of two regions on every rung; ``shares`` of the regions by rung, by default the right ones."""
    rng = np.random.default_rng(seed)
    right = FACTORS * B[:, None] ** -SHAPES
    shares = right / right.sum(axis=1, keepdims=True) if shares is None else shares
    size = (chains, draws)
    labels = np.stack([rng.random(size) < share for share in shares[:, 1]]).astype(int)
    energy = np.stack([rng.gamma(SHAPES[label], 1 / b) for label, b in zip(labels, B, strict=True)])
    return RungEnergies(B, energy, np.ones(draws, bool)), labels


def error_of(found):
    """By the spread of what draws say: they are independent."""
    return found.of_draws.reshape(-1, 2).std(axis=0) / found.of_draws[..., 0].size ** 0.5


def test_weights_are_exact_and_errors_those_of_repeated_runs():
    runs = [regional(*rungs_of(300, seed, chains=2), modes=2) for seed in range(60)]
    weights = np.array([found.weight[1] for found in runs])
    spread = weights.std(ddof=1)
    assert abs(weights.mean() - FACTORS[1]) < LIMIT * spread / len(runs) ** 0.5
    # An error from 60 runs is good to a tenth of itself.
    assert np.mean([error_of(found)[1] for found in runs]) == pytest.approx(spread, rel=0.3)
    np.testing.assert_allclose(runs[0].of_draws.mean(axis=(0, 1)), runs[0].weight)
    np.testing.assert_allclose(runs[0].of_chains.mean(axis=1), runs[0].chain_weight)


def test_how_many_draws_the_cold_rungs_have_does_not_matter():
    """Genealogy gone wrong: half of the draws of every cold rung in either region, as counting believes."""
    hottest = FACTORS * B[-1] ** -SHAPES
    shares = np.array([[0.5, 0.5]] * 3 + [hottest / hottest.sum()])
    rungs, labels = rungs_of(5000, shares=shares)
    found = regional(rungs, labels, modes=2)
    assert abs(found.weight[1] - FACTORS[1]) < LIMIT * error_of(found)[1] < 0.05
    assert labels[0].mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("wrong", [B[[0, 2, 1, 3]], B**0.5])
def test_wrong_temperatures_are_off(wrong):
    rungs, labels = rungs_of(5000)
    found = regional(rungs._replace(b=wrong), labels, modes=2)
    assert abs(found.weight[1] - FACTORS[1]) > LIMIT * error_of(found)[1]


def test_a_rung_without_draws_is_bridged_from_its_neighbours():
    rungs, labels = rungs_of(5000)
    labels[1][labels[1] == 1] = 2  # nobody's
    found = regional(rungs, labels, modes=2)
    assert abs(found.weight[1] - FACTORS[1]) < LIMIT * error_of(found)[1]


def test_what_the_ladder_does_not_lead_to_is_refused():
    rungs, labels = rungs_of(500)
    for lost in ([3], [1, 2]):
        others = labels.copy()
        others[lost] = 0
        refused(lambda others=others: regional(rungs, others, modes=2), "got mode 1 with")
    labels[:] = 0
    assert regional(rungs, labels, modes=2).weight.tolist() == [1, 0]


X = np.random.default_rng(1).normal(1.5, 1.0, size=12).astype(np.float32)
POSTERIOR = mintmc.Posterior(lambda theta, x: -0.5 * (x - theta**2) ** 2, X, lambda theta: -0.5 * (theta - 0.3) ** 2)
"""Two modes, at about -1.2 and 1.2, which the prior weighs."""
GRID = np.linspace(-6, 6, 100_001)
LOG_LAW = -0.5 * ((X.astype(float) - GRID[:, None] ** 2) ** 2).sum(axis=1) - 0.5 * (GRID - 0.3) ** 2
LAW = np.exp(LOG_LAW - LOG_LAW.max())
LAW /= LAW.sum()
LADDER = mintmc.Ladder.geometric(hottest=20, rungs=5)
CHAINS = 8


def run(kind=mintmc.ParallelTempering, ladder=LADDER, **settings):
    given = {"draws": 2000, "warmup": 300, "chains": CHAINS, "init": 1.0, "progress": False}
    own = {name: settings.pop(name) for name in ("temper", "truncate", "rings") if name in settings}
    return mintmc.sample(POSTERIOR, kind(ladder, keep_rungs=True, **own), **given | settings)


def is_right(theta):
    return theta > 0


@pytest.fixture(scope="module")
def tree():
    return run()


def weight_and_error(tree, method):
    found = mintmc.mode_weights(tree, is_right, method=method)
    assert found.label.dims == ("chain", "draw")
    return float(found.weight[1]), float(found.error[1])


@pytest.mark.parametrize("method", ["counting", "regional"])
def test_weights_of_a_run_that_tempers_the_likelihood(tree, method):
    weight, error = weight_and_error(tree, method)
    assert abs(weight - LAW[GRID > 0].sum()) < LIMIT * error < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("method", ["counting", "regional"])
@pytest.mark.parametrize("kind", [mintmc.ParallelTempering, mintmc.EquiEnergy])
def test_weights_of_a_run_that_tempers_the_posterior(kind, method):
    weight, error = weight_and_error(run(kind, temper="posterior"), method)
    assert abs(weight - LAW[GRID > 0].sum()) < LIMIT * error < 0.3


def changed(tree, **variables):
    twin = tree.copy()
    for name, values in variables.items():
        twin["ladder"][name] = tree["ladder"][name].copy(data=values)
    return twin


def test_clusters_are_regions_too(tree):
    pytest.importorskip("sklearn", reason="scikit-learn is optional: pip install 'mintmc[kmeans]'")
    by_function = mintmc.mode_weights(tree, is_right, method="regional")
    by_clusters = mintmc.mode_weights(tree, count=2, method="regional")
    np.testing.assert_allclose(by_clusters.weight, by_function.weight, atol=0.02)


def by_chain(tree, function):
    """The mean over chains of what each says by itself, and its standard error."""
    found = [
        float(mintmc.weighted_draws(tree.isel(chain=[chain], missing_dims="ignore")).mean(function)["theta"])
        for chain in range(CHAINS)
    ]
    return np.mean(found), np.std(found, ddof=1) / CHAINS**0.5


MOMENTS = {
    "square": lambda theta: theta**2,
    "spread": lambda theta: (abs(theta) - 1.2) ** 2,
    "sign": lambda theta: theta > 0,
}


@pytest.mark.parametrize("name", MOMENTS)
def test_weighted_draws_have_the_moments_of_the_posterior(tree, name):
    exact = LAW @ MOMENTS[name](GRID)
    mean, error = by_chain(tree, MOMENTS[name])
    assert abs(mean - exact) < LIMIT * error
    # All chains together have the means of the chains, but for what is not linear.
    whole = mintmc.weighted_draws(tree).mean(MOMENTS[name])["theta"]
    assert abs(float(whole) - exact) < LIMIT * error


def test_weights_sum_to_one_and_say_what_they_are_worth(tree):
    found = mintmc.weighted_draws(tree)
    assert float(found.weight.sum()) == pytest.approx(1)
    np.testing.assert_allclose(found.rung_share.sum(), 1)
    assert (np.diff(found.rung_share) < 0).all()  # the colder, the nearer
    alone, all_draws = CHAINS * 2000, 5 * CHAINS * 2000
    assert alone < found.effective_size < all_draws
    assert f"worth {found.effective_size:,.0f} at T = 1" in str(found)
    np.testing.assert_array_equal(found.draws.theta[0], tree.posterior.theta)


def test_a_wrong_temperature_is_off(tree):
    """The broken twin: every rung is said to be half as hot as it is."""
    temperature = tree["ladder"].temperature.values
    twin = changed(tree, temperature=np.where(temperature > 1, 0.5 * temperature + 0.5, 1))
    mean, error = by_chain(twin, MOMENTS["spread"])
    assert abs(mean - LAW @ MOMENTS["spread"](GRID)) > LIMIT * error


def test_energies_of_the_posterior_where_those_of_the_likelihood_belong_are_off(tree):
    """The broken twin: the prior, which no rung tempers, is counted as tempered."""
    theta = tree["rungs"].theta.values
    energy = tree["ladder"].energy.transpose("rung", "chain", "draw").values + 0.5 * (theta - 0.3) ** 2
    mean, error = by_chain(changed(tree, energy=energy), MOMENTS["sign"])
    assert abs(mean - LAW[GRID > 0].sum()) > LIMIT * error


@pytest.mark.parametrize("kind", [mintmc.ParallelTempering, mintmc.EquiEnergy])
def test_rungs_are_kept_and_resumed_bit_by_bit(kind, tmp_path):
    settings = {"warmup": 20, "chains": 2}
    without = mintmc.sample(POSTERIOR, kind(LADDER), init=1.0, draws=200, progress=False, **settings)
    assert "rungs" not in without.children
    run(kind, draws=90, out=tmp_path / "run.zarr", **settings)
    resumed = mintmc.resume(tmp_path / "run.zarr", POSTERIOR, draws=200, progress=False)
    whole = run(kind, draws=200, **settings)
    assert whole["rungs"].theta.dims == ("rung", "chain", "draw")
    assert_same(resumed, whole)
    np.testing.assert_array_equal(whole.posterior.theta, without.posterior.theta)
    np.testing.assert_array_equal(resumed["rungs"].draw, np.arange(200))
    # What is kept is what the energies are of.
    state = whole["rungs"].theta[3, 1, 50].values
    likelihood = 0.5 * ((X.astype(float) - float(state) ** 2) ** 2).sum()
    reference = whole["ladder"].attrs["reference_energy"]
    assert float(whole["ladder"].energy[3, 1, 50]) == pytest.approx(likelihood - reference, abs=1e-2)


def test_constrained_params_are_kept_as_they_are_read():
    posterior = mintmc.Posterior(
        lambda p, x: -0.5 * (x - p["scale"] * p["a"].sum()) ** 2,
        X,
        lambda p: -p["scale"] - 0.5 * (p["a"] ** 2).sum(),
        transforms={"scale": "positive"},
        dims={"a": ["part"]},
        coords={"part": ["left", "right"]},
    )
    init = {"scale": 1.0, "a": np.zeros(2)}
    sampler = mintmc.ParallelTempering(mintmc.Ladder([1, 4]), keep_rungs=True)
    tree = mintmc.sample(posterior, sampler, init=init, draws=50, warmup=20, chains=2, progress=False)
    for name in ("scale", "a"):
        np.testing.assert_array_equal(tree["rungs"][name][0], tree.posterior[name])
    assert (tree["rungs"].scale > 0).all()
    assert tree["rungs"].a.dims == ("rung", "chain", "draw", "part")
    assert list(tree["rungs"].part.values) == ["left", "right"]


def test_trees_that_cannot_tell_are_refused(tree):
    without = tree.copy()
    del without["rungs"]
    on_batches = changed(tree, batch_size=np.array([len(X), 6, 6, 6, 6]))
    for call in (mintmc.weighted_draws, lambda tree: mintmc.mode_weights(tree, is_right, method="regional")):
        refused(lambda call=call: call(3), TypeError, "tree must be what mintmc.sample returned")
        refused(lambda call=call: call(without), r"tree must have the draws of all rungs \(keep_rungs=True")
        refused(lambda call=call: call(on_batches), "all data on two rungs or more.*got 12, 6, 6")
    refused(lambda: mintmc.mode_weights(tree, is_right, method="both"), "method must be one of 'counting', 'regional'")


def test_rungs_on_batches_are_left_out(tree):
    """What is anchored at the hottest rung that reads all data knows the modes that it has."""
    mixed = changed(tree, batch_size=np.array([len(X)] * 3 + [6, 6]))
    found = mintmc.weighted_draws(mixed)
    assert found.weight.sizes["rung"] == 3
    weight, error = weight_and_error(mixed, "regional")
    assert abs(weight - LAW[GRID > 0].sum()) < LIMIT * error


def test_rungs_that_cut_energies_off_are_refused():
    truncated = run(mintmc.EquiEnergy, draws=20, warmup=5, chains=1, truncate=True, rings=[1.0, 2.0, 3.0, 4.0])
    refused(lambda: mintmc.weighted_draws(truncated), "truncate=False")
    refused(lambda: mintmc.log_evidence(truncated), "truncate=False")


PLAIN = mintmc.Posterior.from_density(lambda params: -0.5 * params["rung"] ** 2)
MISTAKES = {
    "no flag": (lambda: mintmc.ParallelTempering(LADDER, keep_rungs=3), TypeError, "keep_rungs must be True or False"),
    "no flag of rings": (lambda: mintmc.EquiEnergy(LADDER, keep_rungs="x"), TypeError, "keep_rungs must be True or"),
    "no flag of MINTEE": (lambda: mintmc.MINTEE(keep_rungs=None), TypeError, "keep_rungs must be True or False"),
    "a parameter that is called so": (
        lambda: mintmc.sample(PLAIN, mintmc.ParallelTempering(LADDER, keep_rungs=True), init={"rung": jnp.zeros(())}),
        "keep_rungs must be False where a parameter is called 'rung'",
    ),
}
test_a_mistake_is_refused = each_refused(MISTAKES)
