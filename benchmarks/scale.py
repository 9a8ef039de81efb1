"""What it costs to store a run, to keep data on disk, and what sharing full passes gains.

    make bench-scale

Each part runs in processes of its own, so that its peak memory is its own. Results go to benchmarks/scale.json.
"""

import json
import socket
import sys
import tempfile
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import mintmc
from harness.process import answer, finish, peak_memory
from harness.process import measured as measured_by
from harness.process import start as start_of
from mintmc.experiments.tied_means import experiment as tied_means

HERE = Path(__file__).parent
ROWS_ON_DISK = 100_000_000
DIM = 50
WIDE_ROWS = 65_536


def many_parameters(out, draws):
    """A run of 50 parameters: seconds of sampling, saves included, and peak memory."""
    x = np.random.default_rng(0).normal(size=(100_000, DIM)).astype(np.float32)
    posterior = mintmc.Posterior(lambda theta, row: -0.5 * jnp.sum((row - theta) ** 2), x)
    sampler = mintmc.MINT(1000, alpha=0.5, proposal=mintmc.RandomWalk(step_size=0.05))
    settings = {"init": np.zeros(DIM), "warmup": 0, "chains": 2, "progress": False, "audit": False}
    where = None if out == "memory" else out
    tree = mintmc.sample(posterior, sampler, draws=int(draws), out=where, **settings)
    return {"seconds": float(tree.attrs["sampling_time"]), "megabytes": peak_memory()}


def one_column(data, draws):
    """MINT on the tied-means mixture, data in memory or in a file: microseconds a step, and peak memory."""
    source = tied_means.simulate(1_000_000) if data == "memory" else data
    posterior = mintmc.Posterior(tied_means.log_likelihood, source, tied_means.log_prior)
    sampler = mintmc.MINT(1000, temperature=2e5, proposal=mintmc.RandomWalk(step_size=0.5))
    settings = {"init": np.array([0.5, 0.0]), "warmup": 0, "chains": 2, "progress": False, "audit": False}
    tree = mintmc.sample(posterior, sampler, draws=int(draws), **settings)
    return {"microseconds": tree.attrs["sampling_time"] / int(draws) * 1e6, "megabytes": peak_memory()}


def write_and_prepare(folder, number=ROWS_ON_DISK):
    """A prepared file of many rows (millions), made in bounded memory: seconds, and peak memory."""
    path, number = Path(folder) / "rows.npy", int(number)
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (number,))
    rng = np.random.default_rng(0)
    for first in range(0, number, 1_000_000):
        rows[first : first + 1_000_000] = rng.normal(0, np.sqrt(2), 1_000_000) + rng.integers(0, 2, 1_000_000)
    rows.flush()
    del rows
    begun = time.perf_counter()
    mintmc.prepare(path, Path(folder) / "prepared")
    taken = time.perf_counter() - begun
    path.unlink()
    return {"seconds": taken, "megabytes": peak_memory()}


def wide_rows():
    """Rows of 4 KB."""
    return np.random.default_rng(0).normal(size=(WIDE_ROWS, 1024)).astype(np.float32)


def write_wide_rows(folder):
    """A prepared file of them."""
    path = Path(folder) / "wide.npy"
    np.save(path, wide_rows())
    mintmc.prepare(path, Path(folder) / "wide")
    return {}


WIDE_SAMPLERS = {
    "SGLD": mintmc.SGLD(1000, step_size=0.01 / WIDE_ROWS),
    "MINT": mintmc.MINT(4000, temperature=17.8, proposal=mintmc.RandomWalk(step_size=0.02)),
    "ParallelTempering": mintmc.ParallelTempering(mintmc.Ladder([1, 17.8], [None, 4000])),
}


def on_wide_rows(data, sampler, columns, draws):
    """A sampler on rows of 4 KB of which it uses one column or all: core-microseconds a step."""
    source = wide_rows() if data == "memory" else data

    def log_likelihood(theta, row):
        return -0.5 * (jnp.sum(row[: int(columns)]) / int(columns) ** 0.5 - theta) ** 2

    posterior = mintmc.Posterior(log_likelihood, source)
    settings = {"init": 0.0, "warmup": 0, "chains": 2, "progress": False, "audit": False}
    mintmc.sample(posterior, WIDE_SAMPLERS[sampler], draws=int(draws), **settings)
    before = time.process_time()
    mintmc.sample(posterior, WIDE_SAMPLERS[sampler], draws=int(draws), **settings)
    return {"microseconds": (time.process_time() - before) / (2 * int(draws)) * 1e6}


