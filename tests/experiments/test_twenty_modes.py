import json
from dataclasses import replace

import numpy as np
import pytest

import mintmc
from mintmc.experiments import twenty_modes
from mintmc.experiments.twenty_modes import Mixture, Scale
from truth import LIMIT

SMALL = Scale(warmup=1500, draws=4000)


def judged(sampler):
    """Largest distance of a moment from the truth, and the least number of modes that a run visits."""
    mixture = Mixture.case("a")
    tree = twenty_modes.run(mixture, sampler, SMALL, seed=3, progress=False)
    x = tree["posterior"]["theta"].values
    z = np.abs(twenty_modes.distances(twenty_modes.moments_of(x), mixture.moments())).max()
    return z, (twenty_modes.mode_weights(x) > 0).sum(axis=1).min()


@pytest.mark.parametrize(
    ("case", "moments"),
    [("a", (4.478, 4.905, 25.60468, 33.91964)), ("b", (4.68761, 5.03024, 25.66772, 31.48767))],
)
def test_exact_moments(case, moments):
    np.testing.assert_allclose(Mixture.case(case).moments(), moments, rtol=2e-6)


@pytest.mark.parametrize("case", ["a", "b"])
def test_the_density_is_normalised_and_has_its_moments(case):
    import jax

    mixture = Mixture.case(case)
    axis = np.linspace(-3, 13, 801)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2).astype(np.float32)
    log_prior = mixture.posterior().log_prior
    density = np.exp(np.asarray(jax.jit(lambda grid: jax.lax.map(log_prior, grid, batch_size=4096))(grid), float))
    density *= (axis[1] - axis[0]) ** 2
    assert density.sum() == pytest.approx(1, abs=1e-4)
    moments = np.concatenate([density @ grid, density @ grid.astype(float) ** 2])
    np.testing.assert_allclose(moments, mixture.moments(), rtol=1e-3)


@pytest.mark.slow
def test_both_samplers_find_all_modes_and_the_moments():
    for sampler in twenty_modes.samplers().values():
        z, modes = judged(sampler)
        assert z < LIMIT
        assert modes == 20


@pytest.mark.slow
@pytest.mark.parametrize("broken", [{"jump_probability": 0.0}, {"ladder": mintmc.Ladder([1, 1.5, 2.25])}])
def test_without_jumps_or_heat_modes_are_missed_and_the_moments_are_wrong(broken):
    z, modes = judged(replace(twenty_modes.samplers()["ee"], **broken))
    assert z > LIMIT
    assert modes < 20


def test_published_ratios_are_those_of_the_published_numbers():
    exact = Mixture.case("a").moments()
    for line, truth in zip(twenty_modes.PUBLISHED, exact, strict=True):
        errors = [(mean - truth) ** 2 + sd**2 for mean, sd in (line.ee, line.pt)]
        assert errors[1] / errors[0] == pytest.approx(line.ratio, abs=0.15)


@pytest.mark.slow
def test_reproduce_writes_figure_numbers_and_page(tmp_path, monkeypatch):
    monkeypatch.setitem(twenty_modes.SCALES, "quick", Scale(300, 500, 3))
    figure = twenty_modes.reproduce("quick", tmp_path, progress=False)
    assert figure.stat().st_size > 10_000
    numbers = json.loads((tmp_path / "twenty-modes.json").read_text())
    assert {claim["what"] for claim in numbers["claims"]} >= {"(a) E X1", "(b) E X2^2"}
    page = (tmp_path / "twenty-modes.md").read_text()
    assert "4.5019 (0.107)" in page
    assert "adapted" in page
