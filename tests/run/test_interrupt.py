import os
import signal
import threading

import pytest

from mintmc.run.interrupt import Interrupt
from mintmc.run.workers import workers


def test_once_asks_and_twice_stops():
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_after_a_second_one_what_has_not_begun_is_not_begun():
    begun, go, jobs = threading.Event(), threading.Event(), []

    def wait():
        begun.set()
        go.wait(10)

    def run():
        with workers(1) as pool:
            jobs.extend([pool.submit(wait), pool.submit(wait)])
            begun.wait(10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    go.set()
    jobs[0].result()
    assert jobs[1].cancelled()
