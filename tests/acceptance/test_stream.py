import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mintmc.acceptance.stream import Moments, read_until
from mintmc.data import Shuffled, Stream, Uniform

VALUES = np.random.default_rng(0).gamma(1.0, size=1003) + 100.0
X = jnp.asarray(VALUES, jnp.float32)


def read(stop_at, block=64, next_look=None, batching=None):
    batching = batching or Uniform(1003)
    stream = Stream(batching, X, batching.ticket(jax.random.key(1)))
    return read_until(
        stream,
        lambda rows: rows,
        1003,
        block,
        next_look or (lambda look, read: read + block),
        lambda moments, look: moments.read >= stop_at,
        jnp.float32,
    )


@pytest.mark.parametrize("block", [1, 7, 64, 1003, 2000])
def test_all_rows_are_read_once_whatever_the_block(block):
    moments, _ = read(10**9, block=min(block, 1003))
    assert moments.read == 1003
    assert float(moments.mean) == pytest.approx(VALUES.mean(), rel=1e-6)
    # sum(d^2) - sum(d)^2/b in float32 would lose the variance of values near 100.
    assert float(moments.variance) == pytest.approx(VALUES.var(ddof=1), rel=1e-3)
    assert float(moments.largest) == pytest.approx(float(X.max()))
    assert moments.noise_of_mean(1003) == 0


def test_it_stops_at_the_first_look_that_decides():
    moments, look = read(150)
    assert (moments.read, look) == (192, 3)


def test_looks_may_fall_inside_a_block():
    moments, look = read(100, block=64, next_look=lambda look, read: jnp.ceil(jnp.maximum(read * 1.5, 40)).astype(int))
    assert (moments.read, look) == (135, 4)  # 40, 60, 90, 135


def test_slices_wrap_around():
    rows = jnp.concatenate([X, X[:64]])
    stream = Stream(Shuffled(1003), rows, jnp.asarray(990))
    end = lambda moments, look: moments.read >= 10**9  # noqa: E731
    moments, _ = read_until(stream, lambda r: r, 1003, 64, lambda look, read: read + 64, end, jnp.float32)
    assert float(moments.mean) == pytest.approx(VALUES.mean(), rel=1e-6)


def test_only_the_first_of_some_values_may_be_wanted():
    before = Moments(jnp.asarray(2), *map(jnp.asarray, (2.0, 2.0, 1.0, 3.0)))  # of 1 and 3
    after = before.merge(jnp.asarray([5.0, 7.0, 100.0]), jnp.asarray(2))
    assert (after.read, after.mean, after.squares, after.largest) == (4, 4.0, 20.0, 7.0)


@pytest.mark.parametrize(
    ("values", "witnesses"),
    [
        ([0.1] * 50, 0),  # alike but for rounding
        ([0.0] * 49 + [1.0], 1),  # one rare event
        ([0.0] * 46 + [1.0] * 4, 4),
        ([-1.0, 1.0] * 25, 50),
    ],
)
def test_a_variance_is_as_well_known_as_there_are_values_that_make_it_up(values, witnesses):
    moments = Moments.none(jnp.float32).merge(jnp.asarray(values, jnp.float32), jnp.asarray(len(values)))
    assert float(moments.witnesses) == pytest.approx(witnesses, rel=0.1)
