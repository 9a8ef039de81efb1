"""Whatever a value is, a message about it is one short line."""

import numpy as np
import pytest

from fuzzing import POOL, Hostile
from mintmc import check


def test_what_is_shown_is_one_short_line():
    for value in (*POOL, [0] * 10**6, {"x": [np.zeros(10**6)]}, [Hostile()], "a\nb" * 1000):
        text = check.shown(value)
        assert 0 < len(text) <= 160
        assert "\n" not in text


def test_small_values_are_shown_as_they_are():
    for value in (0.1, -3, "word", [1, 2.5], {"a": None}, True, 2**64):
        assert check.shown(value) == repr(value)


def test_a_path_keeps_its_kind_of_error(tmp_path):
    assert check.path("out", tmp_path / "new") == tmp_path / "new"
    assert check.folder("out", tmp_path / "a" / "b") == tmp_path / "a" / "b"
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"out must be in a folder, got .*file is a file"):
        check.folder("out", tmp_path / "file" / "b")


def test_a_far_limit_is_told_only_beyond_it():
    with pytest.raises(ValueError, match="draws must be at least 1, got 0"):
        check.integer("draws", 0, 1, most=10)
    with pytest.raises(ValueError, match=r"draws must be in \[1, 10\], got 11"):
        check.integer("draws", 11, 1, most=10)
