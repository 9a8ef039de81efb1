"""Params come back from a tree as they were written, and functions of them are what a loop finds."""

from collections import namedtuple

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import mintmc
from made_tree import made_tree, normal_posterior, normal_tree
from mintmc.result.draws import stretches
from mistakes import refused

Pair = namedtuple("Pair", "location scale")


class Line(equinox.Module):
    slope: jax.Array
    layers: list
    name: str = equinox.field(static=True)


PLAIN = {
    "a bare number": 0.5,
    "a bare array": np.ones((2, 3), np.float32),
    "a dict": {"b": 1.0, "a": np.zeros(3, np.float32)},
    "nested": {"net": {"w": np.ones((2, 2), np.float32), "b": [0.0, (1.0, 2.0)]}, "theta": 3.0},
    "a list": [0.0, np.zeros(2, np.float32)],
    "a tuple": (0.0, {"x": 1.0}, None),
    "names with dots": {"a.b": 1.0, "a": {"c": 2.0}},
}
OWN = {
    "a named tuple": Pair(0.0, np.ones(2, np.float32)),
    "a module": Line(jnp.ones(2), [jnp.zeros(3), jnp.ones(())], "line"),
    "a dict by numbers": {0: 1.0, 1: 2.0},
}


def density(**settings):
    return mintmc.Posterior.from_density(lambda params: -0.5 * sum(jnp.sum(x**2) for x in jax.tree.leaves(params)))


def tree_of(init, posterior=None, chains=2, draws=7):
    posterior = density() if posterior is None else posterior
    size = posterior.flat(init).dim
    theta = np.random.default_rng(0).normal(size=(chains, draws, size)).astype(np.float32)
    return made_tree(posterior, init, theta), theta


def check_round_trip(params, init, theta):
    assert jax.tree.structure(params) == jax.tree.structure(init)
    assert jax.tree.map(np.shape, params) == jax.tree.map(np.shape, init)
    np.testing.assert_array_equal(jax.flatten_util.ravel_pytree(params)[0], theta)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_params_come_back_without_an_example(name):
    tree, theta = tree_of(PLAIN[name])
    check_round_trip(mintmc.params_at(tree, 1, 3), PLAIN[name], theta[1, 3])
    check_round_trip(mintmc.params_at(tree, -1, -1, like=PLAIN[name]), PLAIN[name], theta[-1, -1])


@pytest.mark.parametrize("name", OWN)
def test_classes_of_ones_own_come_back_by_an_example(name):
    tree, theta = tree_of(OWN[name])
    check_round_trip(mintmc.params_at(tree, 1, 3, like=OWN[name]), OWN[name], theta[1, 3])


@pytest.mark.parametrize("name", ["a named tuple", "a module"])
def test_without_an_example_it_says_what_is_missing(name):
    tree, _ = tree_of({"a": OWN[name]})
    refused(lambda: mintmc.params_at(tree, 0, 0), "like must be given, params like init: .*, got None and a variable")


def test_the_last_bit_of_an_example_is_a_type_and_no_value():
    tree, theta = tree_of({"a": 0.0})
    assert float(mintmc.params_at(tree, 0, 0, like={"a": 0})["a"]) == theta[0, 0, 0]  # a whole number means a float
    assert float(mintmc.params_at(tree, 0, 0, like={"a": np.array(7)})["a"]) == theta[0, 0, 0]


