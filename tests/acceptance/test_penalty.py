import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from mintmc.acceptance.base import decide
from mintmc.acceptance.penalty import implied_temperature, penalty


def mean_acceptance(log_ratio, noise, penalised):
    """Acceptance of a move with true ``log_ratio``, averaged over normal noise of variance ``noise`` > 0."""
    centre, spread = log_ratio - (noise / 2 if penalised else 0.0), np.sqrt(noise)
    return stats.norm.cdf(centre / spread) + np.exp(centre + noise / 2) * stats.norm.cdf(-(centre + noise) / spread)


@pytest.mark.parametrize(("noise", "expected"), [(0.01, 0.960), (0.25, 0.803), (1, 0.617), (4, 0.317), (9, 0.134)])
def test_acceptance_of_a_flat_move_with_penalty(noise, expected):
    assert float(mean_acceptance(0.0, noise, penalised=True)) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize("noise", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.5])
def test_detailed_balance_holds_with_the_penalty_and_only_with_it(ratio, noise):
    def log_odds(penalised):
        forth, back = (float(mean_acceptance(d, noise, penalised)) for d in (ratio, -ratio))
        return np.log(forth / back)

    assert log_odds(True) == pytest.approx(ratio, rel=2e-4)
    # Without it the odds are those of a hotter target: by 2% (noise 0.1, ratio 2.5) to half.
    assert log_odds(False) < ratio * 0.985


def test_mean_acceptance_is_the_integral_over_the_noise():
    for penalised in (True, False):

        def integrand(z, shift=0.5 if penalised else 0.0):
            return min(1, np.exp(-0.7 + z - shift)) * stats.norm.pdf(z)

        exact = integrate.quad(integrand, -10, 10)[0]
        assert float(mean_acceptance(-0.7, 1.0, penalised)) == pytest.approx(exact, abs=1e-5)


def test_implied_temperature_matches_the_published_table():
    table = {0.01: 0.961, 0.1: 0.883, 0.25: 0.823, 0.5: 0.762, 1: 0.687, 2: 0.599, 4: 0.503, 9: 0.391}
    for noise, beta in table.items():
        assert 1 / float(implied_temperature(noise)) == pytest.approx(beta, abs=1e-3)


@pytest.mark.parametrize("m", [10, 30])
def test_the_series_for_an_estimated_variance_has_the_right_mean(m):
    # E exp(-penalty(chi2)) = exp(-s2/2) for chi2 = s2 * chisquare(m-1)/(m-1): the reason for the series.
    s2 = 1.0
    chi2 = s2 * stats.chi2(m - 1).rvs(2_000_000, random_state=0) / (m - 1)
    corrected = np.exp(-np.asarray(penalty(chi2, m), float))
    error = corrected.std() / np.sqrt(corrected.size)
    # The series stops at the third power; what is left at m = 10 is below 1e-3.
    assert abs(corrected.mean() - np.exp(-s2 / 2)) < 4 * error + (1e-3 if m == 10 else 5e-5)
    plain = np.exp(-chi2 / 2)
    assert abs(plain.mean() - np.exp(-s2 / 2)) > 10 * error


def test_an_undefined_ratio_is_rejected_and_said():
    decision = decide(jnp.log(0.5), jnp.nan, jnp.asarray(0.0))
    assert not decision["accepted"]
    assert not decision["is_defined"]
    assert decision["acceptance_rate"] == 0


def test_an_infinite_ratio_is_defined():
    assert decide(jnp.log(0.5), jnp.inf, jnp.asarray(0.0))["accepted"]
    assert not decide(jnp.log(0.5), -jnp.inf, jnp.asarray(0.0))["accepted"]
