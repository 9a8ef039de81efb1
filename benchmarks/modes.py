"""Many modes at T = 1: weights and evidence against exact answers, beside other ways to get them.

    pip install 'mintmc[benchmarks]'      # dynesty
    python benchmarks/modes.py            # all rows, one process each
    python benchmarks/modes.py forty-2    # some of them

Every row is printed as it is measured; all of them go to benchmarks/modes.json. Seconds are of the whole call on two
cores, compiling included.
"""

import json
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import mintmc
from harness.process import answer, measured
from harness.workloads import forty as forty_normals
from harness.workloads import forty_means, three_normals

HERE = Path(__file__).parent


def sampled(posterior, sampler, init, draws, **settings):
    """A tree, and the seconds that it took."""
    begun = time.perf_counter()
    tree = mintmc.sample(posterior, sampler, init=init, draws=draws, progress=False, **settings)
    return tree, time.perf_counter() - begun


def said(tree):
    """What the verdict says in a word, and its first objection."""
    verdict = mintmc.diagnose(tree)
    return "trusted" if verdict.trusted else verdict.warnings[0]


def forty(dim):
    """Forty unit Gaussians, means uniform in [-40, 40]^d: log evidence 0, every mode 1/40."""
    means, posterior = forty_means(dim), mintmc.Posterior.from_density(forty_normals(dim))
    tree, seconds = sampled(posterior, mintmc.Leaps(starts=4096), np.zeros(dim), 10_000, chains=4, warmup=1000)
    theta = tree.posterior["theta"].values.reshape(-1, dim)
    nearest = np.concatenate([((part[:, None] - means) ** 2).sum(-1).argmin(1) for part in np.array_split(theta, 40)])
    share = np.bincount(nearest, minlength=40) / len(nearest)
    entropy = -np.sum(share[share > 0] * np.log(share[share > 0])) / np.log(40)
    found = mintmc.log_evidence(tree)
    return {
        "what": f"forty Gaussians, d = {dim}",
        "modes found": tree["modes"].sizes["mode"],
        "estimated unseen": tree.attrs["modes_unseen"],
        "entropy of the modes visited over log 40": float(entropy),
        "log evidence": found.log_evidence,
        "its error": found.error,
        "leap acceptance": float(tree.sample_stats["leap_rate"].mean()),
        "seconds": seconds,
        "verdict": said(tree),
    }


def unequal(dim=10):
    """Weights 0.9 and 0.1, standard deviations 1 and 0.3, ten dimensions, chains started in both modes."""
    shift = 10 / np.sqrt(dim)

    def log_density(x):
        wide, narrow = -0.5 * jnp.sum(x**2), -0.5 * jnp.sum(((x - shift) / 0.3) ** 2)
        return jnp.logaddexp(jnp.log(0.9) + wide, jnp.log(0.1) - dim * jnp.log(0.3) + narrow)

    posterior = mintmc.Posterior.from_density(log_density)
    init = mintmc.PerChain(np.stack([np.full(dim, shift * (chain % 2), np.float32) for chain in range(4)]))
    ladder = mintmc.Ladder.geometric(hottest=20, rungs=8)
    samplers = {
        "Leaps": mintmc.Leaps(),
        "EquiEnergy": mintmc.EquiEnergy(ladder),
        "ParallelTempering": mintmc.ParallelTempering(ladder),
    }
    row = {"what": "unequal mixture: weight of the narrow mode, 0.1 in truth"}
    for name, sampler in samplers.items():
        tree, seconds = sampled(posterior, sampler, init, 10_000, chains=4, warmup=1000)
        found = mintmc.mode_weights(tree, label=lambda x: x.mean(-1) > shift / 2, count=2)
        row |= {
            name: float(found["weight"][1]),
            f"{name}, error": float(found["error"][1]),
            f"{name}, seconds": seconds,
            f"{name}, verdict": said(tree),
        }
    return row


def regional(modes=10, runs=5):
    """Ten normals on a circle, standard deviations 0.5 to 1.5, equal weights: what a ladder says of the weights."""
    angles = 2 * np.pi * np.arange(modes) / modes
    at = 25 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    width = np.linspace(0.5, 1.5, modes)

    def log_density(x):
        return jax.nn.logsumexp(-0.5 * jnp.sum(((x - at) / width[:, None]) ** 2, axis=1) - 2 * jnp.log(width))

    posterior = mintmc.Posterior.from_density(log_density)
    ladder = mintmc.Ladder.geometric(hottest=300, rungs=8)
    sampler = mintmc.EquiEnergy(ladder, keep_rungs=True, rings=mintmc.QuantileRings(2))
    found = {"counting": [], "regional": []}
    for seed in range(runs):
        tree, _ = sampled(posterior, sampler, np.zeros(2), 4000, chains=2, warmup=1000, seed=seed)
        for method, weights in found.items():
            label = lambda x: ((x[..., None, :] - at) ** 2).sum(-1).argmin(-1)  # noqa: E731
            weights.append(mintmc.mode_weights(tree, label=label, count=modes, method=method)["weight"].values)
    variances = {method: [mintmc.relative_variance(each) for each in weights] for method, weights in found.items()}
    return {"what": "EquiEnergy, ten modes: relative variance of the weights, exact 0, by run", **variances}


