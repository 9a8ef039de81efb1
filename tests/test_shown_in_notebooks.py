"""What objects look like where they are looked at: in a terminal, and in the cells of a notebook."""

import itertools
from dataclasses import fields

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

import made_runs
import mintmc
from mintmc.study.planned import Option, Plan

X = np.zeros((50, 3), np.float32)


def log_likelihood(params, row):
    return -0.5 * ((row["y"] - row["x"] @ params["slope"]) / params["sd"]) ** 2


def log_prior(params):
    return -params["sd"]


POSTERIOR = mintmc.Posterior(log_likelihood, {"x": X, "y": X[:, 0]}, log_prior, transforms={"sd": "positive"})


def test_a_posterior_says_what_it_is():
    assert repr(POSTERIOR) == (
        "Posterior(log_likelihood=log_likelihood, data=ArrayData(50 rows of {'x': float32[3], 'y': float32}, in "
        "memory), log_prior=log_prior, transforms={'sd': 'ExpTransform'})"
    )
    assert repr(mintmc.Posterior(lambda mean, x: 0.0 * mean * x, X[:, 0])).endswith("in memory), log_prior=flat)")
    assert repr(made_runs.DENSITY) == "Posterior(log_density=<lambda>)"
    assert "&lt;lambda&gt;" in made_runs.DENSITY._repr_html_()
    assert "Posterior of 50 rows" in POSTERIOR._repr_html_()


def test_data_say_where_they_are(tmp_path):
    np.save(tmp_path / "x.npy", X)
    data = mintmc.open_data(tmp_path / "x.npy")
    assert repr(data) == f"DiskData('{tmp_path / 'x.npy'}', 50 rows of float32[3], not prepared)"
    prepared = mintmc.prepare(tmp_path / "x.npy", tmp_path / "prepared")
    assert repr(prepared).endswith("50 rows of float32[3], in random order)")


def test_a_diagnosis_that_speaks_against_a_run_stands_out():
    bad, good = (mintmc.diagnose(run)._repr_html_() for run in (made_runs.bad(), made_runs.good()))
    assert "should not be trusted" in bad
    assert "R-hat" in bad
    assert bad.split("solid")[1][:9] != good.split("solid")[1][:9]  # the colour of its edge
    assert "Nothing speaks against this run." in good


@pytest.mark.parametrize(
    "sampler",
    [
        mintmc.MINT(100, alpha=0.5),
        mintmc.MINTEE(10),
        mintmc.Leaps(),
        mintmc.SGLD(10),
        mintmc.EquiEnergy(mintmc.Ladder([1, 2])),
        mintmc.TunaMH(np.ones(50)),
    ],
)
def test_samplers_show_their_settings(sampler):
    html = sampler._repr_html_()
    assert type(sampler).__name__ in html
    assert html.count("<tr>") == 1 + len(fields(sampler))


def test_a_plan_is_a_table():
    options = (
        Option(mintmc.MINT(100, alpha=0.5), 2.0, 1e6, 900.0, ("<noise>",)),
        Option(mintmc.MetropolisHastings(), 20.0, 1e9, np.nan),
    )
    html = Plan(options, 1000, 2, 1, 10, True, 1000, 1000, 4, 400.0, 1.0)._repr_html_()
    assert "MINT(batch_size=100" in html
    assert "not tried" in html
    assert "&lt;noise&gt;" in html


@pytest.fixture
def inline(monkeypatch):
    """Figures as in a notebook, which shows what is open at the end of a cell, and what it returns."""
    monkeypatch.setattr(matplotlib, "get_backend", lambda **settings: "module://matplotlib_inline.backend_inline")
    before = plt.get_fignums()
    yield before
    plt.close("all")


def test_a_ladder_is_drawn_once(inline):
    figure = mintmc.plot_ladder(made_runs.swapping())
    assert plt.get_fignums() == inline
    assert len(figure.axes) >= 4


def test_energies_have_at_least_two_ticks(inline):
    axes = mintmc.plot_ladder(made_runs.swapping(rungs=2)).axes[0]
    low, high = axes.get_ylim()
    assert sum(low <= tick <= high for tick in axes.get_yticks()) >= 2


def test_a_trace_is_drawn_once_and_labelled(inline):
    run = made_runs.strange()
    figure = mintmc.plot_trace(run)
    assert plt.get_fignums() == inline
    figure.canvas.draw()
    assert all(axes.get_ylabel() for axes in figure.axes[::2])
    assert [axes.get_xlabel() for axes in figure.axes[-2:]] == ["draw", "density, by chain"]
    name = next(iter(run["posterior"].data_vars))
    assert len(mintmc.plot_trace(run, name).axes) <= len(figure.axes)
    with pytest.raises(ValueError, match="var_names must be among"):
        mintmc.plot_trace(run, ["none"])


def test_labels_of_hot_rungs_do_not_overlap():
    figure = mintmc.plot_ladder(made_runs.swapping(rungs=25))
    figure.canvas.draw()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
            along = "x" if axis is axes.xaxis else "y"
            ends = sorted((getattr(box, f"{along}0"), getattr(box, f"{along}1")) for box in boxes)
            assert all(end < start for (_, end), (start, _) in itertools.pairwise(ends)), ends
    plt.close(figure)
