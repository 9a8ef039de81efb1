"""One contract for every sampler of the package, on one posterior of 300 rows: what is true of a run is true of all.

A sampler that is added gets a line in ``SAMPLERS``; whether its draws come from the right law is tested elsewhere.
"""

from dataclasses import is_dataclass, replace
from functools import cache
from typing import Any, ClassVar

import jax
import numpy as np
import pytest

import mintmc
from compiling import compilations
from mintmc import samplers
from mintmc.compiled import identity
from mintmc.result.reading import draws_group
from mintmc.run import driver, stretches
from mintmc.run.sample import Interrupted, _task
from mintmc.statistics import DATA_TOUCHED
from mintmc.store.encode import decode, encode, is_readable
from stores import assert_same
from truth import mostly_slow

N, DIM, CHAINS, DRAWS, WARMUP, THIN = 300, 2, 2, 30, 120, 3
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, DIM)).astype(np.float32)
Y = RNG.choice([-1, 1], N).astype(np.float32)
BOUND, REMAINDER = mintmc.logistic_bound(X), mintmc.logistic_remainder(X)
WALK = mintmc.RandomWalk(preconditioner="diagonal")
LADDER = mintmc.Ladder([1, 4], [None, 60])


def log_likelihood(theta, datum):
    return jax.nn.log_sigmoid(datum["y"] * (datum["x"] @ theta))


def log_prior(theta):
    return -0.5 * theta @ theta


POSTERIOR = mintmc.Posterior(log_likelihood, {"x": X, "y": Y}, log_prior)
SAMPLERS = {
    # Between them every proposal, both ways to draw batches, and what warm-up can adapt.
    "MetropolisHastings": lambda: mintmc.MetropolisHastings(mintmc.Hamiltonian(steps=2), temper="likelihood"),
    "MINT": lambda: mintmc.MINT(
        30, temperature=20.0, proposal=mintmc.Langevin(preconditioner="dense"), batching="uniform"
    ),
    "MINT, control": lambda: mintmc.MINT(30, temperature=1.0, control=mintmc.Taylor()),
    "BarkerMH": lambda: mintmc.BarkerMH(30, temperature=5.0, proposal=WALK),
    "AustereMH": lambda: mintmc.AustereMH(50, proposal=mintmc.Langevin()),
    "ConfidenceMH": lambda: mintmc.ConfidenceMH(30, bound=BOUND, temperature=10.0),
    "ConfidenceMH, proxy": lambda: mintmc.ConfidenceMH(30, proxy=mintmc.TaylorProxy(REMAINDER, every=20)),
    "FireflyMC": lambda: mintmc.FireflyMC(mintmc.JaakkolaJordan.untuned(X, Y), proposal=WALK),
    "TunaMH": lambda: mintmc.TunaMH.logistic(X, chi=1e-3),
    "ScalableMH": lambda: mintmc.ScalableMH(mintmc.RegressionBounds.logistic(X), order=1),
    "SGLD": lambda: mintmc.SGLD(30, step_size=mintmc.Polynomial(1e-3, 1.0, 0.6)),
    "SGHMC": lambda: mintmc.SGHMC(30, step_size=1e-2, friction=10.0, resample_every=7),
    "ParallelTempering": lambda: mintmc.ParallelTempering(LADDER),
    "Leaps": lambda: mintmc.Leaps(mintmc.RandomWalk(), modes=[np.zeros(DIM), np.ones(DIM)], places=3),
    "EquiEnergy": lambda: mintmc.EquiEnergy(LADDER, proposal=mintmc.Langevin(), round_length=25, capacity=20),
    "MINTEE": lambda: mintmc.MINTEE(40, growth=3.0, rungs=2, proposal=WALK, round_length=25, capacity=20),
}
WRITTEN_DOWN = [name for name in SAMPLERS if "ConfidenceMH" not in name]
"""Those of which a store can hold everything: no setting of theirs is a function."""
NEEDS_MEMORY = ["ConfidenceMH, proxy"]
"""Those that cannot read a file where it lies."""
ON_ALL_DATA = ["MetropolisHastings", "FireflyMC", "TunaMH"]
"""Those that draw no batches: it does not matter where the rows are."""
of_every_sampler = pytest.mark.parametrize("name", SAMPLERS)
of_every_kind = pytest.mark.parametrize("name", mostly_slow(SAMPLERS, "MINT", "SGLD", "EquiEnergy"))
"""One of each kind of kernel or run every day, all of them in the slow suite."""


def run(name, posterior=POSTERIOR, sampler=None, **settings):
    settings = {"draws": DRAWS, "warmup": WARMUP, "chains": CHAINS, "seed": 3, "progress": False} | settings
    return mintmc.sample(posterior, sampler or SAMPLERS[name](), init=np.zeros(DIM), **settings)


@cache
def made(name):
    """The run that all others are compared with."""
    return run(name)


@cache
def planned(name):
    """The run that the sampler makes of a task, before it begins."""
    return SAMPLERS[name]().plan(_task(POSTERIOR, SAMPLERS[name](), np.zeros(DIM), 1, 0, 1, WARMUP, 1))


