import os
from pathlib import Path

import jax
import pytest

import mintmc.run.driver
from mintmc.run.program import Programs

# Most of the time goes into compiling, and many tests compile the same. Each worker has a cache of its own, so that
# none reads what another is still writing; processes that tests start (and kill) have none.
_CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jax" / os.environ.get("PYTEST_XDIST_WORKER", "main")
jax.config.update("jax_compilation_cache_dir", str(_CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


@pytest.fixture
def no_compiler(monkeypatch):
    """A mistake must be refused before anything is compiled."""

    def compiled(*args, **kwargs):
        raise AssertionError("a mistake reached the compiler")

    monkeypatch.setattr(Programs, "__init__", compiled)


@pytest.fixture(autouse=True)
def _audits_where_asked_for(request, monkeypatch):
    """To audit a run takes two seconds of compiling: tests marked ``audited`` are about it, the others leave it out."""
    if "audited" not in request.keywords:
        monkeypatch.setattr(mintmc.run.driver, "audit_run", lambda *args: [])
