"""Rows on disk: made here, prepared, sampled from, and removed."""

import tempfile
from pathlib import Path

import numpy as np

from harness import process
from harness.line import at_most, line
from harness.timing import in_turn

HERE = Path(__file__).parents[2]
SCALE, BUILD = str(HERE / "scale.py"), HERE / "build"


def from_disk(rows=100_000_000, draws=200_000, rounds=2, bar=2.0, memory=1000):
    """A MINT step (m = 1000) from so many rows on disk over one from 1e6 rows in memory, and what memory it takes."""
    peaks = []
    BUILD.mkdir(exist_ok=True)  # a folder for temporary files may be in memory; this one is not
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        prepared = process.measured(SCALE, "write_and_prepare", folder, rows)

        def disk(_):
            found = process.measured(SCALE, "one_column", f"{folder}/prepared", draws)
            peaks.append(found["megabytes"])
            return found["microseconds"]

        def in_memory(_):
            return process.measured(SCALE, "one_column", "memory", draws)["microseconds"]

        found = in_turn({"ours": disk, "memory": in_memory}, rounds)
    workload = f"tied means, {rows:.0e} rows on disk"
    counts = {"prepare, seconds": prepared["seconds"], "prepare, MB": prepared["megabytes"], "rows a step": 2000}
    peer = {"1e6 rows in memory": found["memory"]}
    share = {"more_is_better": False}
    step = {"unit": "microseconds", "bar": at_most(bar), "counts": counts}
    resident = {"unit": "MB resident at most", "bar": at_most(memory), "counts": {"file, MB": rows * 4 / 1e6}}
    return [
        line(workload, "MINT step, m = 1000", found["ours"], peer, **step, **share),
        line(workload, "memory of that run", [float(np.max(peaks))], **resident, **share),
    ]