def kernel_of(name):
    """One step of the sampler, of its coldest rung if it has several programs."""
    return getattr(planned(name), "kernel", None) or planned(name).kernels[0]


def rows_of_rings(name):
    """Rows that are read once for every draw, however many steps it has: to tell which ring it belongs to."""
    rings = getattr(planned(name), "rings", None)
    return 0 if rings is None else sum(len(each.log_likelihood) for each in rings.subsets[1:-1] if each is not None)


def theta_of(tree):
    return tree[draws_group(tree)]["theta"]


def test_every_sampler_is_here():
    known = {name for name, kind in vars(samplers).items() if is_dataclass(kind) and hasattr(kind, "plan")}
    assert {type(make()).__name__ for make in SAMPLERS.values()} == known


@of_every_sampler
@pytest.mark.usefixtures("no_compiler")
def test_what_does_not_fit_is_refused_before_anything_compiles(name, tmp_path):
    sampler, other = SAMPLERS[name](), mintmc.Posterior(log_likelihood, {"x": X[:20], "y": Y[:20]}, log_prior)
    vector = mintmc.Posterior(lambda theta, datum: theta * datum["y"], {"x": X, "y": Y}, log_prior)
    nonsense = {
        "another form of params": (POSTERIOR, np.zeros(DIM + 1), "log_likelihood must work for params like init"),
        "a likelihood that is no number": (vector, np.zeros(DIM), r"log_likelihood must return a scalar, got shape"),
        "no params": (POSTERIOR, {}, "init must hold at least one array of floats, got {}"),
    }
    if name not in ("MetropolisHastings", "Leaps"):  # which need neither batches nor data
        nonsense["fewer rows"] = (other, np.zeros(DIM), r"(n|n - 1)=(20|19)")
        density = mintmc.Posterior.from_density(log_prior)
        nonsense["no data"] = (density, np.zeros(DIM), "posterior must have data|for a density without data")
    for posterior, init, message in nonsense.values():
        with pytest.raises((ValueError, TypeError), match=message):
            mintmc.sample(posterior, sampler, init=init, out=tmp_path / "run.zarr", progress=False)
    assert list(tmp_path.iterdir()) == []


@of_every_sampler
def test_draws_and_the_statistics_that_were_declared_are_in_the_tree(name):
    tree = made(name)
    theta, stats = theta_of(tree), tree["sample_stats"]
    assert theta.dims == ("chain", "draw", "theta_dim_0")
    assert theta.shape == (CHAINS, DRAWS, DIM)
    assert np.isfinite(theta).all()
    assert (theta.values.std(axis=1) > 0).all()
    wanted = {each.name: each for each in kernel_of(name).statistics if each.kept == "draws"}
    assert set(stats.data_vars) == wanted.keys() | {"data_touched"}
    for each in wanted.values():
        values = stats[each.name]
        assert values.dims[:2] == ("chain", "draw")
        assert len(values.dims) == 2 + len(each.dims)
        assert values.dtype == each.dtype, each.name
        assert values.attrs.get("unit", "") == each.unit
    assert stats["data_touched"].dtype == np.int64
    assert tree.attrs["undefined_moves"] == 0


@of_every_sampler
def test_data_are_counted_as_declared(name):
    tree, kernel = made(name), kernel_of(name)
    touched = tree["sample_stats"]["data_touched"].values
    assert (touched >= 0).all()
    assert touched.sum() > 0
    if kernel.touched is None:
        assert "data_touched" in [each.name for each in kernel.statistics]
    else:
        assert (touched == kernel.touched).all()
        first, *others = tree.attrs["data_touched_setup"]
        assert others == [kernel.init_touched + WARMUP * kernel.touched] * (CHAINS - 1)
        # Centres are found, by full passes, before the first chain begins.
        before = first - others[0]
        assert before % N == 0
        assert (before > 0) == (getattr(planned(name), "centres", None) is not None)


