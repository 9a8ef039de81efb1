import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.run import driver, stretches
from truth import gaussian_data, gaussian_log_likelihood


@pytest.fixture(scope="module")
def posterior():
    return mintmc.Posterior(gaussian_log_likelihood, gaussian_data(2000))


SAMPLER = mintmc.MINT(batch_size=50, alpha=0.5)


def draws_of(posterior, sampler=SAMPLER, **settings):
    settings = {"init": 0.0, "draws": 300, "warmup": 50, "chains": 3, "seed": 5, "progress": False} | settings
    return mintmc.sample(posterior, sampler, **settings)


def theta(tree):
    return tree[mintmc.result.reading.draws_group(tree)]["theta"].values


def test_a_chain_does_not_depend_on_the_other_chains(posterior):
    np.testing.assert_array_equal(theta(draws_of(posterior, chains=5))[:3], theta(draws_of(posterior)))


def test_seeds_differ(posterior):
    assert not np.array_equal(theta(draws_of(posterior, seed=6)), theta(draws_of(posterior)))


def test_more_draws_continue_the_same_chain(posterior):
    np.testing.assert_array_equal(theta(draws_of(posterior, draws=700))[:, :300], theta(draws_of(posterior)))


def test_data_are_reshuffled_along_the_run(posterior, monkeypatch):
    seen = []
    shuffled = type(posterior.data).shuffled

    def spy(self, seed, epoch, wrap):
        seen.append(epoch)
        return shuffled(self, seed, epoch, wrap)

    monkeypatch.setattr(type(posterior.data), "shuffled", spy)
    draws_of(posterior, draws=5000, warmup=100)
    # A shuffle serves 50 passes: 50 * 2000 / 50 = 2000 steps.
    assert seen == [0, 1, 2]


@pytest.mark.parametrize(
    ("proposal", "target"),
    [
        (mintmc.RandomWalk(), 0.3),
        pytest.param(mintmc.Langevin(), 0.5, marks=pytest.mark.slow),
        pytest.param(mintmc.Hamiltonian(steps=3), 0.65, marks=pytest.mark.slow),
    ],
)
def test_warm_up_reaches_the_target_acceptance_and_freezes(posterior, proposal, target):
    tree = draws_of(posterior, mintmc.MINT(batch_size=200, alpha=0.5, proposal=proposal), draws=4000, warmup=2000)
    assert float(tree["sample_stats"]["acceptance_rate"].mean()) == pytest.approx(target, abs=0.05)


@pytest.mark.parametrize("kind", ["diagonal", "dense"])
def test_an_adapted_preconditioner_learns_the_scales(kind):
    scales = np.array([0.01, 1.0, 100.0])
    density = mintmc.Posterior.from_density(lambda t: -0.5 * jnp.sum((t / scales) ** 2))
    sampler = mintmc.MetropolisHastings(mintmc.Hamiltonian(steps=5, preconditioner=kind))
    tree = draws_of(density, sampler, init=np.zeros(3), draws=2000, warmup=2000, chains=4)
    # Without it, a step that suits the smallest scale moves nowhere on the largest.
    np.testing.assert_allclose(theta(tree).std(axis=(0, 1)), scales, rtol=0.1)


def test_a_given_step_size_stays(posterior):
    tree = draws_of(posterior, mintmc.MINT(batch_size=50, alpha=0.5, proposal=mintmc.RandomWalk(step_size=0.25)))
    assert tree.attrs["step_size"] == [0.25] * 3


def test_chains_start_where_they_are_told(posterior):
    sampler = mintmc.MINT(batch_size=50, alpha=0.5, proposal=mintmc.RandomWalk(step_size=1e-6))
    starts = np.array([-1.0, 0.0, 1.0])
    each = draws_of(posterior, sampler, init=mintmc.PerChain(starts), draws=5, warmup=0)
    np.testing.assert_allclose(theta(each)[:, 0], starts, atol=1e-4)
    drawn = draws_of(posterior, sampler, init=lambda key: jnp.asarray(0.5), draws=5, warmup=0)
    np.testing.assert_allclose(theta(drawn)[:, 0], 0.5, atol=1e-4)


def test_full_batch_energies_are_those_of_the_posterior(posterior):
    tree = draws_of(posterior, mintmc.MetropolisHastings(temperature=5.0), draws=5)
    for value, state in zip(tree["sample_stats"]["energy"].values.ravel(), theta(tree).ravel(), strict=True):
        assert value == pytest.approx(posterior.energy(state), abs=1e-3)


def test_undefined_moves_are_rejected_counted_and_reported():
    density = mintmc.Posterior.from_density(lambda t: jnp.where(t < 0, jnp.nan, -t))
    tree = draws_of(density, mintmc.MetropolisHastings(mintmc.RandomWalk(step_size=1.0)), init=1.0, draws=2000)
    assert tree.attrs["undefined_moves"] > 100
    assert theta(tree).min() >= 0
    assert any("undefined ratio" in warning for warning in mintmc.diagnose(tree).warnings)


def test_ctrl_c_returns_the_draws_made_so_far(posterior, monkeypatch):
    class Pressed(driver.Interrupt):
        """Ctrl-C after the second stretch of draws."""

        looks = 0

        @property
        def requested(self):
            self.looks += 1
            return self.looks > 4  # two looks are those before the audit after warm-up, and before the first draws

        @requested.setter
        def requested(self, value):
            pass

    monkeypatch.setattr(driver, "Interrupt", Pressed)
    monkeypatch.setattr(stretches, "next_size", lambda size, seconds, capacity: 16)
    with pytest.warns(UserWarning, match="interrupted: 32 of 300 draws were made"):
        tree = draws_of(posterior, warmup=0)
    assert tree["tempered_posterior"].sizes["draw"] == 32


def test_nothing_changes_jax_for_others(posterior):
    import jax

    before = dict(jax.config.values)
    draws_of(posterior)
    assert jax.config.values == before
