"""Our kernels in BlackJAX's loops."""

import blackjax
import jax
import numpy as np
import pytest

import mintmc
from mistakes import each_refused
from truth import gaussian_data, gaussian_log_likelihood

N = 400
X = gaussian_data(N)
POSTERIOR = mintmc.Posterior(gaussian_log_likelihood, X)


def draws_of(sampler, steps=20_000):
    """Draws by BlackJAX's own loop, and what it was told of every step."""
    algorithm = mintmc.as_blackjax(POSTERIOR, sampler, 0.0)
    state = algorithm.init(0.0)
    _, (states, info) = jax.jit(
        lambda key: blackjax.util.run_inference_algorithm(key, algorithm, steps, initial_state=state)
    )(jax.random.key(0))
    return np.asarray(states.position), info


@pytest.mark.parametrize(
    ("sampler", "temperature"),
    [
        (mintmc.MetropolisHastings(mintmc.RandomWalk(0.1)), 1.0),
        (mintmc.MINT(100, temperature=10.0, proposal=mintmc.RandomWalk(0.3)), 10.0),
    ],
)
def test_the_law_in_somebody_elses_loop(sampler, temperature):
    theta, info = draws_of(sampler)
    # The posterior of a normal mean: variance T / n. Means of stretches tell the error.
    scaled = (theta - X.mean()) ** 2 * N / temperature
    means = scaled[2000:].reshape(30, -1).mean(axis=1)
    error = means.std(ddof=1) / np.sqrt(30)
    assert abs(means.mean() - 1) < 4 * error
    assert abs(means.mean() - 1.5) > 4 * error
    assert 0.1 < np.asarray(info["acceptance_rate"]).mean() < 0.9


MISTAKES = {
    "a ladder": (
        lambda: mintmc.as_blackjax(POSTERIOR, mintmc.ParallelTempering(), 0.0),
        TypeError,
        "sampler must be one of independent chains, such as MINT, got ParallelTempering",
    ),
    "a class": (
        lambda: mintmc.as_blackjax(POSTERIOR, mintmc.MINT, 0.0),
        TypeError,
        "sampler must be one of independent chains",
    ),
    "no step size": (
        lambda: mintmc.as_blackjax(POSTERIOR, mintmc.MetropolisHastings(), 0.0),
        ValueError,
        "sampler must have the step_size of its proposal given: nothing adapts it, got None",
    ),
    "control": (
        lambda: mintmc.as_blackjax(
            POSTERIOR, mintmc.MINT(10, temperature=1.0, control=mintmc.Taylor(), proposal=mintmc.RandomWalk(0.1)), 0.0
        ),
        ValueError,
        "sampler must have all its settings given, and no control",
    ),
    "no posterior": (
        lambda: mintmc.as_blackjax(X, mintmc.MetropolisHastings(), 0.0),
        TypeError,
        "posterior must be a mintmc.Posterior",
    ),
}


test_a_mistake_is_refused = each_refused(MISTAKES)
