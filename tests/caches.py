"""Where compiled programs are kept from one process to the next."""

import os
from pathlib import Path

_ROOT = Path(__file__).parents[1] / ".pytest_cache" / "jax"
_FLAGS = os.environ.get("XLA_FLAGS", "")
"""As tests begin: PyMC, once it is imported, asks for a hundred devices there."""


def cache_of(name):
    """The cache of one of the processes of a worker: none reads what another is still writing."""
    return _ROOT / os.environ.get("PYTEST_XDIST_WORKER", "main") / name


def cached(name="tests", reads_only=True, **others):
    """The environment of a process that a test starts, with a cache: that of the test itself unless named otherwise.

    A process that is killed, or that runs beside others, must not write: it would leave half a file.
    """
    least = "1e9" if reads_only else "0.1"  # seconds of compiling that are worth a file
    settings = {"JAX_COMPILATION_CACHE_DIR": str(cache_of(name)), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": least}
    return os.environ | {"XLA_FLAGS": _FLAGS} | settings | others
