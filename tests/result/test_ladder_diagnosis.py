"""Every warning appears for a ladder that deserves it, and for a healthy one none does."""

import json
import re

import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import mintmc
from mintmc.result.diagnosis import Diagnosis
from mintmc.result.ladder import LadderFacts, ladder_group
from mintmc.result.ladder_diagnosis import ladder_numbers, ladder_warnings, mode_numbers, mode_warnings
from mintmc.result.ladder_plots import plot_ladder
from mintmc.result.rungs import summary, table
from mintmc.samplers.parallel_tempering import ParallelTempering

RUNGS, CHAINS, DRAWS, RINGS = 3, 2, 400, 4
TEMPERATURES = (1.0, 3.0, 9.0)


def each(*values):
    """The same for every chain."""
    return np.repeat(np.array(values, float)[:, None], CHAINS, axis=1)


def made_up(kind="jump", penalty=True, step_size=0.1, **changes):
    """A tree like that of a healthy run, but for ``changes``; ``kind`` tells jumps of rings from swaps."""
    rng = np.random.default_rng(0)
    energy = rng.gamma(2.0, size=(RUNGS, CHAINS, DRAWS)) * np.array(TEMPERATURES)[:, None, None]
    rates = {
        "acceptance_rate": each(0.3, 0.3, 0.3),
        "log_ratio_noise": each(0.0, 1.0, 0.5),
        f"{kind}_rate": each(0.7, 0.6, np.nan),
        f"{kind}_noise": each(0.0, 0.3, np.nan),
    }
    others = {"round_trips": np.array([12, 9]), "replica": np.tile(np.arange(RUNGS)[:, None, None], (1, CHAINS, DRAWS))}
    if kind == "jump":
        rates["empty_rings"] = each(0.0, 0.0, np.nan)
        edges = np.broadcast_to(np.array([1.0, 5.0, 15.0]), (RUNGS, CHAINS, RINGS - 1))
        occupancy = np.full((RUNGS, CHAINS, RINGS), 1 / RINGS)
        occupancy[0] = 0  # nobody jumps to rung 0
        others = {"ring_occupancy": occupancy, "ring_edges": edges}
    facts = {"energy": energy, "rates": rates | changes.pop("rates", {}), **others, **changes}
    tree = xarray.DataTree.from_dict({"ladder": ladder_group(LadderFacts(TEMPERATURES, (1000, 200, 200), **facts))})
    tree.attrs["sampler_settings"] = json.dumps({"penalty": penalty, "proposal": {"step_size": step_size}})
    return tree


def judged(tree, labels=None):
    """What ``diagnose`` says of the rungs, of a tree that has nothing else."""
    rungs = summary(tree)
    numbers, warnings = ladder_numbers(tree, rungs), list(ladder_warnings(tree, rungs))
    if labels is not None:
        numbers, warnings = numbers | mode_numbers(labels), [*warnings, *mode_warnings(labels)]
    return Diagnosis(numbers, tuple(warnings), table(tree, rungs))


def shifted(offset):
    """Energies of which those of rung 2 lie higher."""
    energy = made_up()["ladder"]["energy"].values.copy()
    energy[2] += offset
    return energy


def occupied(ring):
    """Occupancy of rings of which one of rung 1 was never filled."""
    occupancy = made_up()["ladder"]["ring_occupancy"].values.copy()
    occupancy[1, :, ring] = 0
    return occupancy


@pytest.mark.parametrize("kind", ["jump", "swap"])
def test_nothing_speaks_against_a_healthy_ladder(kind):
    report = judged(made_up(kind))
    assert report.trusted, report
    assert report.numbers["rungs"] == 3
    assert report.numbers[f"lowest_{kind}_rate"] == pytest.approx(0.6)
    assert report.numbers["lowest_rung_acceptance"] == pytest.approx(0.3)
    assert report.numbers.get("round_trips") == (21 if kind == "swap" else None)


