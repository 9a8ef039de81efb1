"""The same bits as JAX's, in a program without loops."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mintmc import threefry


@dataclass(frozen=True)
class Drawn:
    """Something that is drawn by a key."""

    name: str
    draw: Any


DRAWN = [
    Drawn("split", lambda key: jax.random.key_data(jax.random.split(key, (3, 2)))),
    Drawn("fold in", lambda key: jax.random.key_data(jax.random.fold_in(key, 2**31 + 7))),
    Drawn("one after the other", lambda key: jax.random.normal(jax.random.fold_in(jax.random.split(key)[1], 5), (4,))),
    Drawn("many keys", lambda key: jax.vmap(lambda k: jax.random.normal(k, (3,)))(jax.random.split(key, 5))),
    Drawn("a scalar", jax.random.uniform),
    Drawn("nothing", lambda key: jax.random.normal(key, (0, 3))),
    Drawn("numbers below n", lambda key: jax.random.randint(key, (50,), 0, 100_000)),
    Drawn("counts", lambda key: jax.random.poisson(threefry.as_jax(key), 3.0, (9,))),
    Drawn("an order", lambda key: jax.random.permutation(key, 20)),
    *(
        Drawn(f"{kind}", lambda key, kind=kind: jax.random.bits(key, (7, 3), kind))
        for kind in ("uint8", "uint16", "uint32")
    ),
]


@pytest.mark.parametrize("drawn", DRAWN, ids=lambda each: each.name)
@pytest.mark.parametrize("seed", [0, 2**31 - 1])
@pytest.mark.parametrize("run", [jax.jit, lambda function: function], ids=["compiled", "not compiled"])
def test_bits_are_those_of_jax(drawn, seed, run):
    key = jax.random.key(seed)
    ours, jaxs = run(drawn.draw)(threefry.unrolled(key)), run(drawn.draw)(key)
    assert ours.dtype == jaxs.dtype
    np.testing.assert_array_equal(ours, jaxs)


def test_bits_of_64_are_those_of_jax():
    with jax.enable_x64(True):
        key = jax.random.key(3)
        ours, jaxs = (jax.random.bits(each, (9,), "uint64") for each in (threefry.unrolled(key), key))
        np.testing.assert_array_equal(ours, jaxs)


def test_a_wrong_round_is_seen(monkeypatch):
    monkeypatch.setattr(threefry, "_ROTATIONS", ((13, 15, 26, 6), (17, 29, 16, 25)))
    zero = jnp.zeros((), jnp.uint32)
    wrong = jnp.stack(threefry._mixed(jnp.zeros(2, jnp.uint32), zero, zero))
    assert (wrong != jax.random.key_data(jax.random.fold_in(jax.random.key(0), 0))).any()


def test_a_program_has_no_loop():
    """What it is for: a loop is ten kernels to compile."""

    def loops(key):
        return jax.jit(lambda key: jax.random.normal(key, (8,))).lower(key).compile().as_text().count(" while(")

    key = jax.random.key(0)
    assert loops(threefry.unrolled(key)) == 0
    if jax.default_backend() == "cpu" and loops(key) == 0:
        pytest.fail("JAX's own keys make no loop any more: mintmc.threefry can go")


def test_too_many_numbers_are_refused():
    with pytest.raises(ValueError, match=r"at most 2\^32 .* got shape \(65536, 65536\)"):
        jax.jit(lambda key: jax.random.bits(key, (2**16, 2**16))).lower(threefry.unrolled(jax.random.key(0)))
