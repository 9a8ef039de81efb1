"""Data that stay on disk: samplers sample what they sample from memory, and notice what goes wrong in a file."""

import os
import shutil
import time

import jax
import numpy as np
import pytest

import mintmc
from mintmc.data import disk_batch as batch
from mintmc.experiments.report import mean_and_error
from mintmc.result.reading import draws_group
from truth import LIMIT, distance, gaussian_data, gaussian_log_likelihood

N, T = 4000, 40.0
X = gaussian_data(N).astype(np.float32)
STEP = mintmc.RandomWalk(step_size=0.2)
SAMPLERS = {
    "MINT": mintmc.MINT(200, temperature=T, proposal=STEP),
    "MINT, Langevin": mintmc.MINT(200, temperature=T, proposal=mintmc.Langevin(step_size=0.15)),
    "BarkerMH": mintmc.BarkerMH(100, temperature=T, proposal=STEP),
    "AustereMH": mintmc.AustereMH(400, epsilon=0.001, temperature=T, proposal=STEP),
    "ConfidenceMH": mintmc.ConfidenceMH(
        bound=lambda a, b: 6 * abs(b - a), batch_size=1000, temperature=T, proposal=STEP
    ),
}


def stored(folder, prepared):
    np.save(folder / "x.npy", X)
    return mintmc.prepare(folder / "x.npy", folder / "x.prepared") if prepared else folder / "x.npy"


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Posteriors whose files nobody changes: prepared, and not."""
    folders = {prepared: tmp_path_factory.mktemp("kept") for prepared in (True, False)}
    return {each: mintmc.Posterior(gaussian_log_likelihood, stored(folders[each], each)) for each in folders}


QUICK = ("MINT",)


@pytest.mark.parametrize(
    ("name", "prepared"),
    [
        *(pytest.param(name, True, marks=() if name in QUICK else pytest.mark.slow) for name in SAMPLERS),
        *((name, False) for name in QUICK),
    ],
)
def test_batches_from_disk_give_the_tempered_posterior(name, prepared, kept):
    posterior = kept[prepared]
    tree = mintmc.sample(posterior, SAMPLERS[name], init=0.0, draws=1500, warmup=0, chains=2, progress=False)
    theta = tree.tempered_posterior.theta.values
    assert distance(theta, 0) < LIMIT
    assert distance(theta**2, T / N) < LIMIT


@pytest.mark.parametrize(
    "sampler", [mintmc.MetropolisHastings(STEP), mintmc.BarkerMH(100, temperature=T, proposal=STEP)]
)
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler",
    [
        mintmc.EquiEnergy(LADDER, proposal=mintmc.Langevin()),
        pytest.param(mintmc.ParallelTempering(LADDER), marks=pytest.mark.slow),
    ],
)
def test_ladders_on_disk_give_the_posterior(sampler, kept):
    posterior = kept[True]
    tree = mintmc.sample(posterior, sampler, init=0.0, draws=1500, warmup=200, chains=2, progress=False)
    theta = tree.posterior.theta.values
    assert distance(theta, 0) < LIMIT
    assert distance(theta**2, 1 / N) < LIMIT


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler", [mintmc.SGLD(200, step_size=1e-5), mintmc.SGHMC(200, step_size=2e-3, friction=20.0)]
)
def test_stochastic_gradients_from_disk_find_the_mean(sampler, kept):
    # Their variance depends on the step size by design, and is judged elsewhere.
    posterior = kept[True]
    tree = mintmc.sample(posterior, sampler, init=0.2, draws=1500, warmup=500, chains=2, progress=False)
    assert distance(tree.posterior.theta.values, 0) < LIMIT


@pytest.mark.parametrize("sampler", [mintmc.AustereMH(100, oracle_error=0.1), mintmc.ConfidenceMH(bound="oracle")])
def test_an_oracle_needs_the_data_in_memory(sampler, tmp_path, no_compiler):
    with pytest.raises(ValueError, match=r"data must be in memory, or prepared, for an oracle or a proxy, got .*x"):
        mintmc.sample(
            mintmc.Posterior(gaussian_log_likelihood, stored(tmp_path, False)), sampler, init=0.0, progress=False
        )


def test_a_resumed_run_refuses_a_file_that_was_overwritten(tmp_path):
    path, out = tmp_path / "x.npy", tmp_path / "run.zarr"
    np.save(path, X)
    settings = {"init": 0.0, "warmup": 0, "chains": 1, "progress": False}
    posterior = mintmc.Posterior(gaussian_log_likelihood, path)
    mintmc.sample(posterior, SAMPLERS["MINT"], draws=20, out=out, **settings)
    shutil.copy(path, tmp_path / "copy.npy")  # at another time, but the same
    copied = mintmc.Posterior(gaussian_log_likelihood, tmp_path / "copy.npy")
    assert mintmc.resume(out, copied, draws=30, progress=False).tempered_posterior.sizes["draw"] == 30
    # All but the 64 rows that used to be compared.
    kept = np.linspace(0, N - 1, 64, dtype=int)
    changed = X + 1
    changed[kept] = X[kept]
    np.save(path, changed)
    with pytest.raises(ValueError, match=r"data was full-.*, now full-"):
        mintmc.resume(out, mintmc.Posterior(gaussian_log_likelihood, path), draws=40, progress=False)


def test_a_file_overwritten_during_a_run_is_an_error(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, X)
    posterior = mintmc.Posterior(gaussian_log_likelihood, path)
    batches = posterior.data.batches

    def and_overwrite(*args):
        rows = batches(*args)
        np.save(path, X + 1)
        os.utime(path, ns=(0, 0))
        return rows

    posterior.data.batches = and_overwrite
    with pytest.raises(OSError, match=r"x.npy must not change while it is open"):
        mintmc.sample(posterior, SAMPLERS["MINT"], init=0.0, draws=2000, warmup=0, chains=1, progress=False)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="only the CPU reads a file where it lies")
def test_prepared_rows_are_not_copied(tmp_path):
    data = stored(tmp_path, True)
    assert data.mapped.unsafe_buffer_pointer() == data._source.mapped().ctypes.data
    assert mintmc.open_data(tmp_path / "x.npy").mapped is None
    assert mintmc.open_data(tmp_path / "x.prepared", transform=lambda x: 2 * x).mapped is None


@pytest.mark.parametrize("pause", [0.0, 3600.0], ids=["looked at often", "looked at last"])
def test_a_prepared_file_overwritten_during_a_run_is_an_error(tmp_path, pause):
    data = stored(tmp_path, True)
    data._look_again = time.monotonic() + pause  # where looking takes long it is seldom done, but once at the end

    def overwriting(theta, x):
        if isinstance(x, jax.core.Tracer):  # once, when the program is made
            os.utime(tmp_path / "x.prepared" / "0.npy", ns=(0, 0))
        return gaussian_log_likelihood(theta, x)

    posterior = mintmc.Posterior(overwriting, data)
    with pytest.raises(OSError, match=r"x.prepared must not change while it is open"):
        mintmc.sample(posterior, SAMPLERS["MINT"], init=0.0, draws=2000, warmup=0, chains=1, progress=False)


def test_a_copied_file_gives_the_same_draws_after_it_was_checked(tmp_path):
    data = stored(tmp_path, True)
    settings = {"init": 0.0, "draws": 30, "warmup": 0, "chains": 1, "progress": False}
    first = mintmc.sample(mintmc.Posterior(gaussian_log_likelihood, data), SAMPLERS["MINT"], **settings)
    shutil.copytree(tmp_path / "x.prepared", tmp_path / "copy", copy_function=shutil.copyfile)
    copy = mintmc.Posterior(gaussian_log_likelihood, tmp_path / "copy")
    second = mintmc.sample(copy, SAMPLERS["MINT"], **settings)
    np.testing.assert_array_equal(first.tempered_posterior.theta, second.tempered_posterior.theta)
    spoilt = np.lib.format.open_memmap(tmp_path / "copy" / "0.npy", "r+")
    spoilt[17] = np.nan
    spoilt.flush()
    broken = mintmc.Posterior(gaussian_log_likelihood, tmp_path / "copy")
    with pytest.raises(ValueError, match=r"data must be finite, got nan in row 17 of .*copy"):
        mintmc.sample(broken, SAMPLERS["MINT"], **settings)


@pytest.mark.parametrize(("thin", "prepared"), [(1, False), (12, False), (1, True)])
def test_draws_do_not_depend_on_how_a_run_is_cut(thin, prepared, tmp_path, monkeypatch):
    # Rows of 5 steps at a time: less than a stretch, and with thin = 12 (read by fours) less than a draw.
    monkeypatch.setattr(batch, "_BYTES_AT_ONCE", 5 * 200 * 4)
    posterior = mintmc.Posterior(gaussian_log_likelihood, stored(tmp_path, prepared))
    settings = {"init": 0.0, "warmup": 13, "chains": 2, "thin": thin, "progress": False}
    whole = mintmc.sample(posterior, SAMPLERS["MINT"], draws=60, **settings)
    mintmc.sample(posterior, SAMPLERS["MINT"], draws=23, out=tmp_path / "run.zarr", **settings)
    resumed = mintmc.resume(tmp_path / "run.zarr", posterior, draws=60, progress=False)
    np.testing.assert_array_equal(whole.tempered_posterior.theta, resumed.tempered_posterior.theta)


def test_batches_larger_than_what_is_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "_BYTES_AT_ONCE", 100)
    posterior = mintmc.Posterior(gaussian_log_likelihood, stored(tmp_path, False))
    sampler = mintmc.SGLD(3000, step_size=1e-5)
    tree = mintmc.sample(posterior, sampler, init=0.0, draws=50, warmup=0, chains=1, progress=False)
    assert np.isfinite(tree.posterior.theta).all()


@pytest.mark.slow
def test_the_reference_of_a_ladder_is_counted_where_each_batch_finds_it_out(tmp_path):
    # In memory one pass for the reference's density and one for its rows; on disk a batch more a step instead.
    sampler = mintmc.ParallelTempering(mintmc.Ladder([1, 16], [None, 200]), proposal=mintmc.RandomWalk(step_size=0.1))
    trees = [
        mintmc.sample(
            mintmc.Posterior(gaussian_log_likelihood, source),
            sampler,
            init=0.0,
            draws=20,
            warmup=0,
            chains=1,
            progress=False,
        )
        for source in (X, stored(tmp_path, True))
    ]
    memory, disk = (int(tree.sample_stats.data_touched[0, -1]) for tree in trees)
    assert disk - memory == 200
    memory, disk = (tree.attrs["data_touched_setup"][0] for tree in trees)
    assert memory - disk == N


LAW = {
    # Sampler, steps from draw to draw, draws. n/m, n_eff/m and the step are those of 65,536 rows with batches of 1,000
    # (SGLD, whose variance is 1.16 times exact by its docstring's formula) and of 4,000 (the others, n_eff = 3,682).
    "SGLD": (mintmc.SGLD(125, step_size=0.01 / 8192), 40, 3000),
    "MINT": (mintmc.MINT(500, temperature=17.8, proposal=mintmc.RandomWalk(step_size=0.1)), 1, 8000),
    "ParallelTempering": (mintmc.ParallelTempering(mintmc.Ladder([1, 17.8], [None, 500])), 1, 3000),
}


def spread(name, source):
    """The mean of n theta^2 / 2, the energy (of a ladder that of its hot rung), and its standard error."""
    sampler, thin, draws = LAW[name]
    posterior = mintmc.Posterior(gaussian_log_likelihood, source)
    tree = mintmc.sample(posterior, sampler, init=0.0, draws=draws, warmup=0, chains=2, thin=thin, progress=False)
    if "ladder" in tree.children:
        return mean_and_error(tree.ladder.energy.values[1])
    return mean_and_error(4096 * tree[draws_group(tree)].theta.values.astype(float) ** 2)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "ParallelTempering" else ()) for name in LAW]
)
def test_the_law_is_that_of_memory(name, tmp_path, monkeypatch):
    x = gaussian_data(8192)
    np.save(tmp_path / "x.npy", x)
    prepared = mintmc.prepare(tmp_path / "x.npy", tmp_path / "p")

    def standard_errors(one, other):
        return abs(one[0] - other[0]) / np.hypot(one[1], other[1])

    memory, disk = (spread(name, source) for source in (x, prepared))
    assert standard_errors(memory, disk) < LIMIT
    # The broken twin: batches from a sixteenth of the rows, whose own error lasts; the one that shows it best.
    window = max((prepared.read(i, i + 512) for i in range(0, 8192, 512)), key=lambda rows: abs(rows.mean()))

    def from_a_window(self, rows, ticket, start, size):
        return self.beside(jax.numpy.asarray(window)[self.order(ticket, start, size).ravel() % len(window)])

    monkeypatch.setattr(mintmc.data.Runs, "take", from_a_window)
    assert standard_errors(memory, spread(name, prepared)) > LIMIT
