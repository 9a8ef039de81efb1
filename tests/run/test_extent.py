import jax.numpy as jnp
import numpy as np
import pytest

from mintmc.run.extent import credible, extent


def covariance(longest, d, states, seed):
    """Of so many states of a normal distribution, of unit variance but along one direction of all parameters."""
    rng = np.random.default_rng(seed)
    across = np.ones(d) / np.sqrt(d)
    root = np.eye(d) + (longest - 1) * np.outer(across, across)
    return jnp.asarray(np.cov((rng.normal(size=(states, d)) @ root).T))


@pytest.mark.parametrize("longest", [1.0, 3.0, 10.0])
@pytest.mark.parametrize("scale", [None, 2 * jnp.ones(40), 2 * jnp.eye(40)])
def test_the_longest_direction_is_measured_without_the_bias_of_many_parameters(longest, scale):
    d, states = 40, 400
    seen = [covariance(longest, d, states, seed) for seed in range(10)]
    found = np.array([float(extent(each, scale, jnp.asarray(states), False)) for each in seen])
    expected = longest if scale is None else longest / 2
    # A variance over 400 states is known to 7%, and standard deviations here over ten of them to 2%.
    assert found.mean() == pytest.approx(expected, rel=0.1)
    if longest == 1.0:
        # The largest eigenvalue itself, the broken twin, is too large by (1 + sqrt(0.1))^2.
        raw = np.mean([np.sqrt(np.linalg.eigvalsh(each)[-1]) for each in seen])
        assert raw > 1.25


def test_a_fitted_scale_is_trusted_the_less_the_fewer_states_it_is_from():
    seen = covariance(5.0, 20, 10_000, 0)
    few, many = (float(extent(seen, jnp.eye(20), jnp.asarray(states), True)) for states in (200, 10_000))
    assert many == pytest.approx(1.0, abs=0.06)
    assert many < few <= 2


@pytest.mark.parametrize(("longest", "low", "high"), [(1.0, 0.0, 0.35), (5.0, 0.9, 1.0)])
def test_correlations_are_believed_where_they_are_more_than_chance(longest, low, high):
    seen = covariance(longest, 30, 300, 1)
    assert low <= float(credible(seen, jnp.asarray(300))) <= high
    # Too few states for so many parameters: a chain on its way correlates everything.
    assert float(credible(seen, jnp.asarray(299))) == 0
