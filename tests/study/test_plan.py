"""The automatic choice: what it takes for posteriors of several kinds, and that it says when it cannot."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.samplers import MINT, Leaps, MetropolisHastings
from mintmc.study.planned import Option, Plan

RNG = np.random.default_rng(0)
RUN = {"draws": 400, "warmup": 400, "chains": 2}


def logistic(n, d):
    x = RNG.normal(size=(n, d)).astype(np.float32)
    y = (RNG.random(n) < 1 / (1 + np.exp(-x @ np.full(d, 0.5)))).astype(np.float32)
    return mintmc.Posterior(
        lambda w, row: row["y"] * (row["x"] @ w) - jax.nn.softplus(row["x"] @ w),
        {"x": x, "y": y},
        lambda w: -0.5 * (w @ w) / 100,
    )


TWO = mintmc.Posterior.from_density(
    lambda x: jnp.logaddexp(-0.5 * jnp.sum((x - 6) ** 2), jnp.log(3.0) - 0.5 * jnp.sum((x + 6) ** 2))
)


@pytest.mark.slow
@pytest.mark.audited
def test_many_rows_are_sampled_in_batches():
    # So many draws that a full pass for each takes ten times as long as anything that does not depend on n.
    found = mintmc.plan(logistic(400_000, 3), init=np.zeros(3, np.float32), **(RUN | {"draws": 4000}))
    assert isinstance(found.sampler, MINT), str(found)
    assert found.modes == 1
    assert not found.best.against
    assert found.noise([100])[0] > found.noise([1000])[0]
    assert "chosen: MINT" in str(found)
    assert len(found.plot().axes[0].lines) == 3  # the noise, the line of noise 1, what was chosen


@pytest.mark.slow
@pytest.mark.audited
def test_two_modes_are_sampled_by_leaps_with_their_weights():
    tree = mintmc.sample(TWO, init=jnp.full(2, 6.0), draws=2000, chains=4, progress=False)
    assert tree.attrs["sampler"] == Leaps.__name__
    assert "2 modes" in tree.attrs["chosen"]
    weights = mintmc.mode_weights(tree, label=lambda x: x[..., 0] < 0)
    assert abs(float(weights.weight[1]) - 0.75) < 4 * float(weights.error[1])


@pytest.mark.slow
@pytest.mark.audited
def test_few_rows_are_all_read(tmp_path):
    x = RNG.normal(2.0, 1.0, size=30).astype(np.float32)
    model = mintmc.Posterior(lambda mean, x: -0.5 * (x - mean) ** 2, x)
    out = tmp_path / "run.zarr"
    tree = mintmc.sample(model, init=0.0, out=out, progress=False, **RUN)
    assert tree.attrs["sampler"] == MetropolisHastings.__name__
    assert abs(float(tree.posterior["theta"].mean()) - x.mean()) < 4 / np.sqrt(30) / np.sqrt(100)
    # Going on is no time to choose again.
    more = mintmc.sample(model, init=0.0, out=out, progress=False, **{**RUN, "draws": 500})
    assert more.posterior.sizes["draw"] == 500


@pytest.mark.usefixtures("no_compiler")
def test_a_start_must_be_known():
    with pytest.raises(ValueError, match="init must be given: this posterior knows no start of its own, got None"):
        mintmc.sample(TWO)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"thin": 0}, "thin must be at least 1, got 0"),
        ({"out": 5}, "out must be .*, got 5"),
        ({"progress": 1.5}, "progress must be .*, got 1.5"),
        ({"draws": 0}, "draws must be at least 1, got 0"),
    ],
)
def test_a_mistake_is_refused_before_it_looks(monkeypatch, settings, message):
    monkeypatch.setattr("mintmc.study.plan.look", lambda task: pytest.fail("it looked"))
    with pytest.raises((ValueError, TypeError), match=message):
        mintmc.sample(TWO, init=jnp.zeros(2), **settings)


def test_a_start_of_density_zero_is_refused_before_it_looks(monkeypatch):
    monkeypatch.setattr("mintmc.study.plan.look", lambda task: pytest.fail("it looked"))
    half = mintmc.Posterior.from_density(lambda x: jnp.where(x > 0, -x, -jnp.inf))
    with pytest.raises(ValueError, match="log_density must be finite at init, got -inf"):
        mintmc.plan(half, init=-1.0)


def test_an_option_that_something_speaks_against_comes_last_and_says_so():
    good = Option(MetropolisHastings(), seconds=50.0, rows=1e6, effective=200.0)
    bad = Option(MINT(temperature=1.0, control=mintmc.Taylor()), 1.0, 1e3, 400.0, against=("its law is off",))
    shown = Plan((good, bad), 1000, 2, 1, 64, True, 1000, 1000, 4, 400.0, 3.0)
    assert good.seconds_to(400) == 100
    assert "against it: its law is off" in str(shown)
    assert "draws=2000 would give 400" in shown.sentences[2]
    assert np.isnan(shown.noise([10])).all()


def test_who_waits_for_a_choice_is_told_so(monkeypatch, capsys):
    def look(*args, **settings):
        assert "no sampler given: looking at the posterior to choose one" in capsys.readouterr().out
        raise KeyboardInterrupt

    monkeypatch.setattr("mintmc.study.choose.plan", look)
    with pytest.raises(KeyboardInterrupt):
        mintmc.sample(TWO, init=jnp.zeros(2))
