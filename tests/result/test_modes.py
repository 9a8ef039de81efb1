"""Weights of modes, their errors, and whether chains agree."""

import sys

import numpy as np
import pytest
import xarray

from mintmc.result.modes import agreement, mode_weights, relative_variance
from truth import LIMIT

CHAINS, DRAWS = 4, 2000


def tree_of(**variables):
    data = {
        name: (("chain", "draw", *(f"{name}_{i}" for i in range(values.ndim - 2))), values)
        for name, values in variables.items()
    }
    return xarray.DataTree.from_dict({"posterior": xarray.Dataset(data)})


def jumping(weights, stay, seed=0, chains=CHAINS):
    """Labels that stay with probability ``stay`` and are drawn anew otherwise."""
    rng = np.random.default_rng(seed)
    fresh = rng.choice(len(weights), p=weights, size=(chains, DRAWS))
    moves = rng.random((chains, DRAWS)) >= stay
    moves[:, 0] = True
    last = np.maximum.accumulate(np.where(moves, np.arange(DRAWS), 0), axis=1)
    return np.take_along_axis(fresh, last, axis=1)


@pytest.fixture(scope="module")
def labels():
    return jumping([0.2, 0.3, 0.5], stay=0.9)


def test_weights_of_labelled_draws(labels):
    theta = np.stack([labels * 10.0, np.zeros(labels.shape)], axis=-1)
    found = mode_weights(tree_of(theta=theta), label=lambda theta: (theta[..., 0] / 10).astype(int))
    assert dict(found.sizes) == {"mode": 3, "chain": CHAINS, "draw": DRAWS}
    np.testing.assert_array_equal(found.label, labels)
    for mode in range(3):
        np.testing.assert_allclose(found.weight[mode], (labels == mode).mean())
        np.testing.assert_allclose(found.chain_weight[:, mode], (labels == mode).mean(axis=1))
    assert (abs(found.weight - np.array([0.2, 0.3, 0.5])) < LIMIT * found.error).all()


def test_errors_are_those_of_repeated_runs():
    weights, stay = np.array([0.2, 0.8]), 0.9
    # Draws are worth (1 - stay) / (1 + stay) independent ones.
    exact = np.sqrt(0.2 * 0.8 * (1 + stay) / (1 - stay) / DRAWS)
    found = mode_weights(tree_of(theta=jumping(weights, stay, chains=40)), label=lambda theta: theta)
    np.testing.assert_allclose(np.sqrt((found.chain_error**2).mean("chain")), exact, rtol=0.15)
    np.testing.assert_allclose(found.error, exact / np.sqrt(40), rtol=0.25)


def test_the_error_knows_chains_that_disagree():
    """Within a chain nothing tells that its weights are off: the spread of the chains does."""
    rng = np.random.default_rng(3)
    apart = (rng.random((CHAINS, DRAWS)) < np.array([0.2, 0.4, 0.6, 0.8])[:, None]).astype(int)
    found = mode_weights(tree_of(theta=apart), label=lambda theta: theta)
    spread = np.std([0.2, 0.4, 0.6, 0.8], ddof=1) / 2
    np.testing.assert_allclose(found.error, spread, rtol=0.1)
    assert (found.chain_error < 0.03).all()


def test_dicts_of_params_and_modes_never_visited(labels):
    tree = tree_of(a=labels * 1.0, b=np.zeros((*labels.shape, 2)))
    found = mode_weights(tree, label=lambda params: (params["a"] + params["b"][..., 0]).astype(int), count=5)
    np.testing.assert_allclose(found.weight[:3], [(labels == mode).mean() for mode in range(3)])
    assert (found.weight[3:] == 0).all()
    assert (found.error[3:] == 0).all()


def test_one_chain_has_errors_too(labels):
    found = mode_weights(tree_of(theta=labels[:1]), label=lambda theta: theta)
    np.testing.assert_allclose(found.error, found.chain_error[0])


def test_clusters_are_found_and_ordered(labels):
    pytest.importorskip("sklearn", reason="scikit-learn is optional: pip install 'mintmc[kmeans]'")
    noise = np.random.default_rng(0).normal(size=(*labels.shape, 2))
    centres = np.array([[-9.0, 0.0], [0.0, 9.0], [9.0, 0.0]])
    found = mode_weights(tree_of(theta=centres[labels] + noise), count=3)
    np.testing.assert_array_equal(found.label, labels)
    np.testing.assert_allclose(found.centre, centres, atol=0.2)


def test_without_scikit_learn(labels, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(ImportError, match=r"pip install 'mintmc\[kmeans\]'"):
        mode_weights(tree_of(theta=labels * 1.0), count=2)


def test_relative_variance():
    assert relative_variance(np.full(50, 1 / 50)) == pytest.approx(0.0)
    assert relative_variance([1.0, 0.0, 0.0, 0.0]) == pytest.approx(3.0)
    # A multinomial sample of N has mean (k - 1) / N.
    counts = np.random.default_rng(0).multinomial(1000, np.full(10, 0.1), size=4000) / 1000
    assert np.mean([relative_variance(weights) for weights in counts]) == pytest.approx(0.009, rel=0.05)


def test_chains_that_agree_are_seldom_said_to_disagree():
    p_values = np.array([agreement(jumping([0.2, 0.3, 0.5], 0.8, seed)).p_value for seed in range(300)])
    # Errors from 20 batches are a little too small if draws are correlated; 1 in 1000 is what is warned of.
    assert np.mean(p_values < 0.001) <= 0.01
    assert 0.3 < np.mean(p_values) < 0.7


def test_chains_that_disagree_are_found():
    apart = np.concatenate([jumping([0.5, 0.5], 0.8, 0, chains=3), jumping([0.2, 0.8], 0.8, 1, chains=1)])
    assert agreement(apart).p_value < 1e-6
    # Chains that never leave the mode they started in.
    stuck = np.repeat([[0], [1], [1], [0]], DRAWS, axis=1)
    assert agreement(stuck).p_value < 1e-6


def test_nothing_to_disagree_on():
    assert agreement(np.zeros((4, 100), int)) == (0.0, 0, 1.0)
    assert agreement(np.tile(np.arange(2), 50)[None]) == (0.0, 0, 1.0)


MISTAKES = {
    # name: (settings, error, what the message says)
    "nothing": ({}, ValueError, "label or count must be given, got neither"),
    "no function": ({"label": 3}, TypeError, "label must be a function, got 3"),
    "no modes": ({"count": 0}, ValueError, "count must be at least 1, got 0"),
    "another shape": (
        {"label": lambda theta: theta[0].astype(int)},
        ValueError,
        r"label must return one number for each \(chain, draw\), shape \(4, 2000\), got \(2000,\)",
    ),
    "no whole numbers": (
        {"label": lambda theta: theta * 0.5},
        TypeError,
        "label must return whole numbers, got dtype float64",
    ),
    "negative": (
        {"label": lambda theta: theta.astype(int) - 1},
        ValueError,
        "label must return numbers from 0, got -1 to 1",
    ),
    "too high": (
        {"label": lambda theta: theta.astype(int), "count": 2},
        ValueError,
        "label must return numbers from 0 and below count=2, got 0 to 2",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_refused(name, labels):
    settings, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        mode_weights(tree_of(theta=labels * 1.0), **settings)


def test_labels_need_two_axes():
    with pytest.raises(ValueError, match=r"labels must have axes \(chain, draw\), got shape \(10,\)"):
        agreement(np.zeros(10, int))
