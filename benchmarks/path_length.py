"""Effective draws per gradient of Hamiltonian() with its defaults, against NumPyro's NUTS.

    python benchmarks/path_length.py

Both run 1,000 steps of warm-up and 1,000 draws of 4 chains; counted are gradients of the draws after warm-up. What is
compared is the smallest bulk effective sample size over all parameters, divided by the gradients, with NUTS of default
settings and with a dense mass matrix. Neither seconds nor the machine matter. Results go to
benchmarks/path_length.json.
"""

import json
import sys
from pathlib import Path

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import MCMC, NUTS
from scipy.special import expit

import mintmc

CHAINS, WARMUP, DRAWS = 4, 1000, 1000
SEEDS = (0, 1)


def correlated(rng, n, d):
    """Rows whose entries are correlated."""
    mixing = rng.normal(size=(d, d)) / np.sqrt(d) + 0.5 * np.eye(d)
    return rng.normal(size=(n, d)) @ mixing


def normal_regression(rng):
    """N = 20,000, d = 8, dense correlations."""
    x = correlated(rng, 20_000, 8)
    y = x @ rng.normal(size=8) + rng.normal(size=len(x))
    return (lambda b, row: -0.5 * (row[1] - row[0] @ b) ** 2), (x, y), 8


def logistic_regression(rng):
    """N = 10,000, d = 20."""
    x = correlated(rng, 10_000, 20)
    y = (rng.uniform(size=len(x)) < expit(x @ rng.normal(size=20) / 2)).astype(float)
    return (lambda b, row: row[1] * (row[0] @ b) - jnp.logaddexp(0.0, row[0] @ b)), (x, y), 20


def poisson_regression(rng):
    """N = 2,000, d = 5."""
    x = rng.normal(size=(2_000, 5))
    y = rng.poisson(np.exp(0.5 + x @ rng.normal(size=5) / 4)).astype(float)
    return (lambda b, row: row[1] * (0.5 + row[0] @ b) - jnp.exp(0.5 + row[0] @ b)), (x, y), 5


def student_regression(rng):
    """N = 1,000, d = 10, four degrees of freedom."""
    x = correlated(rng, 1_000, 10)
    y = x @ rng.normal(size=10) + rng.standard_t(4, size=len(x))
    return (lambda b, row: -2.5 * jnp.log1p((row[1] - row[0] @ b) ** 2 / 4)), (x, y), 10


def scaled_normal(rng):
    """No data: standard deviations from 0.01 to 100, d = 50."""
    scales = jnp.asarray(np.logspace(-2, 2, 50))
    return (lambda b, row: -0.5 * jnp.sum((b / scales) ** 2)), None, 50


TARGETS = (normal_regression, logistic_regression, poisson_regression, student_regression, scaled_normal)


def posterior_of(make):
    """The posterior, its log density as NumPyro wants it, and the number of parameters."""
    log_likelihood, data, dim = make(np.random.default_rng(1))
    if data is None:
        return mintmc.Posterior.from_density(lambda b: log_likelihood(b, None)), lambda b: -log_likelihood(b, None), dim
    rows = tuple(jnp.asarray(part, jnp.float32) for part in data)

    def prior(b):
        return -0.5 * jnp.sum(b**2) / 100

    def energy(b):
        return -jax.vmap(lambda *row: log_likelihood(b, row))(*rows).sum() - prior(b)

    return mintmc.Posterior(log_likelihood, rows, prior), energy, dim


def smallest(draws):
    """Bulk effective sample size of the worst parameter; draws are (chain, draw, parameter)."""
    return min(float(arviz_stats.ess(draws[..., k], method="bulk")) for k in range(draws.shape[-1]))


def by_mintmc(posterior, dim, seed, proposal=None):
    """Effective draws, gradients, and the acceptance rate."""
    sampler = mintmc.MetropolisHastings(mintmc.Hamiltonian() if proposal is None else proposal)
    settings = {"draws": DRAWS, "warmup": WARMUP, "chains": CHAINS, "seed": seed, "progress": False}
    tree = mintmc.sample(posterior, sampler, init=np.zeros(dim, np.float32), **settings)
    if posterior.n:
        gradients = float(tree.sample_stats.data_touched.sum()) / posterior.n
    else:  # without data nothing is read; the same posterior with one row that says nothing is counted
        alike = mintmc.Posterior(lambda b, row: 0.0 * row, np.zeros(1), posterior.log_prior)
        tree = mintmc.sample(alike, sampler, init=np.zeros(dim, np.float32), **settings)
        gradients = float(tree.sample_stats.data_touched.sum())
    draws = tree.posterior.theta.values.reshape(CHAINS, DRAWS, dim)
    return smallest(draws), gradients, float(tree.sample_stats.acceptance_rate.mean())


def by_nuts(energy, dim, seed, dense):
    """Effective draws, and gradients."""
    mcmc = MCMC(
        NUTS(potential_fn=energy, dense_mass=dense),
        num_warmup=WARMUP,
        num_samples=DRAWS,
        num_chains=CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    starts = 0.01 * jax.random.normal(jax.random.key(seed), (CHAINS, dim))
    mcmc.run(jax.random.key(seed), init_params=starts, extra_fields=("num_steps",))
    gradients = float(mcmc.get_extra_fields()["num_steps"].sum())
    return smallest(np.asarray(mcmc.get_samples(group_by_chain=True))), gradients


def main(names):
    rows = {}
    for make in TARGETS:
        if names and make.__name__ not in names:
            continue
        posterior, energy, dim = posterior_of(make)
        runs = {
            "mintmc": [by_mintmc(posterior, dim, seed) for seed in SEEDS],
            "NUTS": [by_nuts(energy, dim, seed, False) for seed in SEEDS],
            "NUTS, dense": [by_nuts(energy, dim, seed, True) for seed in SEEDS],
        }
        row = {"dim": dim, "acceptance": round(float(np.mean([run[2] for run in runs["mintmc"]])), 2)}
        rates = {name: float(np.mean([run[0] / run[1] for run in each])) for name, each in runs.items()}
        for name, each in runs.items():
            row[f"effective draws, {name}"] = [round(run[0]) for run in each]
            row[f"gradients a draw, {name}"] = round(float(np.mean([run[1] for run in each])) / (CHAINS * DRAWS), 2)
            row[f"per gradient, {name}"] = round(rates[name], 3)
        row |= {f"ratio to {name}": round(rates["mintmc"] / rates[name], 2) for name in ("NUTS", "NUTS, dense")}
        rows[make.__name__] = row
        print(make.__name__, row, flush=True)
    if not names:
        Path(__file__).with_suffix(".json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
