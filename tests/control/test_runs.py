"""Runs with control variates: stores, files, wandering chains, heavy tails, batches that grow, networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.control.choose import Residuals
from truth import LIMIT, distance

RNG = np.random.default_rng(4)
X = RNG.normal(size=(30_000, 2)).astype(np.float32)
Y = (RNG.random(30_000) < 1 / (1 + np.exp(-X @ [0.5, -0.5]))).astype(np.float32)


def log_likelihood(theta, row):
    eta = row[:2] @ theta
    return row[2] * eta - jnp.logaddexp(0.0, eta)


ROWS = np.column_stack([X, Y])
POSTERIOR = mintmc.Posterior(log_likelihood, ROWS)
SAMPLER = mintmc.MINT(temperature=1.0, control=mintmc.Taylor())


def sample(posterior, sampler=SAMPLER, init=(0.0, 0.0), **settings):
    given = {"draws": 400, "warmup": 100, "chains": 2, "progress": False} | settings
    return mintmc.sample(posterior, sampler, init=np.array(init), **given)


def test_a_store_goes_on_where_it_was(tmp_path):
    """Bit for bit, with the centre and the batch of the first part."""
    whole = sample(POSTERIOR)
    sample(POSTERIOR, out=tmp_path / "run.zarr", draws=150)
    joined = mintmc.resume(tmp_path / "run.zarr", POSTERIOR, draws=400, progress=False)
    np.testing.assert_array_equal(joined.posterior["theta"], whole.posterior["theta"])
    assert joined.attrs["batch_size"] == whole.attrs["batch_size"] == 100
    np.testing.assert_array_equal(joined.attrs["centre"], whole.attrs["centre"])


@pytest.mark.parametrize("kind", ["as it is", "prepared"])
def test_data_on_disk(tmp_path, kind):
    np.save(tmp_path / "rows.npy", ROWS)
    data = tmp_path / "rows.npy"
    if kind == "prepared":
        data = mintmc.prepare(data, tmp_path / "prepared")
    tree = sample(mintmc.Posterior(log_likelihood, data), draws=4000)
    mode = mintmc.find_mode(POSTERIOR, np.zeros(2))
    for j in range(2):
        # At n = 30,000 the posterior is normal to a fraction of these standard errors.
        assert distance(tree.posterior["theta"].values[:, :, j], float(mode.params[j])) < LIMIT
        ratio = float(tree.posterior["theta"][:, :, j].std()) / mode.covariance[j, j] ** 0.5
        assert ratio == pytest.approx(1, abs=0.06)  # 4000 to 8000 effective draws: 1% to 1.5%


def test_chains_in_two_modes_have_two_centres():
    """A mean of unknown sign: each chain stays in its mode, and expands there."""
    x = (RNG.normal(size=2000) + 2.0).astype(np.float32)

    def either(theta, x):
        return jnp.logaddexp(-0.5 * (x - theta[0]) ** 2, -0.5 * (x + theta[0]) ** 2)

    init = mintmc.PerChain(np.array([[1.5], [-1.5]]))
    posterior = mintmc.Posterior(either, x)
    tree = mintmc.sample(posterior, SAMPLER, init=init, draws=1000, warmup=100, chains=2, progress=False)
    means = tree.posterior["theta"].values[:, :, 0].mean(axis=1)
    assert means[0] > 1.9
    assert means[1] < -1.9
    assert float(tree.sample_stats["log_ratio_noise"].mean()) < 0.1


def test_a_chain_that_wanders_off_gets_a_centre_of_its_own():
    """From a shoulder of the density, where a user sends it, to the mode: re-centred half-way through warm-up."""
    x = RNG.normal(size=400).astype(np.float32)
    posterior = mintmc.Posterior(lambda theta, x: -0.5 * (x - theta[0]) ** 2 - 0.02 * (x - theta[0]) ** 4, x)
    mode = mintmc.find_mode(posterior, np.zeros(1))
    width = mode.covariance[0, 0] ** 0.5
    control = mintmc.Taylor(np.asarray(mode.params) + 8 * width)
    sampler = mintmc.MINT(100, temperature=1.0, control=control, proposal=mintmc.RandomWalk(preconditioner="laplace"))
    tree = sample(posterior, sampler, init=(0.0,), warmup=1000, draws=2000)
    assert tree.attrs["recentred_chains"] == 2
    assert distance(tree.posterior["theta"].values[:, :, 0], float(mode.params[0])) < LIMIT + 1  # skew: 0.02 widths


def test_every_step_counts_the_rows_of_its_own_batch(monkeypatch):
    """A batch that grows half-way through warm-up: the second half and the draws read more."""
    # On 1,000 rows a variance x gives noise 0.1 on batches of 1e6 x / (0.1 + 1e3 x): 147 and 400, rounded up.
    found = iter([Residuals(1.7e-5, 0.0, 0.0, 1000), Residuals(6.6e-5, 0.0, 0.0, 1000)])
    monkeypatch.setattr("mintmc.samplers.centred.measure", lambda *args: next(found))
    x = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    posterior = mintmc.Posterior(lambda theta, x: -0.5 * (x - theta[0]) ** 2, x)
    settings = {"init": np.zeros(1), "draws": 40, "warmup": 100, "chains": 2, "progress": False}
    tree = mintmc.sample(posterior, SAMPLER, **settings)
    assert tree.attrs["batch_size"] == 400
    (per_step,) = set(tree.sample_stats["data_touched"].values.ravel().tolist())
    per_row = per_step // 400
    assert (per_step, tree.attrs["data_touched_setup"][1]) == (400 * per_row, 50 * (150 + 400) * per_row)


@pytest.mark.slow
@pytest.mark.audited
def test_heavy_tails_are_told():
    """A few rows whose log-likelihood bends sharply: most batches miss them, and the penalty knows nothing of it."""
    x = np.zeros((20_000, 2), np.float32)
    x[:, 0] = RNG.normal(size=20_000)
    x[:4, 1] = 1.0  # these rows see a wall at 2 standard deviations

    def walled(theta, row):
        return -0.5 * (row[0] - theta[0]) ** 2 - row[1] * 2.0 * jnp.exp(600.0 * theta[0])

    tree = sample(
        mintmc.Posterior(walled, x), mintmc.MINT(100, temperature=1.0, control=mintmc.Taylor()), init=(-0.02,)
    )
    diagnosis = mintmc.diagnose(tree)
    assert not diagnosis.trusted
    assert any("heavy-tailed" in warning for warning in diagnosis.warnings)
    # Left open, the batch grows until it sees them.
    open_tree = sample(mintmc.Posterior(walled, x), SAMPLER, init=(-0.02,))
    assert open_tree.attrs["batch_size"] > 2000
    assert not any("heavy-tailed" in warning for warning in mintmc.diagnose(open_tree).warnings)


@pytest.mark.slow
def test_first_order_does_without_a_hessian():
    sampler = mintmc.MINT(5000, temperature=1.0, control=mintmc.Taylor(order=1))
    assert isinstance(sampler.proposal, mintmc.Langevin)
    tree = sample(POSTERIOR, sampler, warmup=500, draws=3000)
    mode = mintmc.find_mode(POSTERIOR, np.zeros(2))
    assert distance(tree.posterior["theta"].values[:, :, 0], float(mode.params[0])) < LIMIT
    assert float(tree.posterior["theta"][:, :, 0].std()) == pytest.approx(mode.covariance[0, 0] ** 0.5, rel=0.1)


def test_hotter_than_one_is_tempered():
    sampler = mintmc.MINT(100, temperature=4.0, control=mintmc.Taylor())
    tree = sample(POSTERIOR, sampler, draws=4000)
    assert "posterior" not in tree.children
    mode = mintmc.find_mode(POSTERIOR, np.zeros(2))
    ratio = float(tree.tempered_posterior["theta"][:, :, 0].std()) / mode.covariance[0, 0] ** 0.5
    assert ratio == pytest.approx(2, abs=0.1)


@pytest.mark.slow
def test_the_persistence_is_adapted_where_the_approximation_is_poor():
    """Few rows of a skewed posterior in many dimensions: draws from the approximation would hardly be accepted."""
    x = RNG.normal(size=(100, 40)).astype(np.float32)
    y = (RNG.random(100) < 0.3).astype(np.float32)
    posterior = mintmc.Posterior(
        lambda theta, row: row[40] * (row[:40] @ theta) - jnp.logaddexp(0.0, row[:40] @ theta),
        np.column_stack([x, y]),
        lambda theta: -0.5 * jnp.sum(theta**2),
    )
    sampler = mintmc.MetropolisHastings(mintmc.Autoregressive())
    tree = sample(posterior, sampler, init=np.zeros(40), warmup=1000, draws=500)
    assert max(tree.attrs["step_size"]) < 0.9
    assert float(tree.sample_stats["acceptance_rate"].mean()) == pytest.approx(0.5, abs=0.12)


@pytest.mark.slow
@pytest.mark.audited
def test_a_network_is_told_to_read_all_data():
    """Fifty hidden units: a singular posterior, whose rows are no parabolas. The batch says so, and so does the run."""
    x = RNG.normal(size=(2000, 3)).astype(np.float32)
    y = (np.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + 0.3 * RNG.normal(size=2000)).astype(np.float32)

    def network(p, row):
        return -0.5 * ((row[3] - jnp.tanh(row[:3] @ p["w"] + p["b"]) @ p["v"]) / 0.3) ** 2

    init = {name: 0.3 * RNG.normal(size=shape) for name, shape in (("w", (3, 50)), ("b", 50), ("v", 50))}
    posterior = mintmc.Posterior(
        network, np.column_stack([x, y]), lambda p: -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(p))
    )
    tree = mintmc.sample(posterior, SAMPLER, init=init, draws=200, warmup=200, chains=2, progress=False)
    assert tree.attrs["batch_size"] == 2000
    assert tree.attrs["modes_not_found"] >= 1
    assert not mintmc.diagnose(tree).trusted
