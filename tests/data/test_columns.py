"""Rows that are kept by column are the same rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mintmc
from mintmc.data.batch import Shuffled
from mintmc.data.columns import Columns, as_rows, by_column, gathered

N, SIZE = 400, 60


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    wide = {"narrow": (N + SIZE, 3), "wide": (N + SIZE, 40), "flat": (N + SIZE,), "deep": (N + SIZE, 2, 3)}
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in wide.items()}


def test_narrow_rows_alone_are_kept_by_column(rows):
    kept = by_column(rows)
    assert isinstance(kept["narrow"], Columns)
    assert kept["narrow"].numbers.shape == (3, N + SIZE)
    assert all(kept[name] is rows[name] for name in ("wide", "flat", "deep"))


@pytest.mark.parametrize("pieces", [1, 4, 20])  # one slice, some copied one by one, many gathered
@pytest.mark.parametrize("start", [0, 7])
def test_batches_are_the_same(rows, pieces, start):
    batching = Shuffled(N, pieces)
    ticket = batching.ticket(jax.random.key(1))

    def taken(rows):
        return jax.jit(lambda rows: batching.take(rows, ticket, start, SIZE))(jax.tree.map(jnp.asarray, rows))

    jax.tree.map(np.testing.assert_array_equal, taken(by_column(rows)), taken(rows))


def test_rows_by_their_numbers_and_all_of_them_are_the_same(rows):
    index, kept = jnp.array([5, 0, 5, N]), by_column(rows)
    jax.tree.map(np.testing.assert_array_equal, gathered(kept, index), jax.tree.map(lambda leaf: leaf[index], rows))
    jax.tree.map(np.testing.assert_array_equal, as_rows(kept), rows)


def test_a_full_pass_over_columns_is_one_over_rows():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(700, 3)), rng.normal(size=700)
    posterior = mintmc.Posterior(lambda beta, row: -0.5 * (row["y"] - row["x"] @ beta) ** 2, {"x": x, "y": y})
    assert isinstance(posterior.rows["x"], Columns)
    beta = np.array([0.1, -0.2, 0.3])
    assert posterior.energy(beta) == pytest.approx(0.5 * np.sum((y - x @ beta) ** 2), rel=1e-6)
