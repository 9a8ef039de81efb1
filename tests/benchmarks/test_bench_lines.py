"""Lines of the benchmark: ratios round by round, over the best peer, and the bar."""

import pytest

from harness.line import at_least, at_most, best, line


def test_ratios_are_taken_round_by_round_over_the_best_peer():
    """The machine was twice as slow in the second round: the ratio does not see it."""
    peers = {"slow": [1.0, 0.5], "fast": [2.0, 1.0]}
    made = line("w", "draws", [6.0, 3.0], peers, unit="a second", bar=at_least(3))
    assert made["peer"] == "fast"
    assert made["ratio"] == 3.0
    assert made["spread"] == [3.0, 3.0]
    assert made["met"]


def test_less_is_better_turns_the_choice_of_the_best_peer():
    assert best({"slow": [4.0], "fast": [2.0]}, more_is_better=False) == "fast"
    assert best({"slow": [4.0], "fast": [2.0]}, more_is_better=True) == "slow"
    assert best({}, more_is_better=True) is None


def test_without_a_peer_it_is_over_c_and_without_either_the_value_faces_the_bar():
    over_c = line("w", "step", [3.0], unit="us", more_is_better=False, limit=[2.0], bar=at_most(1.5))
    assert (over_c["ratio"], over_c["met"], over_c["is_ratio"]) == (1.5, True, True)
    alone = line("w", "import", [0.7], unit="seconds", more_is_better=False, bar=at_most(0.6))
    assert (alone["ratio"], alone["met"], alone["is_ratio"]) == (0.7, False, False)
    assert line("w", "reported", [1.0], unit="s")["met"] is None


@pytest.mark.parametrize(("bar", "ratio", "met"), [(at_least(2), 1.9, False), (at_most(2), 1.9, True)])
def test_a_bar_has_a_sense(bar, ratio, met):
    assert bar.is_met(ratio) is met


def test_rounds_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="zip"):
        line("w", "draws", [1.0, 2.0], {"peer": [1.0]}, unit="a second")