def full_passes(processes, index, port, rows, draws):
    """One full-batch chain: microseconds a step."""
    if int(processes) > 1:
        from mintmc.run.processes import join

        join(f"127.0.0.1:{port}", int(processes), int(index))
    posterior = mintmc.Posterior(tied_means.log_likelihood, tied_means.simulate(int(rows)), tied_means.log_prior)
    sampler = mintmc.MetropolisHastings(mintmc.RandomWalk(step_size=0.002))
    tree = mintmc.sample(
        posterior, sampler, init=np.array([0.5, 0.0]), draws=int(draws), warmup=0, chains=1, progress=False
    )
    return {"microseconds": tree.attrs["sampling_time"] / int(draws) * 1e6}


PARTS = {
    part.__name__: part
    for part in (many_parameters, one_column, write_and_prepare, write_wide_rows, on_wide_rows, full_passes)
}


def measure(name, *arguments):
    """A part in a process of its own."""
    return measured_by(__file__, name, *arguments)


def together(rows, draws):
    """Microseconds a step of one full-batch chain whose passes two processes share."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    both = [start_of(__file__, "full_passes", 2, index, port, rows, draws) for index in range(2)]
    return max(finish(process)["microseconds"] for process in both)


def shared_passes(rows, draws):
    """The better of two runs of one process, and of two processes together."""
    alone, shared = [], []
    for _ in range(2):
        alone.append(measure("full_passes", 1, 0, 0, rows, draws)["microseconds"])
        shared.append(together(rows, draws))
    return min(alone), min(shared)


class Results(dict):
    """Numbers that show as they come."""

    def __setitem__(self, name, value):
        print(f"{name:70} {value:.2f}", flush=True)
        super().__setitem__(name, value)


def main():
    results = Results()
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        kept, stored = [], []
        for i in range(3):
            kept.append(measure("many_parameters", "memory", 200_000)["seconds"])
            stored.append(measure("many_parameters", f"{folder}/{i}.zarr", 200_000)["seconds"])
        results["storing over keeping, 200,000 draws of 50 parameters (bar 1.1)"] = min(stored) / min(kept)
        few = measure("many_parameters", f"{folder}/few.zarr", 10_000)["megabytes"]
        many = measure("many_parameters", f"{folder}/many.zarr", 1_000_000)["megabytes"]
        results["1e6 draws of 50 parameters: megabytes above 1e4 draws (bar 300)"] = many - few
        prepared = measure("write_and_prepare", folder)
        results["prepare 1e8 rows: seconds"] = prepared["seconds"]
        results["prepare 1e8 rows: megabytes"] = prepared["megabytes"]
        memory = min(measure("one_column", "memory", 200_000)["microseconds"] for _ in range(2))
        disk = [measure("one_column", f"{folder}/prepared", 200_000) for _ in range(2)]
        results["step from 1e8 rows on disk over 1e6 in memory (bar 2)"] = min(d["microseconds"] for d in disk) / memory
        results["MINT on 1e8 rows on disk: megabytes (bar 1000)"] = max(d["megabytes"] for d in disk)
        measure("write_wide_rows", folder)
        for sampler, draws in (("SGLD", 10_000), ("MINT", 3000), ("ParallelTempering", 200)):
            for columns in (1024, 1):
                arguments = (sampler, columns, draws)
                memory = min(measure("on_wide_rows", "memory", *arguments)["microseconds"] for _ in range(2))
                disk = min(measure("on_wide_rows", f"{folder}/wide", *arguments)["microseconds"] for _ in range(2))
                name = f"{sampler}, {columns} columns of rows of 4 KB, step from disk over memory (bar 2)"
                results[name] = disk / memory
    for rows, draws in ((1_000_000, 4000), (10_000_000, 400)):
        alone, shared = shared_passes(rows, draws)
        results[f"full-batch step at n = {rows:,}, one process: microseconds"] = alone
        results[f"speed-up of two processes that share the full pass, n = {rows:,}"] = alone / shared
    (HERE / "scale.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        answer(PARTS, sys.argv[1:])
    else:
        main()
