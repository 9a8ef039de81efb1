"""Full passes and cores: the gradient of the 50-component mixture over threaded C, and what a second core gains."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np

import mintmc
from harness import native, process
from harness.line import at_least, at_most, line
from harness.rows.steps import core_microseconds
from harness.timing import in_turn
from harness.workloads import tied
from mintmc.experiments.fifty_modes import experiment as fifty
from mintmc.run.task import compile_program

HERE = str(Path(__file__).parents[2] / "bench.py")
SCALE = str(Path(__file__).parents[2] / "scale.py")


def mixture(n=100_000, passes=100, rounds=5, bar=2.5):
    """Milliseconds of a pass with gradient, alone and with every core busy, over C with a thread a core."""
    posterior = mintmc.Posterior(fifty.log_likelihood, fifty.simulate(n, 50))
    theta = np.asarray(fifty.true_params(50)) + 0.01
    model, rows = posterior.flat(theta).model, posterior.rows
    compiled = compile_program(model.density_and_gradient, theta, rows)

    def several(_=None):
        for _ in range(passes):
            jax.block_until_ready(compiled(theta, rows))

    def alone(_):
        begun = time.perf_counter()
        several()
        return (time.perf_counter() - begun) / passes * 1e3

    def at_once(_):
        with ThreadPoolExecutor(process.cores()) as pool:
            begun = time.perf_counter()
            list(pool.map(several, range(process.cores())))
            return (time.perf_counter() - begun) / passes / process.cores() * 1e3

    contestants = {"alone": alone, "at once": at_once}
    skipped = {"hand-written C": "skipped: no C compiler (cc or gcc)"}
    if native.has_compiler():
        program, skipped = native.built("mixture_pass", N=n), {}
        contestants["C"] = lambda _: native.printed(program, passes, process.cores())[0]
        contestants["C, one thread"] = lambda _: native.printed(program, passes, 1)[0]
    found = in_turn(contestants, rounds)
    counts = {"rows a pass": n}
    counts |= {"C, one thread": float(np.median(found["C, one thread"]))} if not skipped else {}
    share = {"unit": "milliseconds", "more_is_better": False, "limit": found.get("C"), "counts": counts}
    share |= {"bar": at_most(bar) if not skipped else None, "skipped": skipped}
    where = f"50-component mixture, n = {n:.0e}"
    return [
        line(where, "full pass with gradient, one chain at a time, by the clock", found["alone"], **share),
        line(where, "full pass with gradient, a chain on every core, by the clock", found["at once"], **share),
    ]


def pass_alone(n, draws):
    """One full-batch chain: steps a second. A part, in a process that may have fewer cores."""
    sampler, init = mintmc.MetropolisHastings(mintmc.RandomWalk(step_size=0.002)), np.array([0.5, 0.0])
    settings = {"init": init, "warmup": 0, "chains": 1, "progress": False}
    posterior = tied(int(n))
    mintmc.sample(posterior, sampler, draws=2, **settings)
    return int(draws) / mintmc.sample(posterior, sampler, draws=int(draws), **settings).attrs["sampling_time"]


def eight_chains(n, draws):
    """Steps a second of 8 chains of MINT together. A part, too."""
    posterior, sampler, init = tied(int(n)), mintmc.MINT(1000, alpha=0.5), np.array([0.5, 0.0])
    core_microseconds(posterior, sampler, 100, init)
    return process.cores() * 1e6 / core_microseconds(posterior, sampler, int(draws), init)


def one_chain_on_cores(n=10_000_000, draws=100, rounds=2):
    """A full-batch chain alone: in one process with all cores, and shared by two processes, over one core."""
    import scale

    def shared(_):
        return 1e6 / scale.together(n, draws)

    contestants = {
        "one": lambda _: process.measured(HERE, "--part", "pass_alone", n, draws, on=1),
        "all": lambda _: process.measured(HERE, "--part", "pass_alone", n, draws),
        "shared": shared,
    }
    found = in_turn(contestants, rounds)
    ways = {"one process": found["all"], "two processes that share passes": found["shared"]}
    best = max(ways, key=lambda way: float(np.median(ways[way])))
    counts = {f"{way}, steps a second": float(np.median(values)) for way, values in ways.items()}
    what = f"one full-batch chain on {process.cores()} cores ({best})"
    settings = {"unit": "steps a second", "bar": at_least(1.7), "counts": counts | {"rows a step": n}}
    return [line(f"tied means, n = {n:.0e}", what, ways[best], {"one core": found["one"]}, **settings)]


def chains_on_cores(n=1_000_000, draws=100_000, rounds=3):
    """Eight chains on two cores over one."""
    parts = {"one": 1, "two": 2}
    found = in_turn(
        {
            name: lambda _, on=on: process.measured(HERE, "--part", "eight_chains", n, draws, on=on)
            for name, on in parts.items()
        },
        rounds,
    )
    settings = {"unit": "steps a second", "bar": at_least(1.8)}
    return [
        line(
            f"tied means, n = {n:.0e}",
            "8 chains of MINT on 2 cores",
            found["two"],
            {"1 core": found["one"]},
            **settings,
        )
    ]


PARTS = {"pass_alone": pass_alone, "eight_chains": eight_chains}
