"""Many modes at T = 1: effective mode labels a core-second over tempered SMC, parallel tempering and nested sampling.

With w_j the share of draws in each of K modes of equal weight, N independent draws have K sum (w_j - 1/K)^2 = (K - 1)/N
in the mean; a sampler's effective labels are the N that this gives, from the mean over rounds. A run that misses modes
has few of them, however many draws it makes. Time is that of the whole run: exploring and warm-up count.
"""

import json
from itertools import permutations
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import mintmc
from harness import peers
from harness.line import at_least, line
from harness.peers import by_blackjax, by_others
from harness.timing import core_seconds
from harness.workloads import forty, forty_means, three_normals, three_normals_likelihood, three_normals_prior

RESULTS = Path(__file__).parents[3] / "results"
MINTEE_BEFORE = 143 / 3590
"""Effective labels a core-second on the fifty modes, when this was begun."""


def worth(shares):
    """Effective labels of rounds of shares (round, mode)."""
    shares = np.asarray(shares)
    modes = shares.shape[1]
    return (modes - 1) / max(float(np.mean(modes * ((shares - 1 / modes) ** 2).sum(axis=1))), 1e-9)


def by_ours(posterior, sampler, init, draws, warmup, label, modes):
    """Shares of the modes, core-seconds of all but compiling, and rows read."""

    def run(seed):
        begun = core_seconds()
        settings = {"init": init, "warmup": warmup, "chains": 2, "seed": seed, "progress": False, "audit": False}
        tree = mintmc.sample(posterior, sampler, draws=draws, **settings)
        taken = core_seconds() - begun
        share = np.bincount(label(tree.posterior["theta"].values).ravel(), minlength=modes) / (2 * draws)
        touched = tree.sample_stats.get("data_touched")
        read = 0.0 if touched is None else float(touched.sum()) + float(np.sum(tree.attrs.get("data_touched_setup", 0)))
        return share, taken, read

    run(99)  # compiles
    return run


def labels_line(workload, contestants, missing, rounds, bar=None, **extra):
    """Rounds in turn; a line of effective labels a core-second."""
    shares, seconds, rows = ({name: [] for name in contestants} for _ in range(3))
    for number in range(rounds):
        for name, run in contestants.items():
            share, taken, read = run(number)
            shares[name].append(share)
            seconds[name].append(taken)
            rows[name].append(read)
    effective = {name: worth(values) for name, values in shares.items()}
    # The number is that of all rounds together: one round's has an error of its own size.
    rates = {name: [effective[name] / taken for taken in seconds[name]] for name in contestants}
    counts = {f"effective labels, {name}": value for name, value in effective.items()}
    counts |= {f"modes visited, {name}": float(np.mean([(s > 0).sum() for s in shares[name]])) for name in contestants}
    counts |= {
        f"rows a label, {name}": float(np.mean(rows[name])) / effective[name] for name in rows if any(rows[name])
    }
    ours = rates.pop("ours")
    settings = {"unit": "a core-second", "bar": bar, "counts": counts, "skipped": missing}
    return line(workload, "effective mode labels, whole runs", ours, rates, **settings, **extra)


