"""Every example of the gallery runs at a small size, and finds what its data were made with."""

import numpy as np
import pytest

import gallery
from pages import ROOT


def small(name, **settings):
    """The draws of an example; its figure has something in it."""
    tree, figure = gallery.loaded(name).main(**settings)
    assert any(axes.has_data() for axes in figure.axes)
    return tree.posterior


def far(draws, truth):
    """The largest distance of a posterior mean from the truth, in posterior standard deviations."""
    return float((np.abs(draws.mean(("chain", "draw")) - truth) / draws.std(("chain", "draw"))).max())


def test_every_example_has_a_page_and_its_files():
    for name in gallery.NAMES:
        stem = name.rpartition("/")[2]
        pages = [page for page in (ROOT / "docs/gallery").glob("*.md") if f"examples/{name}.py" in page.read_text()]
        assert len(pages) == 1, name
        assert all((ROOT / "docs/gallery" / f"{stem}.{kind}").exists() for kind in ("txt", "png")), name


@pytest.mark.slow
def test_regression_on_a_table():
    truth = list(gallery.loaded("regression_on_a_table").TRUTH.values())
    assert far(small("regression_on_a_table", n=5000, draws=300)["beta"], truth) < 4


@pytest.mark.slow
def test_poisson_regression():
    truth = list(gallery.loaded("poisson_regression").TRUTH.values())
    assert far(small("poisson_regression", n=3000, draws=300)["beta"], truth) < 4


@pytest.mark.slow
def test_robust_regression():
    # Failures are no tail of a Student's t, and may shift it a little; the normal's slope is about 1 instead of 2.
    slope = small("robust_regression", n=1000, draws=300)["beta"].sel(term="x")
    assert 1.9 < float(slope.mean()) < 2.1


@pytest.mark.slow
def test_mixture_label_switching():
    means = small("mixture_label_switching", n=500, draws=500)["mean"].values
    # All six orders of the three means are visited.
    assert len({tuple(order) for order in np.argsort(means, axis=-1).reshape(-1, 3)}) == 6


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["plain_jax", "equinox_module", "flax_module"])
def test_neural_network(variant, capsys):
    draws = small(f"neural_network/{variant}", n=100, draws=100, warmup=200)
    assert sum(array.sizes["draw"] > 0 for array in draws.data_vars.values()) >= 4
    assert "R-hat of the curve" in capsys.readouterr().out


@pytest.mark.slow
def test_pymc_model():
    truth = list(gallery.loaded("pymc_model").SLOPE.values())
    slope = small("pymc_model", n=3000, draws=300)["slope"]
    assert slope.dims == ("chain", "draw", "predictor")
    assert far(slope, truth) < 4


@pytest.mark.slow
def test_marginalised_groups():
    draws = small("marginalised_groups", n=2000, draws=300)
    assert max(far(draws[name], truth) for name, truth in gallery.loaded("marginalised_groups").TRUTH.items()) < 4
