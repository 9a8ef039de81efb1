"""Batches that are a large part of the data: what one shuffle does to all chains of a run alike.

Slices of m rows of one shuffle have a batch variance of their own, which the penalty does not know. Chains share the
shuffle, so neither R-hat nor ESS can see it: the variance of all draws of a run differs from run to run by more than
its chains say.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.data import Shuffled
from truth import gaussian_data, gaussian_log_likelihood

N, M, N_EFF = 65_536, 4000, 3682  # n/m = 16, n_eff/m = 0.92, where noise matters most
CHAINS, DRAWS, SEEDS = 64, 800, 10
POSTERIOR = mintmc.Posterior(gaussian_log_likelihood, gaussian_data(N))


def variances():
    """Of the draws of each seed, over the exact one."""
    sampler = mintmc.MINT(M, temperature=N / N_EFF, proposal=mintmc.RandomWalk(step_size=2.4 / N_EFF**0.5))
    settings = {"init": 0.0, "draws": DRAWS, "warmup": 100, "chains": CHAINS, "progress": False, "audit": False}
    trees = [mintmc.sample(POSTERIOR, sampler, seed=seed, **settings) for seed in range(SEEDS)]
    return np.array([float((tree.tempered_posterior.theta**2).mean()) * N_EFF for tree in trees])


@pytest.mark.slow
def test_runs_differ_no_more_than_their_chains_say():
    found = variances()
    # 64 chains of 800 draws, of which one in about 6 counts, know a variance to 1.5%; an error of 15% in the batch's
    # variance is one of 4% in that of the draws.
    assert found.std(ddof=1) < 0.06
    assert abs(found.mean() - 1) < 4 * 0.04 / SEEDS**0.5


@pytest.mark.slow
def test_one_slice_is_caught(monkeypatch):
    monkeypatch.setattr(Shuffled, "of", classmethod(lambda cls, n, sizes: cls(n)))
    assert variances().std(ddof=1) > 0.06


@pytest.mark.parametrize(("n", "size"), [(1000, 100), (1000, 333), (1001, 400), (50, 20)])
def test_pieces_are_distinct_rows_each_as_often(n, size):
    batching = Shuffled.of(n, {"test": size})
    assert batching.pieces > 1
    rows = jnp.concatenate([jnp.arange(n), jnp.arange(size)])
    take = jax.jit(jax.vmap(lambda key: batching.take(rows, batching.ticket(key), 0, size)))
    batches = np.asarray(take(jax.random.split(jax.random.key(0), 4000)))
    assert (np.diff(np.sort(batches, axis=1), axis=1) > 0).all()
    counts = np.bincount(batches.ravel(), minlength=n)
    # Inclusion of a row is a coin of probability size/n; the largest of n scores.
    expected = 4000 * size / n
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected * (1 - size / n))
