"""Time and data of an effective draw against m, d, chains and cores: the points of the figures."""

from pathlib import Path

from harness import process, workloads
from harness.line import line

HERE = str(Path(__file__).parents[2] / "bench.py")


def point(n, d, m, chains, draws):
    """Core-seconds and rows of an effective draw. A part, in a process that may have fewer cores."""
    import mintmc

    n, d, m, chains, draws = map(int, (n, d, m, chains, draws))
    workload = workloads.logistic(n, d)
    sampler = mintmc.MINT(m, temperature=1.0, control=mintmc.Taylor())
    settings = {"init": workload.start, "warmup": 500, "chains": chains, "progress": False, "audit": False}
    mintmc.sample(workload.posterior, sampler, draws=100, **settings)
    tree = mintmc.sample(workload.posterior, sampler, draws=draws, **settings)
    from harness.timing import smallest_ess

    effective = smallest_ess(tree.posterior["theta"].values)
    seconds = tree.attrs["sampling_time"]
    return {
        "effective": effective,
        "seconds": seconds / effective,
        "core_seconds": seconds * min(chains, process.cores()) / effective,
        "rows": float(tree.sample_stats["data_touched"].sum()) / effective,
    }


def sweep(axis, values, n=100_000, d=20, m=100, chains=2, draws=50_000, rounds=2):
    """One line for each value along an axis: n, d, m, chains or cores."""
    lines = []
    for value in values:
        at = {"n": n, "d": d, "m": m, "chains": chains, "cores": process.cores()} | {axis: value}
        given = [at[name] for name in ("n", "d", "m", "chains")]
        found = [process.measured(HERE, "--part", "point", *given, draws, on=at["cores"]) for _ in range(rounds)]
        counts = {"effective draws": found[0]["effective"], "rows an effective draw": found[0]["rows"]}
        counts["seconds an effective draw"] = found[0]["seconds"]
        where = f"logistic regression, n = {at['n']:.0e}, d = {at['d']}"
        what = f"effective draws, m = {at['m']}, {at['chains']} chains, {at['cores']} cores"
        ours = [1 / each["core_seconds"] for each in found]
        lines.append(line(where, what, ours, unit="a core-second", counts=counts, point=at | {"axis": axis}))
    return lines


PARTS = {"point": point}
