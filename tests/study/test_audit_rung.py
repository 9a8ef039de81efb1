"""The audit passes a right rung and fails a broken one."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.study.audit_rung import Audit, _log_priors, audit_rung
from truth import LIMIT, gaussian_data, gaussian_log_likelihood

N, HOT = 1000, 20.0
POSTERIOR = mintmc.Posterior(gaussian_log_likelihood, gaussian_data(N))
START, REFERENCE = 0.1, 0.2


def ladder_run(**settings):
    """Rung 1 is worth n_eff = 50 observations and reads 20: far too few without the penalty."""
    sampler = mintmc.EquiEnergy(mintmc.Ladder([1, HOT], [None, 20]), reference=REFERENCE, **settings)
    return mintmc.sample(POSTERIOR, sampler, init=START, draws=4000, warmup=1000, chains=4, progress=False)


def audit(tree, rung=1, **settings):
    return audit_rung(POSTERIOR, tree, rung, **({"init": START, "draws": 4000} | settings))


@pytest.fixture(scope="module")
def right():
    return ladder_run()


@pytest.fixture(scope="module")
def audit_of_right(right):
    return audit(right)


@pytest.mark.slow
def test_a_right_rung_passes(right, audit_of_right):
    found = audit_of_right
    assert found.passed
    assert abs(found.z) < LIMIT
    assert (found.rung, found.temperature) == (1, HOT)
    # h - h(0) = n theta^2 / 2 has mean T/2; the reference is 0.2 away from 0.
    exact = HOT / 2 - N * REFERENCE**2 / 2
    assert abs(found.ladder_energy - exact) < LIMIT * found.ladder_error
    assert abs(found.full_energy - exact) < LIMIT * found.full_error
    assert "which agree." in str(found)
    assert str(found).startswith("Rung 1 (T = 20) has mean energy ")


@pytest.mark.slow
def test_the_coldest_rung_passes(right):
    assert audit(right, rung=0).passed


@pytest.mark.slow
def test_a_rung_without_penalty_fails():
    found = audit(ladder_run(penalty=False))
    assert found.z > LIMIT
    assert not found.passed
    assert found.relative_difference > 0.3
    assert "so the rung runs too hot." in str(found)


def test_another_reference_is_another_energy(right, audit_of_right):
    # An energy off by T/2 is what a forgotten reference looks like.
    moved = right.copy()
    moved["ladder"].attrs["reference_energy"] = right["ladder"].attrs["reference_energy"] + HOT / 2
    found = audit(moved)
    assert not found.passed
    assert found.ladder_energy == audit_of_right.ladder_energy


def test_a_density_without_data_is_counted_from_zero():
    density = mintmc.Posterior.from_density(lambda x: -0.5 * x**2 - 3.0)
    sampler = mintmc.EquiEnergy(mintmc.Ladder([1, 4]))
    tree = mintmc.sample(density, sampler, init=0.0, draws=2000, warmup=500, chains=4, progress=False)
    found = audit_rung(density, tree, 1, init=0.0, draws=4000, proposal=mintmc.Langevin())
    assert found.passed
    assert abs(found.full_energy - (4 / 2 + 3)) < LIMIT * found.full_error


def test_what_it_says():
    cold = Audit(2, 7.0, 10.0, 0.3, 14.0, 0.4, -0.25)
    assert cold.z == pytest.approx(-8.0)
    assert str(cold) == (
        "Rung 2 (T = 7) has mean energy 10 ± 0.3, and a full-batch run 14 ± 0.4 (z = -8.0, -25.0%), "
        "so the rung runs too cold."
    )


@pytest.mark.usefixtures("no_compiler")
def test_mistakes_are_refused(right):
    with pytest.raises(ValueError, match=r"rung must be in \[0, the hottest=1\], got 2"):
        audit(right, rung=2)
    with pytest.raises(ValueError, match="tree must have a group ladder"):
        audit(right["sample_stats"])
    cut_off = right.copy()
    cut_off.attrs = right.attrs | {"sampler_settings": json.dumps({"truncate": True})}
    with pytest.raises(ValueError, match="tree must be of a run with truncate=False"):
        audit(cut_off)


def test_the_prior_is_taken_out_of_the_energy_where_the_likelihood_alone_is_tempered():
    x = gaussian_data(50)
    posterior = mintmc.Posterior(
        lambda p, x: -0.5 * (x - p["b"].sum()) ** 2, x, lambda p: -0.5 * jnp.sum(p["b"] ** 2) - p["a"] ** 2
    )
    init = {"b": np.array([0.1, 0.2], np.float32), "a": np.float32(0.5)}
    tree = mintmc.sample(
        posterior, mintmc.MetropolisHastings(), init=init, draws=20, warmup=20, chains=2, progress=False
    )
    energies = tree.sample_stats.energy.values + _log_priors(posterior, tree, init)
    # The data have mean 0 and variance 1.
    exact = 0.5 * 50 * (1 + tree.posterior["b"].values.sum(axis=-1) ** 2)
    np.testing.assert_allclose(energies, exact, rtol=1e-5)