WARNINGS = {
    # name: (tree, what the one warning says)
    "few jumps": (
        made_up(rates={"jump_rate": each(0.7, 0.02, np.nan)}),
        r"rungs 1 and 2 \(T = 3 and 9\) hardly overlap: 2.0% of jumps are accepted; put a rung between them",
    ),
    "few swaps": (
        made_up("swap", rates={"swap_rate": each(0.01, 0.6, np.nan)}),
        r"rungs 0 and 1 \(T = 1 and 3\) hardly overlap: 1.0% of swaps",
    ),
    "no jumps": (
        made_up(rates={"jump_rate": each(np.nan, 0.6, np.nan)}),
        r"rungs 0 and 1 .* hardly overlap: 0.0% of jumps",
    ),
    "disjoint energies": (
        made_up(energy=shifted(1000.0)),
        r"rungs 1 and 2 \(T = 3 and 9\) do not overlap: .*; put rungs between them",
    ),
    "never filled": (
        made_up(ring_occupancy=occupied(0)),
        r"rung 0 \(T = 1\) finds nothing to jump to in [0-9.]+% of its states: rings of rung 1 are empty there",
    ),
    "often empty": (
        made_up(rates={"empty_rings": each(0.0, 0.2, np.nan)}),
        r"rung 1 \(T = 3\) finds nothing to jump to in 20.0% of its states: rings of rung 2 are empty",
    ),
    "noise": (
        made_up(rates={"log_ratio_noise": each(0.0, 5.0, 0.5)}),
        r"log-ratio noise 5.0 of rung 1 \(T = 3\) is above 4: use larger batches",
    ),
    "noise of jumps": (
        made_up(rates={"jump_noise": each(0.0, 6.0, np.nan)}),
        r"log-ratio noise 6.0 of jumps of rung 1 .* is above 4: use larger batches or a rung between",
    ),
    "no penalty": (
        made_up(penalty=False, rates={"log_ratio_noise": each(0.0, 1.0, 0.0)}),
        # 1.46 times as hot: the docstring of implied_temperature.
        r"without penalty the noise heats rung 1 \(T = 3\) to up to T = 4.367: use penalty=True",
    ),
    "stuck": (
        made_up(rates={"acceptance_rate": np.array([[0.3, 0.3], [0.3, 0.01], [0.3, 0.3]])}),
        r"rung 1 \(T = 3\) accepts only 1.0% of its moves in a chain: use a smaller step",
    ),
    "adapted elsewhere": (
        made_up(step_size=None, rates={"acceptance_rate": np.array([[0.3, 0.3], [0.3, 0.3], [0.3, 0.025]])}),
        r"rung 2 \(T = 9\) accepts only 2.5% of its moves in a chain: its step was adapted in warm-up and does not fit",
    ),
    "no round trip": (
        made_up("swap", round_trips=np.array([5, 0])),
        "1 of 2 chains made no round trip between the coldest and the hottest rung",
    ),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_what_is_wrong_is_said_with_advice(name):
    tree, message = WARNINGS[name]
    report = judged(tree)
    assert not report.trusted
    (warning,) = report.warnings
    assert re.search(message, warning), warning
    assert warning in str(report)


def test_a_ring_that_nobody_needs_may_stay_empty():
    # Energies of rung 0 are below 15 = 5 times their mean and more; the highest ring of rung 1 begins there.
    quiet = shifted(0.0)
    quiet[0] = np.minimum(quiet[0], 14.0)
    assert judged(made_up(energy=quiet, ring_occupancy=occupied(3))).trusted


def test_modes_that_chains_disagree_on():
    rng = np.random.default_rng(1)
    alike = rng.integers(0, 2, size=(CHAINS, DRAWS))
    assert judged(made_up(), alike).trusted
    apart = np.stack([rng.random(DRAWS) < 0.2, rng.random(DRAWS) < 0.8]).astype(int)
    report = judged(made_up(), apart)
    assert [warning for warning in report.warnings if "the chains disagree on the weights of the modes" in warning]
    assert report.numbers["mode_chi_square"] > 50


def test_energies_are_told_in_units_of_the_temperature():
    rungs = summary(made_up())
    # Gamma(2) times T, above a lowest of about nothing.
    np.testing.assert_allclose(rungs.energy, 2.0, atol=0.25)
    # Estimates on batches may be lower than any state: they are not the lowest.
    noisy = shifted(-500.0)
    assert summary(made_up(energy=noisy)).energy[0] == rungs.energy[0]


def test_the_table_has_a_line_for_each_rung():
    header, *lines = judged(made_up()).table.splitlines()
    assert header.split() == ["rung", "T", "batch", "acceptance", "noise", "jump", "rate", "energy/T", "unfed"]
    assert [line.split()[:3] for line in lines] == [["0", "1", "1,000"], ["1", "3", "200"], ["2", "9", "200"]]
    assert len({len(line) for line in (header, *lines)}) == 1
    assert "swap rate" in judged(made_up("swap")).table
    assert "unfed" not in judged(made_up("swap")).table


def test_a_tree_without_a_ladder_is_refused():
    with pytest.raises(ValueError, match=r"tree must have a group ladder, got \['posterior'\]"):
        judged(xarray.DataTree.from_dict({"posterior": xarray.Dataset()}))


@pytest.fixture(scope="module")
def gap():
    """A ladder that ends in a gap: nothing that the hottest rung visits is known to the others."""
    density = mintmc.Posterior.from_density(lambda x: -0.5 * jnp.sum(x**2))
    sampler = mintmc.EquiEnergy(mintmc.Ladder([1, 2, 1e6]), round_length=500)
    return mintmc.sample(density, sampler, init=np.zeros(8), draws=500, warmup=500, chains=2, progress=False)


def test_diagnose_says_what_is_wrong_with_the_ladder(gap):
    warnings = mintmc.diagnose(gap).warnings
    assert [warning for warning in warnings if "rungs 1 and 2 (T = 2 and 1e+06) do not overlap" in warning]
    assert not [warning for warning in warnings if "rungs 0 and 1" in warning]


def test_pictures(gap):
    import matplotlib.pyplot as plt

    swaps = mintmc.Posterior.from_density(lambda x: -0.5 * x**2)
    sampler = ParallelTempering(mintmc.Ladder([1, 3]))
    for tree, title in (
        (gap, "Ring occupancy"),
        (mintmc.sample(swaps, sampler, init=0.0, draws=400, warmup=200, chains=2, progress=False), "Replicas"),
    ):
        figure = plot_ladder(tree)
        figure.canvas.draw()
        titles = [axis.get_title() for axis in figure.axes]
        assert [shown for shown in titles if shown.startswith(title)]
        assert len(titles) >= 4
        plt.close(figure)
