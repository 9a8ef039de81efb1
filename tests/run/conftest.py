"""What tests of a run in time share."""

import pytest


class Clock:
    """A time that goes on as told."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("time.perf_counter", clock)
    return clock
