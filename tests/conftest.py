import pytest

import mintmc.run.program


@pytest.fixture
def no_compiler(monkeypatch):
    """A mistake must be refused before anything is compiled."""

    def compiled(*args, **kwargs):
        raise AssertionError("a mistake reached the compiler")

    monkeypatch.setattr(mintmc.run.program, "build", compiled)
