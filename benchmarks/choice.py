"""The automatic choice on ten kinds of posteriors: what it takes, whether the law is right, what was predicted.

    python benchmarks/choice.py [KIND ...]

For every kind: the sampler chosen, seconds of the look, seconds and effective draws as predicted and as they were, the
largest distance of a mean from the exact one (in standard errors), and whether the run is trusted. Exact answers are
conjugate, on a grid, by symmetry, or those of a long run on all data. Then the same run is made with every other
sampler of T = 1: of those that are trusted and right, the seconds to 400 effective draws, compiling left out, over
those of the one that was chosen. Written to benchmarks/choice.json.
"""

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from arviz_stats import mcse

import mintmc

RNG = np.random.default_rng(0)
OUT = Path(__file__).parent / "choice.json"


def logistic():
    x = RNG.normal(size=(100_000, 8)).astype(np.float32)
    y = (RNG.random(len(x)) < 1 / (1 + np.exp(-x @ np.linspace(-1, 1, 8)))).astype(np.float32)
    posterior = mintmc.Posterior(
        lambda w, r: r["y"] * (r["x"] @ w) - jax.nn.softplus(r["x"] @ w), {"x": x, "y": y}, lambda w: -0.005 * (w @ w)
    )
    return posterior, np.zeros(8, np.float32), by_long_run(lambda w: w)


