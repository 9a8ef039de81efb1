"""Rows in a file that changes at commits only: what a run finds after a kill is what it had committed."""

import numpy as np
import pytest

from mintmc.ladder.kept import Kept


def row(value):
    return np.full((1, 3), value, np.float32)


def on_disk(tmp_path):
    path = tmp_path / "rings" / "1-0.npy"
    return Kept((10, 3), np.float32, path, is_new=not path.exists())


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_program_reads_the_rows_themselves(tmp_path, where):
    kept = on_disk(tmp_path) if where == "disk" else Kept((10, 3), np.float32)
    seen = kept.on_device(2, 5, 3)
    assert seen.unsafe_buffer_pointer() == kept.rows.ctypes.data
    kept.write(np.array([7, 7]), np.concatenate([row(1), row(2)]))
    np.testing.assert_array_equal(seen[1, 2], row(2)[0])
    assert np.count_nonzero(seen) == 3


def test_before_the_commit_the_file_is_as_it_was(tmp_path):
    kept = on_disk(tmp_path)
    kept.write(np.array([4]), row(1))
    kept.settle(*kept.unsettled())
    kept.write(np.array([4]), row(2))
    # Killed here, before the commit: the next process opens the file.
    np.testing.assert_array_equal(on_disk(tmp_path).rows[4], row(1)[0])


def test_killed_after_the_commit_it_changes_the_file_once_more(tmp_path):
    kept = on_disk(tmp_path)
    kept.write(np.array([2, 3]), np.concatenate([row(1), row(2)]))
    checkpoint = kept.unsettled()
    for _ in range(2):
        again = on_disk(tmp_path)
        again.restore(*checkpoint, kept.checksum)
        np.testing.assert_array_equal(again.rows, kept.rows)
    assert len(again.unsettled()[0]) == 0


def test_a_file_that_follows_before_the_commit_would_be_caught(tmp_path):
    """The broken twin: rows written straight to the file."""
    kept = on_disk(tmp_path)
    np.load(kept.path, mmap_mode="r+")[4] = 2
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(on_disk(tmp_path).rows, np.zeros((10, 3)))


def test_a_file_that_is_not_what_it_was_is_refused(tmp_path):
    kept = on_disk(tmp_path)
    np.save(kept.path, np.zeros((9, 3), np.float32))
    with pytest.raises(ValueError, match=r"damaged: it has the shape \(9, 3\), not \(10, 3\)"):
        on_disk(tmp_path)
    kept.path.write_bytes(kept.path.read_bytes()[:150])
    with pytest.raises(ValueError, match="damaged: it cannot be read"):
        on_disk(tmp_path)


def test_a_lost_file_is_not_made_again(tmp_path):
    kept = on_disk(tmp_path)
    kept.path.unlink()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"1-0.npy is missing"):
            Kept((10, 3), np.float32, kept.path, is_new=False)
    assert not kept.path.exists()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_bit_of_any_row_is_part_of_the_checksum(tmp_path, dtype):
    path = tmp_path / "rings" / "1-0.npy"
    kept, rng = Kept((10, 3), dtype, path), np.random.default_rng(0)
    for _ in range(5):  # with places that come twice
        kept.write(rng.integers(0, 10, 8), rng.normal(size=(8, 3)).astype(dtype))
        kept.settle(*kept.unsettled())
    nothing = np.empty(0, np.int64), np.empty((0, 3), dtype)
    Kept((10, 3), dtype, path, is_new=False).restore(*nothing, kept.checksum)
    whole = path.read_bytes()
    for bit in rng.choice(8 * kept.rows.nbytes, 60, replace=False) + 8 * (len(whole) - kept.rows.nbytes):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"1-0.npy is damaged: its checksum"):
            Kept((10, 3), dtype, path, is_new=False).restore(*nothing, kept.checksum)


def test_a_file_with_a_second_name_is_not_written_to(tmp_path):
    kept = on_disk(tmp_path)
    (tmp_path / "precious").hardlink_to(kept.path)
    before = kept.path.read_bytes()
    with pytest.raises(OSError, match="not an ordinary file of its own"):
        kept.settle(np.array([1]), row(1))
    assert (tmp_path / "precious").read_bytes() == before
