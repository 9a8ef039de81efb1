"""Two programs are the same if what they were built from is: compared by value, by content, or by identity."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.compiled import ByContent, identity, shapes_and_types


class Pair(NamedTuple):
    one: Any
    other: Any


class AnotherPair(NamedTuple):
    one: Any
    other: Any


@dataclass(frozen=True)
class Settings:
    value: Any


def double(x):
    return 2 * x


SAME = [
    (1.0, 1.0),
    (float("nan"), float("nan")),
    (np.arange(3, dtype=np.float32), jnp.arange(3.0)),
    (np.arange(3, dtype=np.int32), jnp.arange(3)),
    ({"a": [1, (2, None)]}, {"a": [1, (2, None)]}),
    (Pair(np.ones(2), double), Pair(np.ones(2), double)),
    (Settings(Settings(np.zeros(3))), Settings(Settings(np.zeros(3)))),
    (mintmc.MINT(10, alpha=0.5), mintmc.MINT(10, alpha=0.5)),
    (mintmc.RandomWalk(preconditioner=np.ones(2)), mintmc.RandomWalk(preconditioner=np.ones(2))),
]
DIFFERENT = [
    (1.0, 1),
    (1, True),
    (0.0, -0.0),
    ("a", b"a"),
    (np.arange(3.0), np.arange(4.0)),
    (np.arange(3.0), np.arange(3.0).astype(np.float32)),
    (np.zeros((2, 3)), np.zeros((3, 2))),
    ([1, 2], (1, 2)),
    (Pair(1, 2), AnotherPair(1, 2)),
    (Settings(1), Settings(2)),
    (lambda: 0, lambda: 0),
    (mintmc.MINT(10, alpha=0.5), mintmc.MINT(10, alpha=0.6)),
    (mintmc.MINT(10, alpha=0.5), mintmc.MINT(10, lam=0.5)),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same(one, other):
    assert identity(one) == identity(other)
    assert hash(identity(one)) == hash(identity(other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_not_the_same(one, other):
    assert identity(one) != identity(other)


def test_a_function_that_is_gone_is_not_taken_for_a_new_one():
    """A new object may get the address of one that is gone: so none that was asked about goes."""
    seen = [identity(lambda: 0) for _ in range(100)]
    assert len(set(seen)) == 100


@dataclass(frozen=True, eq=False)
class Held(ByContent):
    numbers: Any
    name: str = ""


def test_settings_that_hold_arrays_are_equal_by_content():
    assert Held(np.ones(3)) == Held(np.ones(3))
    assert hash(Held(np.ones(3))) == hash(Held(np.ones(3)))
    assert Held(np.ones(3)) != Held(np.zeros(3))
    assert Held(np.ones(3)) != Held(np.ones(3), "another")
    assert Held(np.ones(3)) != np.ones(3).tolist()


def test_forms_of_arguments_are_told_apart():
    tree = {"a": np.zeros((2, 3), np.float32), "b": jnp.zeros(2)}
    assert shapes_and_types(tree) == shapes_and_types({"a": jnp.ones((2, 3)), "b": np.ones(2, np.float32)})
    for other in ({"a": tree["a"], "b": jnp.zeros(3)}, {"a": tree["a"], "c": tree["b"]}, tree | {"b": jnp.arange(2)}):
        assert shapes_and_types(tree) != shapes_and_types(other)