def mixture():
    means = np.array([-4.0, 0.0, 5.0])
    x = (means[RNG.integers(0, 3, 10_000)] + RNG.normal(size=10_000)).astype(np.float32)
    posterior = mintmc.Posterior(
        lambda p, x: jax.nn.logsumexp(-0.5 * (x - p["mu"]) ** 2), x, lambda p: -0.5 * jnp.sum(p["mu"] ** 2) / 100
    )
    orders = jnp.array([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
    labels = lambda p: (jnp.argsort(p["mu"]) == orders).all(axis=1).astype(float)  # noqa: E731
    return posterior, {"mu": np.array([-1.0, 0.0, 1.0], np.float32)}, (labels, np.full(6, 1 / 6))


def singular():
    y = RNG.normal(0.0, 1.0, size=1000).astype(np.float32)
    posterior = mintmc.Posterior(
        lambda p, y: -0.5 * (y - p["a"] * p["b"]) ** 2, y, lambda p: -0.5 * (p["a"] ** 2 + p["b"] ** 2)
    )
    a, b = np.meshgrid(*(np.linspace(-6, 6, 1201),) * 2)
    log = -0.5 * (a**2 + b**2) - 0.5 * len(y) * (a * b - y.mean()) ** 2
    weight = np.exp(log - log.max())
    of = lambda p: jnp.stack([p["a"] * p["b"], p["a"] ** 2, jnp.abs(p["b"])])  # noqa: E731
    exact = [np.average(value, weights=weight) for value in (a * b, a**2, np.abs(b))]
    return posterior, {"a": 1.0, "b": 1.0}, (of, np.array(exact))


def heavy_tailed():
    y = np.random.default_rng(5).standard_t(2, size=4).astype(np.float32)  # tails that a normal proposal misses
    posterior = mintmc.Posterior(lambda m, y: -1.5 * jnp.log1p((y - m) ** 2 / 2), y)
    grid = np.linspace(-300, 300, 2_000_001)
    weight = np.exp(-1.5 * np.log1p((y[:, None] - grid) ** 2 / 2).sum(axis=0))
    of = lambda m: jnp.stack([jnp.tanh(m), (jnp.abs(m - y.mean()) < 2).astype(m.dtype)])  # noqa: E731
    exact = [np.average(np.tanh(grid), weights=weight), np.average(np.abs(grid - y.mean()) < 2, weights=weight)]
    return posterior, 0.0, (of, np.array(exact))


def rare_events():
    y = (RNG.random(200_000) < 0.002).astype(np.float32)
    posterior = mintmc.Posterior(
        lambda p, y: jnp.where(y > 0, jnp.log(p["rate"]), jnp.log1p(-p["rate"])), y, transforms={"rate": "unit"}
    )
    return posterior, {"rate": 0.01}, (lambda p: p["rate"], np.array((y.sum() + 1) / (len(y) + 2)))


def tiny():
    y = RNG.normal(2.0, 1.0, size=5).astype(np.float32)
    posterior = mintmc.Posterior(lambda m, y: -0.5 * (y - m) ** 2, y)
    return posterior, 0.0, (lambda m: jnp.stack([m, (m - y.mean()) ** 2]), np.array([y.mean(), 0.2]))


def many_parameters():
    x = RNG.normal(size=(5000, 200)).astype(np.float32)
    y = (x @ RNG.normal(size=200) + RNG.normal(size=5000)).astype(np.float32)
    posterior = mintmc.Posterior(
        lambda w, r: -0.5 * (r["y"] - r["x"] @ w) ** 2, {"x": x, "y": y}, lambda w: -0.5 * (w @ w)
    )
    exact = np.linalg.solve(x.T.astype(float) @ x + np.eye(200), x.T.astype(float) @ y)
    return posterior, np.zeros(200, np.float32), (lambda w: w, exact)


def density():
    posterior = mintmc.Posterior.from_density(
        lambda x: -0.5 * x[0] ** 2 / 4 - 0.5 * (x[1] - 0.5 * x[0] ** 2) ** 2  # a banana
    )
    return posterior, jnp.zeros(2), (lambda x: jnp.stack([x[0], x[0] ** 2, x[1]]), np.array([0.0, 4.0, 2.0]))


def on_disk():
    y = RNG.normal(1.0, 2.0, size=1_000_000).astype(np.float32)
    path = Path(tempfile.mkdtemp()) / "y.npy"
    np.save(path, y)
    posterior = mintmc.Posterior(lambda m, y: -0.5 * ((y - m) / 2) ** 2, path)
    return posterior, 0.0, (lambda m: jnp.stack([m]), np.array([y.mean(dtype=float)]))


def numpyro_model():
    import numpyro
    from numpyro import distributions as dist

    x = RNG.normal(size=(100_000, 3)).astype(np.float32)
    y = RNG.poisson(np.exp(x @ np.array([0.2, -0.1, 0.3]))).astype(np.float32)

    def model(x, y):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([3]).to_event(1))
        with numpyro.plate("rows", len(y)):
            numpyro.sample("y", dist.Poisson(jnp.exp(x @ w)), obs=y)

    posterior = mintmc.from_numpyro(model, x, y)
    return posterior, posterior.init, by_long_run(lambda p: p["w"])


def by_long_run(of):
    """Exact up to the error of 20,000 draws around the mode, on all data."""

    def reference(posterior, init):
        sampler = mintmc.MetropolisHastings(mintmc.Autoregressive())
        tree = mintmc.sample(posterior, sampler, init=init, draws=5000, seed=99, progress=False)
        return distances_and_errors(tree, of, init)

    return of, reference


def distances_and_errors(tree, of, init):
    import xarray

    values = mintmc.map_draws(tree, of, like=init)
    draws = xarray.DataArray(values, dims=("chain", "draw", *(f"d{i}" for i in range(values.ndim - 2))))
    error = mcse(draws.to_dataset(name="x"), method="mean")["x"].values
    return draws.mean(("chain", "draw")).values, np.maximum(error, 1e-12)


RIVALS = {
    "MINT": mintmc.MINT(temperature=1.0, control=mintmc.Taylor()),
    "Autoregressive": mintmc.MetropolisHastings(mintmc.Autoregressive()),
    "Hamiltonian": mintmc.MetropolisHastings(mintmc.Hamiltonian()),
    "Hamiltonian, small steps": mintmc.MetropolisHastings(mintmc.Hamiltonian(steps=50, target_acceptance=0.8)),
    "NUTS": mintmc.MetropolisHastings(mintmc.NUTS()),
    "Langevin": mintmc.MetropolisHastings(mintmc.Langevin(preconditioner="diagonal")),
    "RandomWalk": mintmc.MetropolisHastings(),
    "Leaps": mintmc.Leaps(),
}
EFFECTIVE, LONG = 400, 30.0
MOST_EVALUATIONS = 2e9
"""Of a row's log-likelihood, in a run: what would take more is far from the best."""


def seconds_to_enough(posterior, sampler, init, of, exact):
    """Of a run to so many effective draws, not the first of its kind if compiling counts; None if it is wrong."""
    settings = {"init": init, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.perf_counter()
        tree = mintmc.sample(posterior, sampler, **settings)
        taken = time.perf_counter() - begun
        if not mintmc.diagnose(tree).trusted or distance(tree, of, init, *exact) > 4:
            return None
        if taken < LONG:
            begun = time.perf_counter()
            tree = mintmc.sample(posterior, sampler, audit=False, **settings)
            taken = time.perf_counter() - begun
    effective = mintmc.diagnose(tree).numbers["ess_bulk"]
    return round(taken + tree.attrs["sampling_time"] * (max(EFFECTIVE / effective, 0.0) - 1), 2)


def distance(tree, of, init, exact, other):
    mean, error = distances_and_errors(tree, of, init)
    return float(np.abs((mean - exact) / np.hypot(error, other)).max())


def against_all(posterior, init, of, exact, chosen):
    """Seconds to so many effective draws: of what was chosen, and of every other sampler."""
    found = {"chosen": seconds_to_enough(posterior, chosen, init, of, exact)}
    for name, sampler in RIVALS.items():
        passes = 4 * 2000 * min(getattr(getattr(sampler, "proposal", None), "visits", 1), 10)
        if sampler == chosen:
            continue
        if (name == "MINT" and not posterior.n) or (name != "MINT" and passes * posterior.n > MOST_EVALUATIONS):
            continue
        try:
            found[name] = seconds_to_enough(posterior, sampler, init, of, exact)
        except ValueError as refused:
            found[name] = str(refused)
    right = [seconds for seconds in found.values() if isinstance(seconds, float)]
    ratio = round(found["chosen"] / min(right), 2) if right and found["chosen"] else None
    return {"seconds to 400 effective draws": found, "over the best": ratio}


def measured(kind):
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state  # whatever was measured before
    posterior, init, (of, exact) = kind()
    begun = time.perf_counter()
    found = mintmc.plan(posterior, init=init)
    looked = time.perf_counter() - begun
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = mintmc.sample(posterior, found.sampler, init=init, progress=False)
    taken = time.perf_counter() - begun
    exact = exact(posterior, init) if callable(exact) else (exact, 0.0)
    verdict = mintmc.diagnose(tree)
    return {
        "sampler": found.best.name,
        "modes": found.modes,
        "look": round(looked, 1),
        "seconds": [round(found.best.seconds, 1), round(taken, 1)],
        "effective": [round(found.best.effective), round(verdict.numbers["ess_bulk"])],
        "distance": round(distance(tree, of, init, *exact), 2),
        "trusted": verdict.trusted,
        "against": list(verdict.warnings),
        **against_all(posterior, init, of, exact, found.sampler),
    }


KINDS = [
    logistic,
    mixture,
    singular,
    heavy_tailed,
    rare_events,
    tiny,
    many_parameters,
    density,
    on_disk,
    numpyro_model,
]


def main():
    wanted = sys.argv[1:] or [kind.__name__ for kind in KINDS]
    results = json.loads(OUT.read_text()) if OUT.exists() else {}
    for kind in KINDS:
        if kind.__name__ in wanted:
            results[kind.__name__] = measured(kind)
            print(kind.__name__, json.dumps(results[kind.__name__]), flush=True)
            OUT.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
