import numpy as np
import pytest

from mintmc.data import ArrayData


def test_a_shuffled_copy_is_a_permutation_that_wraps():
    data = ArrayData({"x": np.arange(10.0), "y": np.arange(10)})
    rows = data.shuffled(seed=0, epoch=0, wrap=3)
    assert sorted(rows["x"][:10]) == list(range(10))
    np.testing.assert_array_equal(rows["x"][10:], rows["x"][:3])
    np.testing.assert_array_equal(rows["x"], rows["y"])


def test_shuffles_differ_by_epoch_and_seed_only():
    data = ArrayData(np.arange(100.0))
    same = [data.shuffled(1, 2, 0) for _ in range(2)]
    np.testing.assert_array_equal(*same)
    assert not np.array_equal(same[0], data.shuffled(1, 3, 0))
    assert not np.array_equal(same[0], data.shuffled(2, 2, 0))


def test_data_are_kept_in_the_precision_that_jax_uses():
    assert ArrayData(np.arange(3, dtype=np.float64)).rows.dtype == np.float32


def test_numbers_per_row():
    assert ArrayData({"x": np.zeros((5, 3, 2)), "y": np.zeros(5)}).numbers_per_row == 7


def test_huge_finite_data_are_accepted():
    # The sum overflows, the values do not.
    assert ArrayData(np.full(4, 3e38, dtype=np.float32)).n == 4


@pytest.mark.parametrize("where", [0, 7])
def test_the_row_of_a_bad_value_is_named(where):
    x = np.zeros((10, 2))
    x[where, 1] = np.nan
    with pytest.raises(ValueError, match=f"data must be finite, got nan in row {where}"):
        ArrayData(x)


def test_masked_values_are_refused_and_an_empty_mask_is_not():
    x = np.ma.masked_equal(np.arange(10.0).reshape(5, 2), 7.0)
    with pytest.raises(ValueError, match=r"data\['x'\] must not have masked values, got 1, the first in row 3"):
        ArrayData({"x": x, "y": np.zeros(5)})
    np.testing.assert_array_equal(ArrayData(np.ma.array(np.arange(5.0))).rows, np.arange(5))
    np.testing.assert_array_equal(ArrayData(x[:3]).rows, np.arange(6.0).reshape(3, 2))
