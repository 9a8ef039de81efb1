"""What a callback is told, and how it stops a run."""

import numpy as np
import pytest

import mintmc
from mintmc.run import stretches
from mintmc.store.run_store import open_run
from stopped_run import SAMPLERS, density, run
from stores import assert_same


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch):
    monkeypatch.setattr(stretches, "next_size", lambda *args: 40)


@pytest.mark.parametrize("name", SAMPLERS)
def test_it_is_told_what_is_known(name):
    told = []

    def note(so_far):
        told.append((so_far, so_far.ess, so_far.rhat))

    tree = run(name, draws=300, callback=note)
    phases = [so_far.phase for so_far, _, _ in told]
    assert sorted(set(phases)) == ["draws", "warm-up"]
    drawn = [so_far.drawn for so_far, _, _ in told]
    assert drawn == sorted(drawn)
    last, ess, rhat = told[-1]
    assert (last.drawn, last.draws, last.warmed) == (300, 300, last.warmup)
    assert last.acceptance.shape == (2,)
    assert (last.acceptance > 0).all()
    assert last.seconds > 0
    numbers = mintmc.diagnose(tree).numbers
    assert (ess, rhat) == (numbers["ess_bulk"], numbers["rhat"])
    assert np.isnan(told[0][1])  # no draws yet


@pytest.mark.parametrize("answer", [False, np.False_])
@pytest.mark.parametrize("is_stored", [False, True])
def test_false_stops_it_as_an_interruption_would(answer, is_stored, tmp_path):
    out = tmp_path / "run.zarr" if is_stored else None
    tree = run(draws=300, out=out, callback=lambda so_far: answer if so_far.drawn >= 100 else None)
    drawn = tree.posterior.sizes["draw"]
    assert 100 <= drawn < 300
    assert tree.attrs["stopped"] == f"stopped early: by callback ({drawn} of 300 draws a chain)"
    mintmc.diagnose(tree)
    if is_stored:
        assert_same(run(draws=300, out=out), run(draws=300))
        assert "stopped" not in open_run(out).attrs


def test_before_the_first_draw_there_is_nothing_to_return(tmp_path):
    with pytest.raises(ValueError, match="callback must not stop a run before its first draw, got False in warm-up"):
        run(callback=lambda so_far: False)
    path = tmp_path / "run.zarr"
    with pytest.raises(ValueError, match=r"the warm-up is saved, mintmc.resume\(.*run.zarr"):
        run(draws=100, out=path, callback=lambda so_far: so_far.warmed < 40)
    assert_same(mintmc.resume(path, density(), progress=False), run(draws=100))


def test_an_error_of_its_own_is_raised():
    with pytest.raises(ZeroDivisionError):
        run(callback=lambda so_far: 1 / 0)