def three(n=100_000, draws=10_000, particles=64, rounds=3):
    """A mixture of three normals: six relabellings."""
    orders = np.array(list(permutations(range(3))))
    power = np.array([9, 3, 1])
    number = np.full(27, 0)
    number[orders @ power] = np.arange(6)

    def label(means):
        return number[np.argsort(means, axis=-1) @ power]

    posterior = three_normals(n)
    sampler = mintmc.Leaps(control=mintmc.Taylor(), batch_size=500)
    ours = by_ours(posterior, sampler, np.array([-1.0, 0.0, 1.0]), draws, 500, label, 6)

    def smc():
        rows = jnp.asarray(posterior.rows)
        all_rows = lambda means, y: jax.vmap(three_normals_likelihood, (None, 0))(means, y).sum()  # noqa: E731
        draw = lambda key: 10 * jax.random.normal(key, (3,))  # noqa: E731
        # A mean is known to sqrt(3 / n) at T = 1, and never to more than its prior.
        step = lambda share: 0.5 * min(10.0, (3 / (n * share)) ** 0.5)  # noqa: E731
        made = by_blackjax.tempered_smc(three_normals_prior, all_rows, draw, rows, particles, step)

        def run(seed):
            found, weights, taken, gradients = made(seed)
            return np.bincount(label(found), weights, minlength=6), taken, gradients * n

        return run

    ready, missing = peers.built({"BlackJAX tempered SMC": ("blackjax", smc)})
    # Neighbouring rungs of three parameters overlap at a ratio of 2; at the hottest the prior rules.
    ladder = mintmc.Ladder.geometric(hottest=n / 10, rungs=int(np.log2(n / 10)) + 2)
    rungs, start = mintmc.ParallelTempering(ladder), np.array([-1.0, 0.0, 1.0])
    ready["our parallel tempering, all data"] = by_ours(posterior, rungs, start, max(draws // 50, 50), 100, label, 6)
    return [labels_line(f"mixture of three normals, n = {n:.0e}", {"ours": ours, **ready}, missing, rounds)]


def forty_normals(dim=2, draws=10_000, particles=1000, rounds=3, nested=True):
    """Forty unit normals: BlackJAX's SMC everywhere, dynesty where the dimension allows."""
    means, log_density = forty_means(dim), forty(dim)

    def label(x):
        flat = x.reshape(-1, dim)
        parts = np.array_split(flat, max(1, len(flat) * dim // 20_000))
        return np.concatenate([((part[:, None] - means) ** 2).sum(-1).argmin(1) for part in parts])

    def shares(x, weights):
        return np.bincount(label(np.asarray(x)), weights, minlength=40)

    posterior = mintmc.Posterior.from_density(log_density)
    ours = by_ours(posterior, mintmc.Leaps(starts=4096), np.zeros(dim), draws, 1000, label, 40)

    def smc():
        inside = lambda x: jnp.where((jnp.abs(x) < 60).all(), 0.0, -jnp.inf)  # noqa: E731
        draw = lambda key: jax.random.uniform(key, (dim,), minval=-60.0, maxval=60.0)  # noqa: E731
        step = lambda share: 0.5 * min(20.0, share**-0.5) / dim**0.25  # noqa: E731
        made = by_blackjax.tempered_smc(inside, lambda x, _: log_density(x), draw, jnp.zeros(1), particles, step)

        def run(seed):
            found, weights, taken, _ = made(seed)
            return shares(found, weights), taken, 0.0

        return run

    def by_dynesty():
        made = by_others.dynesty(log_density, -60.0, 60.0, dim)

        def run(seed):
            found, taken, _ = made(seed)
            return shares(found, np.full(len(found), 1 / len(found))), taken, 0.0

        return run

    wanted = {"BlackJAX tempered SMC": ("blackjax", smc)}
    wanted |= {"dynesty": ("dynesty", by_dynesty)} if nested else {}
    ready, missing = peers.built(wanted)
    # Unit normals up to 113 apart in the plane: T of 300 or so joins them, and a ratio of 1 + 2/sqrt(d) overlaps.
    rungs = int(np.ceil(np.log(300) / np.log(1 + 2 / dim**0.5))) + 1
    tempering = mintmc.ParallelTempering(mintmc.Ladder.geometric(hottest=300, rungs=rungs))
    ready["our parallel tempering"] = by_ours(posterior, tempering, np.zeros(dim), draws, 1000, label, 40)
    missing |= {} if nested else {"dynesty": f"skipped: d = {dim} is too many for it"}
    point = {"modes dimension": dim}
    return [labels_line(f"forty unit normals, d = {dim}", {"ours": ours, **ready}, missing, rounds, point=point)]


def fifty(scale="standard", rounds=1):
    """Fifty modes: what `mintmc reproduce fifty-modes` has measured, or Leaps run here, over MINTEE as it was."""
    from mintmc.experiments.fifty_modes import experiment, numbers
    from mintmc.experiments.fifty_modes.scale import SCALES

    where = RESULTS / "fifty-modes" / "fifty-modes.json"
    sizes, source = SCALES[scale], "run here"
    if where.exists() and (content := json.loads(where.read_text())).get("scale") == scale:
        parts, source = content["parts"], "mintmc reproduce fifty-modes"
        found = [parts["leaps"]["independent_draws_worth"] / (2 * parts["seconds_of_all"]["leaps"])]
        counts = {"modes visited": parts["leaps"]["modes_visited"]}
    else:
        posterior = mintmc.Posterior(experiment.log_likelihood, experiment.simulate(sizes.n, sizes.d))
        found, counts = [], {}
        for seed in range(rounds):
            begun = core_seconds()
            settings = {"draws": sizes.leap_draws, "warmup": sizes.leap_warmup, "chains": 2, "seed": 7 + seed}
            init = np.zeros(sizes.d, np.float32)
            tree = mintmc.sample(posterior, mintmc.Leaps(), init=init, progress=False, audit=False, **settings)
            known = numbers.mode_numbers(tree.posterior["theta"].values)
            found.append(known["independent_draws_worth"] / (core_seconds() - begun))
            counts = {"modes visited": known["modes_visited"], "effective labels": known["independent_draws_worth"]}
            counts["rows a label"] = float(tree.sample_stats["data_touched"].sum()) / known["independent_draws_worth"]
    before = {"MINTEE before": [MINTEE_BEFORE] * len(found)}
    settings = {"unit": "a core-second", "bar": at_least(50), "counts": counts | {"from": source}}
    return [
        line(
            f"fifty modes, n = {sizes.n:.0e}, d = {sizes.d}", "effective mode labels, Leaps", found, before, **settings
        )
    ]
