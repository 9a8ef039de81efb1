"""What all tests share, those in docstrings among them."""

import os
import random
import resource
import time
from pathlib import Path

# Most of the time goes into compiling: with less effort a fifth of it is saved, and programs are as fast.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1")

import jax
import pytest

import mintmc.run.driver
import shaped
from caches import cache_of
from mintmc.compiled import RECENT

shaped.check()
MOST_KILOBYTES = 3_000_000
"""That a process may have taken before it forgets what other modules have compiled."""

# Many tests compile the same.
jax.config.update("jax_compilation_cache_dir", str(cache_of("tests")))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


SLOW = Path(__file__).parent / "tests" / "slow.txt"
"""Tests that compile for long, one a line: `make test` leaves them out, `make test-slow` runs them."""


def pytest_addoption(parser):
    """How long tests may go on."""
    parser.addoption(
        "--until", type=float, help="seconds since 1970 after which no test begins: it is skipped, and says so"
    )


def pytest_runtest_setup(item):
    """A machine of half the speed runs fewer studies, not all of them for twice as long."""
    until = item.config.getoption("until")
    if until is not None and time.time() > until:
        pytest.skip("not reached: the time for these tests was up")


def _in_another_order(items, seed):
    """Files in a random order, so that a machine that reaches half of them reaches the others another time."""
    files = sorted({item.path for item in items})
    random.Random(seed).shuffle(files)
    place = {path: number for number, path in enumerate(files)}
    items.sort(key=lambda item: place[item.path])


def pytest_collection_modifyitems(config, items):
    """Mark the tests of the list, before markers choose what runs; a name that is no test any more is an error."""
    listed = set(SLOW.read_text().splitlines())
    for item in items:
        if item.nodeid in listed:
            item.add_marker(pytest.mark.slow)
    files = {item.nodeid.split("::")[0] for item in items}
    collected = {item.nodeid for item in items}
    is_whole = not any("::" in arg for arg in config.args)
    stale = sorted(name for name in listed - collected if name.split("::")[0] in files)
    if stale and is_whole and not config.getoption("keyword") and not config.getoption("lf"):
        raise pytest.UsageError(f"{SLOW.name} names tests that are no longer there: {', '.join(stale[:3])}")
    if config.getoption("until") is not None:
        _in_another_order(items, config.getoption("until"))


collect_ignore = [
    "examples/pymc_model.py",
    *(f"examples/neural_network/{name}_module.py" for name in ("equinox", "flax")),
]
"""Examples without docstrings to run, whose imports take seconds; tests/examples runs them."""


@pytest.fixture
def no_compiler(monkeypatch):
    """A mistake must be refused before anything is compiled."""

    def compiled(*args, **kwargs):
        raise AssertionError("a mistake reached the compiler")

    monkeypatch.setattr(mintmc.run.driver.Driver, "drive", compiled)


@pytest.fixture(autouse=True)
def _audits_where_asked_for(request, monkeypatch):
    """To audit a run takes two seconds of compiling: tests marked ``audited`` are about it, the others leave it out."""
    if "audited" not in request.keywords:
        monkeypatch.setattr(mintmc.run.driver, "audit_run", lambda *args: [])


@pytest.fixture(autouse=True, scope="module")
def _programs_of_a_module_go_with_it():
    """Tests share programs; those of all modules together would not fit into one process."""
    yield
    RECENT.clear()
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MOST_KILOBYTES:
        jax.clear_caches()
