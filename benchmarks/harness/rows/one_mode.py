"""T = 1, one mode: effective draws a core-second over samplers on all data, and over HMCECS on sub-samples."""

from functools import partial
from statistics import median

import mintmc
from harness import peers, workloads
from harness.line import at_least, line
from harness.peers import Run, by_blackjax, by_numpyro, by_others
from harness.process import cores
from harness.timing import core_seconds

ON_ALL_DATA = {
    "BlackJAX NUTS": ("blackjax", by_blackjax.nuts),
    "BlackJAX HMC": ("blackjax", by_blackjax.hmc),
    "BlackJAX MALA": ("blackjax", by_blackjax.mala),
    "NumPyro NUTS": ("numpyro", by_numpyro.nuts),
}
SMALL = {"PyMC, nutpie": ("nutpie", by_others.nutpie), "emcee": ("emcee", by_others.emcee)}
"""Where n is small and the model a logistic regression."""
ENOUGH = 10_000
WORK = 4e9
"""Numbers that a peer reads in a round, over draws: some seconds."""


def peer_draws(n, d, passes=5):
    """Of a round, at so many passes a draw; the smallest effective number of 20 parameters needs at least 150."""
    return int(min(2000, max(150, WORK / (n * d * passes))))


def by_mint(workload, draws, batch=100, sampler=None, warmup=500):
    """Draws of MINT with control variates, a chain a core, compiled before."""
    chains = cores()
    sampler = sampler or mintmc.MINT(batch, temperature=1.0, control=mintmc.Taylor())
    settings = {"init": workload.start, "warmup": warmup, "chains": chains, "progress": False, "audit": False}
    mintmc.sample(workload.posterior, sampler, draws=100, **settings)

    def run(seed):
        tree = mintmc.sample(workload.posterior, sampler, draws=draws, seed=seed, **settings)
        run.stats = tree.sample_stats
        touched = float(tree.sample_stats["data_touched"].sum())
        return Run(tree.posterior["theta"].values, tree.attrs["sampling_time"] * chains, touched)

    return run


def set_up(workload):
    """Core-seconds of finding the mode and the curvature, compiled before."""
    assert workload.found is not None
    begun = core_seconds()
    mintmc.find_mode(workload.posterior, workload.start)
    return core_seconds() - begun


def rounds_of(contestants, rounds):
    """Runs of each, in turn: rates, and rows read for an effective draw."""
    rates, rows = ({name: [] for name in contestants} for _ in range(2))
    for number in range(rounds):
        for name, run in contestants.items():
            made = run(number)
            effective = made.effective
            rates[name].append(effective / made.core_seconds)
            rows[name].append(made.touched / effective)
    return rates, {name: median(values) for name, values in rows.items()}


def effective_draws(workload, wanted, draws, rounds, bars=(None, None), point=None, ours=None, their_draws=None):
    """Lines with and without set-up. Peers have mode and mass matrix for nothing, so theirs takes no time."""
    assert workload.scale is not None  # found now: peers must not look for it while they are traced
    ready, missing = peers.built(wanted, workload, their_draws or peer_draws(workload.n, workload.d))
    our_run = ours or by_mint(workload, draws)
    rates, rows = rounds_of({"ours": our_run, **ready}, rounds)
    mine, seconds = rates.pop("ours"), set_up(workload)
    data = {f"rows an effective draw, {name}": value for name, value in rows.items()}
    counts = {"acceptance": float(our_run.stats["acceptance_rate"].mean()), **data}
    if "log_ratio_noise" in our_run.stats:
        counts["noise"] = float(our_run.stats["log_ratio_noise"].mean())
    what = "effective draws of the worst parameter, set-up excluded"
    share = partial(line, workload.name, unit="a core-second", skipped=missing)
    whole = [ENOUGH / (seconds + ENOUGH / rate) for rate in mine]
    included = f"{ENOUGH:,} effective draws, our set-up included"
    return [
        share(what, mine, rates, bar=bars[0], counts=counts, point=point),
        share(included, whole, rates, bar=bars[1], counts={"set-up, core-seconds": seconds}),
    ]


def logistic(n, d=20, draws=100_000, rounds=2, bars=(None, None), small=False, their_draws=None, over=None):
    """Logistic regression; ``over`` names the peers, all of them if it is None."""
    workload = workloads.logistic(n, d)
    wanted = ON_ALL_DATA | (SMALL if small else {})
    wanted = {name: wanted[name] for name in over or wanted}
    bars = tuple(bar and at_least(bar) for bar in bars)
    point = {"n": n, "d": d, "m": 100, "chains": cores(), "cores": cores()}
    return effective_draws(workload, wanted, draws, rounds, bars, point, their_draws=their_draws)


def over_hmcecs(n=100_000, d=20, draws=100_000, their_draws=1000, rounds=2):
    """The peer that reads sub-samples at T = 1, too."""
    wanted = {"NumPyro HMCECS": ("numpyro", by_numpyro.ecs)}
    return effective_draws(workloads.logistic(n, d), wanted, draws, rounds, their_draws=their_draws)[:1]


def robust(n=1_000_000, d=100, draws=40_000, rounds=2, their_draws=None):
    """Robust regression of many parameters."""
    point = {"n": n, "d": d, "m": 100, "chains": cores(), "cores": cores()}
    workload = workloads.robust(n, d)
    return effective_draws(workload, ON_ALL_DATA, draws, rounds, point=point, their_draws=their_draws)


def digits(n=None, draws=300, rounds=2, their_draws=None):
    """MNIST: 784 weights and few rows, no case for batches; ours is Hamiltonian on all data."""
    workload = workloads.digits(n)
    sampler = mintmc.MetropolisHastings(mintmc.Hamiltonian(preconditioner="laplace"))
    ours = by_mint(workload, draws, sampler=sampler)
    return effective_draws(workload, ON_ALL_DATA, draws, rounds, ours=ours, their_draws=their_draws)[:1]


def hamiltonian(n=100_000, d=20, draws=500, rounds=3, their_draws=None):
    """All data for all: what our passes and paths gain over those of others."""
    workload = workloads.logistic(n, d)
    sampler = mintmc.MetropolisHastings(mintmc.Hamiltonian(preconditioner="laplace"))
    ours = by_mint(workload, draws, sampler=sampler)
    wanted = {name: ON_ALL_DATA[name] for name in ("BlackJAX HMC", "BlackJAX NUTS", "NumPyro NUTS")}
    bars = (at_least(1.5), None)
    return effective_draws(workload, wanted, draws, rounds, bars, ours=ours, their_draws=their_draws)[:1]
