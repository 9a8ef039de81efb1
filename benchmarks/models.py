"""Models of NumPyro and PyMC at n = 1e5: the automatic choice at T = 1, beside NumPyro's NUTS on all data.

    pip install 'mintmc[numpyro,pymc]'
    python benchmarks/models.py            # all rows, one process each
    python benchmarks/models.py poisson    # some of them

A row: the sampler chosen, the largest distance of a mean or a standard deviation from that of NUTS (in standard errors
of the difference), whether the run is trusted, and seconds. The mixture has six relabellings: its parameters are
compared in the order of their means, and the share of every relabelling with 1/6. Written to benchmarks/models.json.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from arviz_stats.base import array_stats
from numpyro import distributions as dist

import mintmc
from harness.process import measured

HERE = Path(__file__).parent
N, D = 100_000, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)).astype(np.float32)
ETA = X @ np.array([0.5, -1.0, 0.2], np.float32)
Y = {
    "logistic": RNG.binomial(1, 1 / (1 + np.exp(-ETA))).astype(np.float32),
    "poisson": RNG.poisson(np.exp(0.5 * ETA)).astype(np.float32),
    "student": (ETA + 0.5 * RNG.standard_t(4, size=N)).astype(np.float32),
    "mixture": (RNG.normal(size=N) + RNG.choice([-4, 0, 5], p=[0.3, 0.3, 0.4], size=N)).astype(np.float32),
}


def of_numpyro(name):
    """The model as NumPyro has it, and its arguments."""

    def regression(likelihood):
        def model(x, y):
            b = numpyro.sample("b", dist.Normal(0, 2).expand([D]).to_event(1))
            sd = numpyro.sample("sd", dist.HalfNormal(1.0)) if name == "student" else None
            with numpyro.plate("rows", len(y)):
                numpyro.sample("y", likelihood(x @ b, sd), obs=y)

        return model

    def mixture(y):
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.full(3, 2.0)))
        means = numpyro.sample("means", dist.Normal(0, 5).expand([3]).to_event(1))
        sd = numpyro.sample("sd", dist.LogNormal(0, 1))
        with numpyro.plate("rows", len(y)):
            parts = dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(means, sd))
            numpyro.sample("y", parts, obs=y)

    likelihoods = {
        "logistic": lambda eta, sd: dist.Bernoulli(logits=eta),
        "poisson": lambda eta, sd: dist.Poisson(jnp.exp(eta)),
        "student": lambda eta, sd: dist.StudentT(4.0, eta, sd),
    }
    if name == "mixture":
        return mixture, (Y[name],)
    return regression(likelihoods[name]), (X, Y[name])


def of_pymc(name):
    """The same model as PyMC has it."""
    import pymc as pm

    with pm.Model() as model:
        if name == "mixture":
            weights = pm.Dirichlet("weights", np.full(3, 2.0))
            means = pm.Normal("means", 0, 5, shape=3, initval=[-1.0, 0.0, 1.0])
            pm.NormalMixture("y", w=weights, mu=means, sigma=pm.LogNormal("sd", 0, 1), observed=Y[name])
            return model
        eta = pm.math.dot(X, pm.Normal("b", 0, 2, shape=D))
        if name == "logistic":
            pm.Bernoulli("y", logit_p=eta, observed=Y[name])
        elif name == "poisson":
            pm.Poisson("y", mu=pm.math.exp(eta), observed=Y[name])
        else:
            pm.StudentT("y", nu=4.0, mu=eta, sigma=pm.HalfNormal("sd", 1), observed=Y[name])
    return model


def quantities(draws):
    """Draws (chain, draw, k) of what does not depend on labels."""
    if "means" in draws:
        order = np.argsort(draws["means"], axis=-1)
        draws = {**draws, **{at: np.take_along_axis(draws[at], order, axis=-1) for at in ("means", "weights")}}
    chains, length = next(iter(draws.values())).shape[:2]
    return np.concatenate([np.reshape(draws[at], (chains, length, -1)) for at in sorted(draws)], axis=-1).astype(float)


def by_nuts(name, warmup=500, samples=2500):
    """Draws of NumPyro's NUTS, from where the data were made: it need not find the mode."""
    from numpyro.infer import MCMC, NUTS, init_to_value

    near = {"b": jnp.array([0.5, -1.0, 0.2]) * (0.5 if name == "poisson" else 1.0), "sd": 1.0}
    near |= {"means": jnp.array([-4.0, 0.0, 5.0]), "weights": jnp.array([0.3, 0.3, 0.4])}
    model, arguments = of_numpyro(name)
    kernel = NUTS(model, init_strategy=init_to_value(values=near), dense_mass=True)
    mcmc = MCMC(kernel, num_warmup=warmup, num_samples=samples, num_chains=2, progress_bar=False)
    mcmc.run(jax.random.key(0), *arguments)
    return {at: np.asarray(values) for at, values in mcmc.get_samples(group_by_chain=True).items()}


def farthest(ours, theirs):
    """The largest distance between means or standard deviations, in standard errors."""
    found = []
    for k in range(ours.shape[-1]):
        for method, moment in (("mean", np.mean), ("sd", np.std)):
            error = np.hypot(*(array_stats.mcse(each[..., k], method=method) for each in (ours, theirs)))
            found.append(abs(moment(ours[..., k]) - moment(theirs[..., k])) / error)
    return float(max(found))


def labels(draws):
    """Shares of the six relabellings, and the largest distance from 1/6 in standard errors."""
    order = np.argsort(draws["means"], axis=-1)
    number = order[..., 0] * 3 + order[..., 1]
    shares, errors = [], []
    for each in (1, 2, 3, 5, 6, 7):
        visited = (number == each).astype(float)
        shares.append(float(visited.mean()))
        errors.append(abs(visited.mean() - 1 / 6) / max(float(array_stats.mcse(visited, method="mean")), 1e-9))
    return {"shares of relabellings": np.round(shares, 3).tolist(), "farthest from 1/6": round(max(errors), 2)}


def row(library, name, theirs):
    """One model of one library."""
    if library == "numpyro":
        model, arguments = of_numpyro(name)
        posterior = mintmc.from_numpyro(model, *arguments)
    else:
        posterior = mintmc.from_pymc(of_pymc(name))
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = mintmc.sample(posterior, draws=2000, progress=False)
    taken = time.perf_counter() - begun
    ours = {at: np.asarray(tree.posterior[at]) for at in theirs}
    verdict = mintmc.diagnose(tree)
    found = {
        "what": f"{name} of {library}, n = {N:.0e}",
        "sampler": tree.attrs["sampler"],
        "distance from NUTS": round(farthest(quantities(ours), quantities(theirs)), 2),
        "effective draws": round(verdict.numbers["ess_bulk"]),
        "trusted": verdict.trusted,
        "against": list(verdict.warnings),
        "seconds": round(taken, 1),
    }
    return found | (labels(ours) if name == "mixture" else {})


def measure(name):
    """The rows of one model, in a process of its own."""
    rows = measured(__file__, "--one", name)
    for each in rows:
        print(json.dumps(each), flush=True)
    return rows


def main():
    wanted = sys.argv[1:] or list(Y)
    if wanted[0] == "--one":
        theirs = by_nuts(wanted[1])
        print(json.dumps([row(library, wanted[1], theirs) for library in ("numpyro", "pymc")]))
        return
    rows = [each for name in wanted for each in measure(name)]
    (HERE / "models.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
