"""Every parameter is a variable of the tree, under a name of its own: or it is refused before anything compiles."""

import numpy as np
import pytest

import mintmc
from mintmc.result.tree import check_names

DENSITY = mintmc.Posterior.from_density(lambda p: 0.0)


@pytest.mark.parametrize(
    ("init", "named"),
    [
        ({"draw": 0.0}, "'draw': a dimension of the tree"),
        ({"chain": 0.0, "a": 0.0}, "'chain': a dimension of the tree"),
        ({"x": np.zeros(2), "x_dim_0": 0.0}, "'x_dim_0': a dimension of 'x'"),
        ({"x": np.zeros((2, 2)), "x_dim_1": 0.0}, "'x_dim_1': a dimension of 'x'"),
        ({"a": {"b": 0.0}, "a.b": 0.0}, "'a.b': another parameter"),
        ({"0": 0.0, "theta_0": 0.0}, "'theta_0': another parameter"),
        ({"": 0.0, "theta": 0.0}, "'theta': another parameter"),
        ({"a/b": 0.0}, "'a/b'"),
        ({"a\\b": 0.0}, "'a.*b'"),
        ({"..": 0.0}, "'..'"),
        ({"zarr.json": 0.0}, "'zarr.json'"),
        ({"a\nb": 0.0}, "printable"),
        ({"\0": 0.0}, "printable"),
        ({"\ud800": 0.0}, "printable"),
        ({"x" * 201: 0.0}, "at most 200 bytes"),
    ],
)
def test_a_name_that_would_be_lost_is_refused(init, named, no_compiler, tmp_path):
    for out in (None, tmp_path / "run.zarr"):
        with pytest.raises(ValueError, match=f"init must name each parameter.*{named}"):
            mintmc.sample(DENSITY, mintmc.MetropolisHastings(), init=init, out=out)
    assert not (tmp_path / "run.zarr").exists()


def test_names_that_only_look_alike_are_kept(tmp_path):
    init = {"x": np.zeros(2), "x_dim_1": 0.0, "c": 0.0, "__a": 0.0, "b c": 0.0, "é": 0.0, "a": {"b": 0.0}, "a_b": 0.0}
    check_names("init", init)
    normal = mintmc.Posterior.from_density(lambda p: -0.5 * sum((part**2).sum() for part in jax_leaves(p)))
    settings = {"draws": 20, "warmup": 0, "chains": 1, "progress": False}
    tree = mintmc.sample(normal, mintmc.MetropolisHastings(), init=init, out=tmp_path / "run.zarr", **settings)
    assert set(tree.posterior.data_vars) == {"x", "x_dim_1", "c", "__a", "b c", "é", "a.b", "a_b"}
    tree.load()


def jax_leaves(params):
    import jax

    return jax.tree.leaves(params)
