"""What a step costs: MINT over hand-written C, large n over small n, SGLD and SGHMC over BlackJAX's."""

import numpy as np

import mintmc
from harness import native, peers
from harness.line import at_least, at_most, line
from harness.peers import by_blackjax
from harness.process import cores
from harness.timing import in_turn
from harness.workloads import logistic, tied

CHAINS = 8


def core_microseconds(posterior, sampler, draws, init, chains=CHAINS, warmup=1000):
    """Of a step of one chain: wall time of the draws, times cores, over all chains' steps."""
    settings = {"init": init, "warmup": warmup, "chains": chains, "progress": False, "audit": False}
    tree = mintmc.sample(posterior, sampler, draws=draws, **settings)
    return tree.attrs["sampling_time"] * min(cores(), chains) / (chains * draws) * 1e6


def of_mint(posterior, batch, draws):
    """Its step on the tied means, compiled before."""
    sampler, init = mintmc.MINT(batch, alpha=0.5), np.array([0.5, 0.0])
    core_microseconds(posterior, sampler, 100, init)
    return lambda _: core_microseconds(posterior, sampler, draws, init)


def mint_over_c(n=1_000_000, batch=1000, draws=100_000, rounds=6, bar=1.5):
    """A MINT step over the same step in C, a copy on every core: both have all cores to themselves."""
    if not native.has_compiler():
        skipped = {"hand-written C": "skipped: no C compiler (cc or gcc)"}
        found = in_turn({"ours": of_mint(tied(n), batch, draws)}, 1)
        return [line(f"tied means, n = {n:.0e}", "MINT step", found["ours"], unit="core-us", skipped=skipped)]
    program = native.built("mint_step", N=n, M=batch)
    contestants = {
        "ours": of_mint(tied(n), batch, draws),
        "C": lambda _: np.mean([each[0] for each in native.on_every_core(program, 3 * draws)]),
    }
    found = in_turn(contestants, rounds)
    alone = native.printed(program, 3 * draws)[0]
    return [
        line(
            f"tied means, n = {n:.0e}",
            f"MINT step, m = {batch}, penalty, {CHAINS} chains",
            found["ours"],
            unit="core-microseconds",
            more_is_better=False,
            limit=found["C"],
            bar=at_most(bar),
            counts={"rows a step": 2 * batch, "C on one core alone": alone},
        )
    ]


def large_over_small(small=100_000, large=10_000_000, batch=1000, draws=100_000, rounds=4):
    """A step's time depends on m, not on n."""
    contestants = {"ours": of_mint(tied(large), batch, draws), "small": of_mint(tied(small), batch, draws)}
    found = in_turn(contestants, rounds)
    peer = {f"the same at n = {small:.0e}": found["small"]}
    what = f"MINT step, m = {batch}"
    settings = {"unit": "core-microseconds", "more_is_better": False, "bar": at_most(1.5)}
    return [
        line(f"tied means, n = {large:.0e}", what, found["ours"], peer, **settings, counts={"rows a step": 2 * batch})
    ]


def barker_over_mint(n=1_000_000, batch=125, draws=50_000, rounds=4):
    """A step so small that Barker's first batch always decides: what its loop costs."""
    still, posterior, init = mintmc.RandomWalk(step_size=0.01), tied(n), np.array([0.5, 0.0])
    samplers = {
        "ours": mintmc.BarkerMH(batch, temperature=1e4, proposal=still),
        "MINT": mintmc.MINT(batch, temperature=1e4, proposal=still),
    }

    def timed(sampler, draws=draws):
        return lambda _: core_microseconds(posterior, sampler, draws, init)

    for sampler in samplers.values():
        timed(sampler, 100)(0)
    found = in_turn({name: timed(sampler) for name, sampler in samplers.items()}, rounds)
    settings = {"unit": "core-microseconds", "more_is_better": False, "bar": at_most(3)}
    return [line(f"tied means, n = {n:.0e}", "BarkerMH step", found["ours"], {"MINT step": found["MINT"]}, **settings)]


def stochastic_gradients(method, n=100_000, d=20, batch=1000, draws=20_000, rounds=4):
    """Steps a core-second of SGLD or SGHMC over BlackJAX's on the same rows and batches."""
    workload = logistic(n, d)
    # A tenth of the smallest posterior variance: small enough for both, and speed does not depend on it.
    step = 0.1 * float(np.linalg.eigvalsh(np.asarray(workload.found.covariance, float))[0])
    if method == "sgld":
        sampler = mintmc.SGLD(batch, step_size=step)
    else:
        sampler = mintmc.SGHMC(batch, step_size=step**0.5, friction=0.1 / step**0.5)
    core_microseconds(workload.posterior, sampler, 100, workload.mode, warmup=0)
    contestants = {
        "ours": lambda _: 1e6 / core_microseconds(workload.posterior, sampler, draws, workload.mode, warmup=0)
    }
    wanted = {
        f"BlackJAX, batch by {by}": (
            "blackjax",
            lambda by=by: by_blackjax.stochastic(method, workload, batch, step, draws, by),
        )
        for by in ("slice", "index")
    }
    ready, missing = peers.built(wanted)
    contestants |= {name: lambda seed, run=run: draws / run(seed) for name, run in ready.items()}
    found = in_turn(contestants, rounds)
    return [
        line(
            workload.name,
            f"{method.upper()} steps, m = {batch}",
            found.pop("ours"),
            found,
            unit="steps a core-second",
            bar=at_least(2),
            counts={"rows a step": batch},
            skipped=missing,
        )
    ]
