"""Rows that are kept by column are the same rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mintmc.data.array import ArrayData
from mintmc.data.batch import Shuffled
from mintmc.data.columns import Columns, by_column
from mintmc.data.reader import RowReader

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


def test_a_reader_keeps_them_so_for_batches_alone(rows):
    reader = RowReader(ArrayData(rows), "shuffled", seed=0)
    by_row = reader.rows(0, SIZE)
    by_col = RowReader(ArrayData(rows), "shuffled", seed=0).rows(0, SIZE, for_batches=True)
    np.testing.assert_array_equal(by_col["narrow"].numbers.T, by_row["narrow"])