def relabelled(n):
    """Three components, decided on 500 rows a move: six modes of equal weight."""
    posterior = three_normals(n)
    sampler = mintmc.Leaps(control=mintmc.Taylor(), batch_size=500)
    tree, seconds = sampled(posterior, sampler, np.array([-1.0, 0.0, 1.0]), 10_000, chains=2, warmup=500)
    weights = mintmc.mode_weights(tree)
    return {
        "what": f"mixture of three normals, n = {n:.0e}, batches of 500 with control",
        "n": n,
        "modes": tree["modes"].sizes["mode"],
        "weights": np.round(weights["weight"].values, 4).tolist(),
        "errors": np.round(weights["error"].values, 4).tolist(),
        "leap acceptance": float(tree.sample_stats["leap_rate"].mean()),
        "microseconds a step": tree.attrs["sampling_time"] / 10_000 * 1e6,
        "seconds": seconds,
        "verdict": said(tree),
    }


def evidence(n=10_000, d=5):
    """Log evidence of a logistic regression: a ladder, leaps, and nested sampling."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d)).astype(np.float32)
    x[:, 0] = 1
    truth = np.array([-0.5, 1.0, -0.5, 0.25, 0.0])
    y = (rng.random(n) < 1 / (1 + np.exp(-x @ truth))).astype(np.float32)

    def log_likelihood(beta, row):
        eta = row["x"] @ beta
        return row["y"] * eta - jnp.logaddexp(0.0, eta)

    def log_prior(beta):
        return jnp.sum(-0.5 * beta**2 - 0.5 * jnp.log(2 * jnp.pi))

    posterior = mintmc.Posterior(log_likelihood, {"x": x, "y": y}, log_prior)
    row = {"what": f"log evidence, logistic regression, n = {n:.0e}, d = {d}"}
    ladder = mintmc.Ladder.geometric(hottest=20_000.0, rungs=24)
    samplers = {
        "ladder": mintmc.ParallelTempering(ladder, proposal=mintmc.Hamiltonian(), temper="likelihood"),
        "leaps": mintmc.Leaps(),
    }
    # With 4,000 the ladder's own error is 0.044, as large as what is to be seen; that of leaps is 0.009.
    draws = {"ladder": 32_000, "leaps": 4000}
    for name, sampler in samplers.items():
        tree, seconds = sampled(posterior, sampler, np.zeros(d), draws[name], chains=2, warmup=500)
        found = mintmc.log_evidence(tree)
        row |= {name: found.log_evidence, f"{name}, error": found.error, f"{name}, seconds": seconds}
        row[f"{name}, warnings"] = list(found.warnings)
    signed = x.astype(float) * (2 * y.astype(float) - 1)[:, None]
    return row | important(signed) | nested(signed)


def important(signed, draws=8000):
    """By importance sampling from a t around the mode, in float64: near enough to be the truth."""
    from scipy.optimize import minimize
    from scipy.special import expit, logsumexp
    from scipy.stats import multivariate_t

    d = signed.shape[1]

    def log_posterior(betas):
        return -np.logaddexp(0.0, -(betas @ signed.T)).sum(axis=1) - 0.5 * (betas**2 + np.log(2 * np.pi)).sum(axis=1)

    mode = minimize(lambda beta: -log_posterior(beta[None])[0], np.zeros(d), method="BFGS").x
    share = expit(signed @ mode)
    covariance = np.linalg.inv((signed * (share * (1 - share))[:, None]).T @ signed + np.eye(d))
    proposal = multivariate_t(mode, covariance, df=8, seed=1)
    betas = proposal.rvs(draws)
    logs = np.concatenate([log_posterior(part) for part in np.array_split(betas, 40)]) - proposal.logpdf(betas)
    value, weights = logsumexp(logs) - np.log(draws), np.exp(logs - logs.max())
    return {
        "importance sampling": float(value),
        "importance sampling, error": float(weights.std() / weights.mean() / draws**0.5),
    }


def nested(signed):
    """By dynesty, with a standard normal prior."""
    import dynesty
    from scipy.stats import norm

    def log_likelihood(beta):
        return -np.logaddexp(0.0, -(signed @ beta)).sum()

    begun = time.perf_counter()
    sampler = dynesty.NestedSampler(
        log_likelihood, norm.ppf, signed.shape[1], nlive=1000, rstate=np.random.default_rng(0), sample="rwalk"
    )
    sampler.run_nested(print_progress=False)
    found = sampler.results
    return {
        "dynesty": float(found.logz[-1]),
        "dynesty, error": float(found.logzerr[-1]),
        "dynesty, seconds": time.perf_counter() - begun,
    }


ROWS = {
    "forty-2": lambda: forty(2),
    "forty-50": lambda: forty(50),
    "unequal": unequal,
    "regional": regional,
    "relabelled-1e4": lambda: relabelled(10_000),
    "relabelled-1e5": lambda: relabelled(100_000),
    "evidence": evidence,
}


def measure(name):
    """One row, in a process of its own."""
    row = measured(__file__, "--one", name)
    print(json.dumps(row), flush=True)
    return row


def main():
    wanted = sys.argv[1:] or list(ROWS)
    if wanted[0] == "--one":
        answer(ROWS, wanted[1:])
        return
    rows = [measure(name) for name in wanted]
    (HERE / "modes.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