def in_threes(each, values):
    """What a draw of three steps should report of a statistic, from what the three steps did."""
    steps = values.reshape(CHAINS, DRAWS // THIN, THIN, *values.shape[2:])
    return {"mean": steps.mean(axis=2), "sum": steps.sum(axis=2), "last": steps[:, :, -1]}[each.over]


@of_every_kind
def test_a_thinned_draw_is_every_third_state_and_reports_all_three_steps(name):
    sampler, alone = SAMPLERS[name](), made(name)
    if "round_length" in vars(sampler):
        # What lies in its rings depends on which draws there are. Without jumps a rung does not look at them.
        sampler = replace(sampler, jump_probability=0.0)
        alone = run(name, sampler=sampler)
    sparse = run(name, sampler=sampler, draws=DRAWS // THIN, thin=THIN)
    np.testing.assert_array_equal(theta_of(sparse), theta_of(alone)[:, THIN - 1 :: THIN])
    for each in kernel_of(name).statistics:
        if each.kept == "draws" and each != DATA_TOUCHED:
            expected = in_threes(each, alone["sample_stats"][each.name].values)
            np.testing.assert_allclose(sparse["sample_stats"][each.name], expected, rtol=1e-5, err_msg=each.name)
    touched = in_threes(DATA_TOUCHED, alone["sample_stats"]["data_touched"].values - rows_of_rings(name))
    np.testing.assert_array_equal(sparse["sample_stats"]["data_touched"], touched + rows_of_rings(name))


class Pressed(driver.Interrupt):
    """Ctrl-C as soon as a run has gone beyond each of these moments; one moment for each time that it runs."""

    moments: ClassVar[list[str]] = []
    run: Any = None
    is_pressed = False

    @property
    def requested(self):
        if not self.is_pressed and self.moments and getattr(self.run, self.moments[0]) > 0:
            self.moments.pop(0)
            self.is_pressed = True
        return self.is_pressed

    @requested.setter
    def requested(self, value):
        pass


@pytest.fixture
def pressed(monkeypatch, request):
    """Stop a run in warm-up, and again in its draws; the whole one, to compare it with, is made before."""
    made(request.node.callspec.params["name"])
    drive = driver.Driver.drive

    def watched(self, audit):
        Pressed.run = self.run
        drive(self, audit)

    monkeypatch.setattr(driver.Driver, "drive", watched)
    monkeypatch.setattr(driver, "Interrupt", Pressed)
    monkeypatch.setattr(Pressed, "moments", ["warmed", "drawn"])


@of_every_sampler
@pytest.mark.usefixtures("pressed")
def test_stopped_twice_and_cut_elsewhere_it_makes_the_same_draws(name, tmp_path, monkeypatch):
    """On one core, in other stretches, stopped in warm-up and in draws; its settings are the store's if it has them."""
    path, uninterrupted = tmp_path / "run.zarr", made(name)
    missing = {} if name in WRITTEN_DOWN else {"sampler": SAMPLERS[name]()}
    monkeypatch.setattr(driver, "cores", lambda lanes: 1)
    monkeypatch.setattr(stretches, "FIRST", 13)
    monkeypatch.setattr(stretches, "next_size", lambda size, seconds, capacity: 11)
    with pytest.raises(KeyboardInterrupt, match="interrupted: 0 of 30 draws were made and saved"):
        run(name, out=path)
    with pytest.warns(Interrupted, match=r"interrupted: \d+ of 30 draws were made and saved"):
        part = mintmc.resume(path, POSTERIOR, progress=False, **missing)
    assert 0 < theta_of(part).sizes["draw"] < DRAWS
    assert_same(mintmc.resume(path, POSTERIOR, progress=False, **missing), uninterrupted)


@of_every_sampler
def test_a_second_run_compiles_nothing(name):
    made(name)
    with compilations() as compiled:
        second = run(name)
    assert compiled == []
    assert_same(second, made(name))
    # Another seed or another length is no other program; nor is a run that goes to a store.
    with compilations() as compiled:
        run(name, seed=4, draws=DRAWS + 5)
    assert compiled == []


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory):
    """The same rows in a file that the host must read."""
    path = tmp_path_factory.mktemp("data") / "rows.npy"
    np.save(path, np.column_stack([X, Y]))
    data = mintmc.open_data(path, transform=lambda rows: {"x": rows[:, :DIM], "y": rows[:, DIM]})
    return mintmc.Posterior(log_likelihood, data, log_prior)


@of_every_kind
def test_data_on_disk_give_draws(name, on_disk):
    if name in NEEDS_MEMORY:
        with pytest.raises(ValueError, match=r"data must be in memory, or prepared, for an oracle or a proxy, got "):
            run(name, on_disk)
        return
    # Without warm-up one program less is compiled; only draws that are compared must have had it, and fits of modes.
    is_same = name in ON_ALL_DATA
    tree = run(name, on_disk, warmup=WARMUP if is_same or name == "Leaps" else 0)
    if is_same:
        # In memory rows lie by column, so that the last digit of a product may differ.
        np.testing.assert_allclose(theta_of(tree), theta_of(made(name)), atol=1e-3)
    assert theta_of(tree).shape == (CHAINS, DRAWS, DIM)
    assert np.isfinite(theta_of(tree)).all()
    assert (theta_of(tree).values.std(axis=1) > 0).all()


@of_every_sampler
def test_settings_are_written_down_and_read_back(name):
    sampler = SAMPLERS[name]()
    coded = encode(sampler)
    assert is_readable(coded) == (name in WRITTEN_DOWN)
    if name in WRITTEN_DOWN:
        back = decode(coded)
        assert back == sampler
        assert repr(back) == repr(sampler)
        assert encode(back) == coded


@of_every_sampler
def test_equal_settings_are_equal(name):
    one, other = SAMPLERS[name](), SAMPLERS[name]()
    assert one is not other
    assert one == other
    assert hash(one) == hash(other)
    assert identity(one) == identity(other)
    for another in (make() for key, make in SAMPLERS.items() if key != name):
        assert one != another
        assert identity(one) != identity(another)
