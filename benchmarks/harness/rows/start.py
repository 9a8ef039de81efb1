"""From nothing to a first draw: imports, the command line, compiling."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from harness import process
from harness.line import at_most, line
from harness.timing import in_turn

HERE = str(Path(__file__).parents[2] / "bench.py")


def seconds_of(*command):
    """Of a new process, from its start to its end."""
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def in_new_processes(code, rounds):
    """Seconds of each piece of code, in turn; files have been read before."""

    def timed(name):
        return lambda _: seconds_of(sys.executable, "-c", code[name])

    for name in code:
        timed(name)(0)
    return in_turn({name: timed(name) for name in code}, rounds)


def importing(rounds=5):
    """``import mintmc`` and ``mintmc --help``, the interpreter's own start included."""
    run_help = "import sys; sys.argv = ['mintmc', '--help']; from mintmc.cli import main; main()"
    others = ("import jax", "from mintmc import sample")
    code = {
        "import mintmc": "import mintmc",
        "mintmc --help": run_help,
        "python": "pass",
        **{name: name for name in others},
    }
    found = in_new_processes(code, rounds)
    counts = {f"`{name}`": float(np.median(found[name])) for name in ("python", *others)}
    share = {"unit": "seconds", "more_is_better": False, "counts": counts}
    bars = {"import mintmc": 0.6, "mintmc --help": 0.4}
    return [line("a new process", f"`{name}`", found[name], bar=at_most(bar), **share) for name, bar in bars.items()]


def import_over_jax(rounds=4):
    """What ``sample`` needs over ``import jax``: ``import mintmc`` alone loads nothing."""
    found = in_new_processes({"ours": "from mintmc import sample", "jax": "import jax"}, rounds)
    settings = {"unit": "seconds", "more_is_better": False}
    peer = {"`import jax`": found["jax"]}
    return [line("a new process", "`from mintmc import sample`", found["ours"], peer, **settings)]


def first_draw(sampler):
    """Seconds of a call that compiles and makes one draw, and of all since the process began. A part."""
    began = time.clock_gettime(time.CLOCK_MONOTONIC) - _age()
    import mintmc
    from mintmc.experiments.fifty_modes import experiment as fifty
    from mintmc.experiments.fifty_modes.scale import SCALES

    if sampler == "MINT":
        from mintmc.experiments.tied_means import experiment as tied_means

        posterior = mintmc.Posterior(tied_means.log_likelihood, tied_means.simulate(), tied_means.log_prior)
        settled, init = mintmc.MINT(1000, alpha=0.5), np.array([0.5, 0.0])
    else:
        sizes = SCALES["standard"]
        posterior = mintmc.Posterior(fifty.log_likelihood, fifty.simulate(sizes.n, sizes.d))
        settled, init = fifty.ours(sizes), np.zeros(sizes.d, np.float32)
        # A rung draws little before the next starts, so that what is timed is compiling and starting.
        settled = replace(settled, feed=1, round_length=1, steps=None)
    begun = time.clock_gettime(time.CLOCK_MONOTONIC)
    mintmc.sample(posterior, settled, init=init, draws=1, warmup=1, chains=1, progress=False, audit=False)
    ended = time.clock_gettime(time.CLOCK_MONOTONIC)
    return [ended - begun, ended - began]


def _age():
    """Seconds since this process began, as the kernel counts; 0 where it does not say."""
    told = Path("/proc/self/stat")
    if not told.exists():
        return 0.0
    ticks = float(told.read_text().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def first_draws(rounds=3, samplers=("MINT", "MINTEE")):
    """The first draw of MINT, and of a MINTEE of 15 rungs."""
    bars, lines = {"MINT": 3, "MINTEE": 20}, []
    what = {"MINT": "MINT, tied means, n = 1e6", "MINTEE": "MINTEE of 15 rungs, fifty modes, n = 1e5"}
    for name in samplers:
        found = [process.measured(HERE, "--part", "first_draw", name) for _ in range(rounds)]
        call, whole = zip(*found, strict=True)
        settings = {"unit": "seconds", "more_is_better": False, "bar": at_most(bars[name])}
        counts = {"since Python's start": float(np.median(whole))}
        lines.append(line(what[name], "first draw: compile and start", call, **settings, counts=counts))
    return lines


PARTS = {"first_draw": first_draw}
