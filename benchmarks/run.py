"""Ratios measured side by side in one run: mintmc against hand-written C, large n against small n.

    make bench

Seconds differ from machine to machine; ratios much less so. Results go to benchmarks/results.json.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np

import mintmc
from mintmc.experiments.tied_means import experiment as tied_means

HERE = Path(__file__).parent
CHAINS, DRAWS, ROUNDS = 8, 100_000, 8
CORES = min(CHAINS, len(os.sched_getaffinity(0)))


def time_c(steps=300_000):
    """Microseconds per step of the C loop on one core, while the other cores run the same: as mintmc is measured."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("the comparison needs a C compiler (cc or gcc)")
    program = HERE / "build" / "mint_step"
    program.parent.mkdir(exist_ok=True)
    source = str(HERE / "mint_step.c")
    subprocess.run([compiler, "-O3", "-march=native", "-ffast-math", source, "-o", str(program), "-lm"], check=True)
    command = [str(program), str(steps)]
    copies = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(CORES)]
    return sum(float(copy.communicate()[0].split()[0]) for copy in copies) / CORES


def time_mint(posterior, sampler=None, draws=DRAWS):
    """Core-microseconds per step of one chain: wall time of the draws, times cores, over all chains' steps."""
    sampler = sampler or mintmc.MINT(1000, alpha=0.5)
    tree = mintmc.sample(
        posterior, sampler, init=np.array([0.5, 0.0]), draws=draws, chains=CHAINS, progress=False, audit=False
    )
    return tree.attrs["sampling_time"] * CORES / (CHAINS * draws) * 1e6


def posterior_of(n):
    return mintmc.Posterior(tied_means.log_likelihood, tied_means.simulate(n), tied_means.log_prior)


def time_import():
    """Seconds to import the package in a new interpreter."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import mintmc"], check=True)
    return time.perf_counter() - begun


def main():
    posterior = posterior_of(1_000_000)
    # The machine drifts: measure both in turn and take each one's best.
    rounds = [(time_c(), time_mint(posterior)) for _ in range(ROUNDS)]
    c, ours = (min(times) for times in zip(*rounds, strict=True))
    small, large = posterior_of(100_000), posterior_of(10_000_000)
    sizes = [(time_mint(small), time_mint(large)) for _ in range(ROUNDS)]
    at_small, at_large = (min(times) for times in zip(*sizes, strict=True))
    # A step so small that Barker's first batch always decides: what its loop costs.
    still = mintmc.RandomWalk(step_size=0.01)
    tests = (mintmc.MINT(125, temperature=1e4, proposal=still), mintmc.BarkerMH(125, temperature=1e4, proposal=still))
    mint, barker = (min(time_mint(posterior, sampler, 50_000) for _ in range(ROUNDS)) for sampler in tests)
    results = {
        "C, one core: microseconds a step": c,
        "mintmc, 8 chains: core-microseconds a step": ours,
        "mintmc over C (bar 2.0)": ours / c,
        "step at n = 1e7 over n = 1e5 (bar 1.5)": at_large / at_small,
        "BarkerMH step over MINT step, batch of 125 (bar 3.0)": barker / mint,
        "import mintmc: seconds (bar 2)": min(time_import() for _ in range(3)),
    }
    for name, value in results.items():
        print(f"{name:54} {value:.2f}")
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "jax": jax.__version__}
    (HERE / "results.json").write_text(json.dumps(results | machine, indent=2) + "\n")


if __name__ == "__main__":
    main()
