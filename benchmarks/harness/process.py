"""A measurement in a process of its own: its memory, its compiled programs and its cores are nobody else's."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial


class Failed(SystemExit):
    """A measurement ended in an error; whoever does not catch it ends with it."""


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start(script: str, *arguments, on: int | None = None) -> subprocess.Popen:
    """``python script arguments...``, on the first ``on`` cores; what it prints is kept."""
    command = [sys.executable, script, *map(str, arguments)]
    held = None
    if on is not None:
        if not hasattr(os, "sched_setaffinity"):
            raise Failed("cores cannot be chosen on this system")
        held = partial(os.sched_setaffinity, 0, sorted(os.sched_getaffinity(0))[:on])
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=held)


def finish(process: subprocess.Popen):
    """What it found: the last line that it printed, as JSON."""
    printed, errors = process.communicate()
    if process.returncode:
        what = " ".join(process.args[2:])
        raise Failed(f"{what} failed:\n{errors.strip()[-2000:]}")
    return json.loads(printed.splitlines()[-1])


def measured(script: str, *arguments, on: int | None = None):
    """Start, and wait for it."""
    return finish(start(script, *arguments, on=on))


def answer(functions: Mapping[str, Callable], words: Sequence[str]) -> None:
    """The other end: call the function that the words begin with, and print what it found."""
    print(json.dumps(functions[words[0]](*words[1:])))


def peak_memory() -> float:
    """Megabytes of this process at its largest."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
