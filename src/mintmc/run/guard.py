"""A process that watches over one of several: what ends in the C++ of JAX's runtime becomes one line.

When a process of several is gone, JAX's runtime aborts all others from a thread of its own, with a stack of C++ on
standard error; no code of Python's is asked. So a process that joins others forks first. The child does the work. The
parent passes signals on, shows what the child writes, and if the child is aborted says why, and how to go on.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import BinaryIO

TIMEOUT = 30
"""Seconds after which a process that is not heard of is taken to be gone."""
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_RUNTIME = re.compile(rb"[EF]\d{4} \d\d:\d\d:\d\d.*(coordination_service|client\.h|service\.cc)")
"""How the messages begin with which the runtime gives up."""


def guard(explain: Callable[[str], str]) -> None:
    """Go on in a child; the parent ends when it ends, with its exit code.

    Parameters
    ----------
    explain
        What to say if the child is aborted, given what the runtime wrote.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    errors, to_parent = os.pipe()
    alive, held = os.pipe()
    with warnings.catch_warnings():
        # Python warns of threads that a fork leaves behind. This one comes before JAX has started any of use.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        os.close(to_parent)
        os.close(alive)
        _watch(child, os.fdopen(errors, "rb"), explain)
    # A signal from the terminal goes to the parent alone, which passes it on, so that it arrives once.
    os.setpgid(0, 0)
    os.dup2(to_parent, 2)
    for handle in (errors, to_parent, held):
        os.close(handle)
    threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()


def _end_with_parent(alive: int) -> None:
    """The other end of the pipe is closed when the parent ends, however it ends."""
    os.read(alive, 1)
    os._exit(1)


def _watch(child: int, errors: BinaryIO, explain: Callable[[str], str]) -> None:
    for number in _PASSED_ON:
        signal.signal(number, lambda received, frame: os.kill(child, received))
    withheld = b""
    for line in errors:
        if withheld or _RUNTIME.match(line):
            withheld += line
        else:
            os.write(2, line)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) or not withheld:
        os.write(2, withheld)
    if os.WIFEXITED(status):
        os._exit(os.WEXITSTATUS(status))
    ended = os.WTERMSIG(status)
    why = explain(withheld.decode(errors="replace")) if withheld else f"this process was ended by signal {ended}"
    os.write(2, f"error: {why}\n".encode())
    os._exit(1)