def test_constrained_params_come_back_constrained():
    init = {"sd": 2.0, "weights": np.full(3, 1 / 3, np.float32)}
    posterior = mintmc.Posterior.from_density(
        lambda p: -p["sd"] + jnp.sum(jnp.log(p["weights"])),
        transforms={"sd": "positive", "weights": "simplex"},
        deterministics=lambda p: {"variance": p["sd"] ** 2},
    )
    tree, theta = tree_of(init, posterior)
    for like in (None, init):
        params = mintmc.params_at(tree, 1, 3, like=like)
        assert set(params) == {"sd", "weights"}
        np.testing.assert_allclose(posterior.vector(params), theta[1, 3], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(params["weights"].sum(), 1, rtol=1e-5)


def test_a_tree_that_does_not_say_its_form_has_a_dict_of_names():
    tree, theta = tree_of({"a": 0.0, "b": np.zeros(2, np.float32)})
    del tree.attrs["params_form"]
    check_round_trip(mintmc.params_at(tree, 0, 2), {"a": 0.0, "b": np.zeros(2)}, theta[0, 2])
    others = xarray.DataTree.from_dict({"posterior": xarray.Dataset({"a": (("chain", "draw"), np.ones((1, 3)))})})
    assert mintmc.params_at(others, 0, 0) == {"a": 1.0}


@pytest.mark.parametrize("batch", [None, 1, 4, 5, 1000])
@pytest.mark.parametrize("draws", [None, 3])
def test_a_function_of_every_draw_is_what_a_loop_finds(batch, draws):
    init = {"net": {"w": np.ones((2, 2), np.float32), "b": [0.0]}}
    tree, _ = tree_of(init)

    def function(params):
        return params["net"]["w"] @ params["net"]["w"], {"b": params["net"]["b"][0] > 0, "one": 1.0}

    product, others = mintmc.map_draws(tree, function, batch=batch, draws=draws)
    at = range(7) if draws is None else [0, 2, 4]  # evenly spaced
    assert product.shape == (2, len(at), 2, 2)
    assert others["b"].dtype == bool
    assert (others["one"] == 1).all()
    for chain in range(2):
        for i, draw in enumerate(at):
            expected = function(mintmc.params_at(tree, chain, draw))
            np.testing.assert_allclose(product[chain, i], expected[0], rtol=1e-5)
            assert others["b"][chain, i] == expected[1]["b"]


def test_blocks_are_of_one_size_and_cover_all():
    assert list(stretches(7, 3)) == [(0, 3), (3, 6), (4, 7)]
    assert list(stretches(2, 3)) == [(0, 2)]


@pytest.fixture(scope="module")
def tree():
    return normal_tree(normal_posterior())


MISTAKES = {
    "no tree": (lambda tree: mintmc.params_at(3, 0, 0), TypeError, "tree must be what mintmc.sample returned"),
    "chain": (lambda tree: mintmc.params_at(tree, 4, 0), r"chain must be in \[-4, 3\], got 4"),
    "draw": (lambda tree: mintmc.params_at(tree, 0, 0.5), TypeError, "draw must be a whole number .*got 0.5"),
    "like of other names": (
        lambda tree: mintmc.params_at(tree, 0, 0, like={"mean": 0.0}),
        "like must have the parameters of the tree, theta, got {'mean': 0.0}",
    ),
    "like of another shape": (
        lambda tree: mintmc.params_at(tree, 0, 0, like=np.zeros(2)),
        r"like must have 'theta' of shape \(\), as the tree does, got shape \(2,\)",
    ),
    "like a function": (lambda tree: mintmc.params_at(tree, 0, 0, like=len), TypeError, "like must be params"),
    "like nothing": (lambda tree: mintmc.params_at(tree, 0, 0, like={}), "like must hold at least one array"),
    "function": (lambda tree: mintmc.map_draws(tree, 3), TypeError, "function must be a function, got 3"),
    "a function that fails": (
        lambda tree: mintmc.map_draws(tree, lambda p: p["mean"]),
        "function must work for params, float32",
    ),
    "batch": (lambda tree: mintmc.map_draws(tree, abs, batch=0), "batch must be at least 1, got 0"),
    "draws": (lambda tree: mintmc.map_draws(tree, abs, draws=501), "draws must be in .*=500.*, got 501"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name, tree):
    call, *answer = MISTAKES[name]
    refused(lambda: call(tree), *answer)


def test_an_example_must_have_all_parameters():
    tree, _ = tree_of({"a": 0.0, "b": 1.0})
    refused(
        lambda: mintmc.params_at(tree, 0, 0, like={"a": 0.0}),
        "like must have the parameters of the tree, a, b, got {'a': 0.0}",
    )


def test_tempered_draws_are_called_so():
    hot = normal_tree(normal_posterior(), temperature=20.0)
    with pytest.warns(mintmc.TemperedDraws, match="draws at temperature 20, not draws of the posterior"):
        mintmc.map_draws(hot, jnp.square)
    mintmc.params_at(hot, 0, 0)  # one draw claims nothing
