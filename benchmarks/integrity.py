"""Whether a run can be lost, mixed up or silently wrong: how often it was tried, and what came of it.

    python benchmarks/integrity.py [flipped | lost | killed | writers | crafted | fuzzed ...]

Runs the tests that damage stores, kill runs and pass nonsense, the slow ones too, and adds up what they report. About
half an hour; ``killed`` takes most of it. Every trial is judged where it is made: it must end in the right draws, bit
for bit, or in one line that names the file or the argument. The last column counts tests with a trial that did not.
"""

import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STORE = "tests/store"
TRIED = {
    "flipped": (
        "one bit flipped, over all files of a store",
        [f"{STORE}/test_damage.py::test_a_flipped_bit_anywhere_is_noticed_or_harmless"],
    ),
    "lost": (
        "one file deleted, or cut in half; every file of a store",
        [f"{STORE}/test_damage.py::test_any_lost_file_is_noticed_or_harmless_when_the_run_goes_on"],
    ),
    "killed": (
        "kill -9 at random moments and at writes from the first on, seven samplers",
        [
            f"{STORE}/test_resume.py::test_killed_at_random_moments_it_goes_on_bit_for_bit",
            f"{STORE}/test_resume.py::test_killed_at_any_write_from_the_start_it_goes_on_bit_for_bit",
        ],
    ),
    "writers": (
        "two writers to one store, same and different settings",
        [f"{STORE}/test_lock.py::test_of_two_writers_one_is_refused_and_nothing_is_lost"],
    ),
    "crafted": (
        "stores and settings crafted to reach outside, to be executed or to fill the memory",
        [f"{STORE}/test_crafted.py"],
    ),
    "fuzzed": (
        "calls with nonsense in one argument",
        ["tests/test_fuzz.py::test_two_thousand_mistakes_end_in_a_clear_line"],
    ),
}


class Counts:
    """A plugin of pytest that adds up what tests report by ``record_property``."""

    def __init__(self):
        self.counts, self.failed = Counter(), []

    def pytest_runtest_logreport(self, report):
        """A test without numbers of its own is one trial."""
        if report.failed:
            self.failed.append(report.nodeid)
        if report.when == "call":
            self.counts.update(dict(report.user_properties) or {"tried": 1})


def tried(nodes):
    """What the tests report, and which of them failed."""
    found = Counts()
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "slow or integrity or not slow",
        "--rootdir",
        str(ROOT),
        "-c",
        str(ROOT / "pyproject.toml"),
    ]
    pytest.main([*options, *(str(ROOT / node) for node in nodes)], plugins=[found])
    return found


def main(names):
    """Print a table."""
    unknown = set(names) - TRIED.keys()
    if unknown:
        sys.exit(f"must be some of {', '.join(TRIED)}, got {', '.join(sorted(unknown))}")
    lines = ["| what | tried | noticed or refused | silently wrong or unclear |", "|---|---|---|---|"]
    failed = []
    for what, nodes in (TRIED[name] for name in names or TRIED):
        found = tried(nodes)
        noticed = found.counts.get("noticed", "")
        lines.append(f"| {what} | {found.counts['tried']:,} | {noticed} | {len(found.failed)} |")
        failed += found.failed
    print("\n".join(["", *lines]))
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
