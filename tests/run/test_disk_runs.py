"""Every sampler runs on data that stay on disk, and samples what it samples from memory."""

import jax
import numpy as np
import pytest

import mintmc
from mintmc.kernels.bounds import JaakkolaJordan
from truth import LIMIT, distance, gaussian_data, gaussian_log_likelihood

N, T = 4000, 40.0
X = gaussian_data(N).astype(np.float32)
STEP = mintmc.RandomWalk(step_size=0.2)
SAMPLERS = {
    "MINT": mintmc.MINT(200, temperature=T, proposal=STEP),
    "MINT, Langevin": mintmc.MINT(200, temperature=T, proposal=mintmc.Langevin(step_size=0.15)),
    "BarkerMH": mintmc.BarkerMH(100, T, STEP),
    "AustereMH": mintmc.AustereMH(400, 0.001, T, STEP),
    "ConfidenceMH": mintmc.ConfidenceMH(lambda a, b: 6 * abs(b - a), 1000, temperature=T, proposal=STEP),
}


def stored(folder, prepared):
    np.save(folder / "x.npy", X)
    return mintmc.prepare(folder / "x.npy", folder / "x.prepared") if prepared else folder / "x.npy"


@pytest.mark.parametrize(
    ("name", "prepared"), [*((name, True) for name in SAMPLERS), ("MINT", False), ("BarkerMH", False)]
)
def test_batches_from_disk_give_the_tempered_posterior(name, prepared, tmp_path):
    posterior = mintmc.Posterior(gaussian_log_likelihood, stored(tmp_path, prepared))
    tree = mintmc.sample(posterior, SAMPLERS[name], init=0.0, draws=1500, warmup=0, chains=2, progress=False)
    theta = tree.tempered_posterior.theta.values
    assert distance(theta, 0) < LIMIT
    assert distance(theta**2, T / N) < LIMIT


@pytest.mark.parametrize("sampler", [mintmc.MetropolisHastings(STEP), mintmc.BarkerMH(100, T, STEP)])
def test_a_bad_row_is_named_although_a_compiled_program_found_it(sampler, tmp_path):
    x = np.zeros(20_000, np.float32)
    x[15_000] = np.nan
    np.save(tmp_path / "x.npy", x)
    posterior = mintmc.Posterior(gaussian_log_likelihood, tmp_path / "x.npy")
    with pytest.raises(ValueError, match=r"data must be finite, got nan in row 15000 of .*x.npy"):
        mintmc.sample(posterior, sampler, init=0.0, draws=2000, warmup=0, chains=1, progress=False)


def test_an_energy_of_bad_rows_is_an_error(tmp_path):
    np.save(tmp_path / "x.npy", with_nan := np.append(X, np.float32(np.nan)))
    posterior = mintmc.Posterior(gaussian_log_likelihood, tmp_path / "x.npy")
    with pytest.raises(ValueError, match=f"data must be finite, got nan in row {len(with_nan) - 1}"):
        posterior.energy(0.0)


LADDER = mintmc.Ladder([1, 4, 16], [None, 400, 200])


@pytest.mark.parametrize("sampler", [mintmc.EquiEnergy(LADDER, mintmc.Langevin()), mintmc.ParallelTempering(LADDER)])
def test_ladders_on_disk_give_the_posterior(sampler, tmp_path):
    posterior = mintmc.Posterior(gaussian_log_likelihood, stored(tmp_path, True))
    tree = mintmc.sample(posterior, sampler, init=0.0, draws=1500, warmup=200, chains=2, progress=False)
    theta = tree.posterior.theta.values
    assert distance(theta, 0) < LIMIT
    assert distance(theta**2, 1 / N) < LIMIT


@pytest.mark.parametrize("sampler", [mintmc.SGLD(200, 1e-5), mintmc.SGHMC(200, 2e-3, 20.0)])
def test_stochastic_gradients_from_disk_find_the_mean(sampler, tmp_path):
    # Their variance depends on the step size by design, and is judged elsewhere.
    posterior = mintmc.Posterior(gaussian_log_likelihood, stored(tmp_path, True))
    tree = mintmc.sample(posterior, sampler, init=0.2, draws=1500, warmup=500, chains=2, progress=False)
    assert distance(tree.posterior.theta.values, 0) < LIMIT


RNG = np.random.default_rng(1)
W = RNG.normal(size=(300, 2)).astype(np.float32)
Y = RNG.choice([-1, 1], 300).astype(np.float32)
LOGISTIC = {
    "MetropolisHastings": mintmc.MetropolisHastings(STEP),
    "FireflyMC": mintmc.FireflyMC(JaakkolaJordan.untuned(W, Y), STEP),
    "TunaMH": mintmc.TunaMH(np.linalg.norm(W, axis=1), chi=1e-3, proposal=STEP),
}


def logistic(theta, datum):
    return jax.nn.log_sigmoid(datum["y"] * (datum["x"] @ theta))


@pytest.mark.parametrize("name", LOGISTIC)
def test_rows_by_number_from_disk_give_the_draws_of_memory(name, tmp_path):
    np.save(tmp_path / "w.npy", np.column_stack([W, Y]))
    data = mintmc.open_data(tmp_path / "w.npy", transform=lambda rows: {"x": rows[:, :2], "y": rows[:, 2]})
    draws = [
        mintmc.sample(
            mintmc.Posterior(logistic, source, lambda theta: -0.5 * theta @ theta),
            LOGISTIC[name],
            init=np.zeros(2),
            draws=200,
            warmup=0,
            chains=2,
            progress=False,
        ).posterior.theta
        for source in (data, {"x": W, "y": Y})
    ]
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("sampler", [mintmc.AustereMH(100, oracle_error=0.1), mintmc.ConfidenceMH("oracle")])
def test_an_oracle_needs_the_data_in_memory(sampler, tmp_path, no_compiler):
    with pytest.raises(ValueError, match=r"data must be in memory for an oracle or a proxy, got .*x"):
        mintmc.sample(
            mintmc.Posterior(gaussian_log_likelihood, stored(tmp_path, False)), sampler, init=0.0, progress=False
        )
